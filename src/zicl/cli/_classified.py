"""What zicl classify says at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zicl.cli._progress import say

_LEAST_CERTAIN = 5
# Margins below which a person might want to look, and the number of rows from which their shares say something.
_EDGES, _ENOUGH = (0.05, 0.1, 0.2, 0.4), 20


@dataclass(frozen=True)
class Line:
    """What the summary needs of a result: prompts of a long file would fill the memory."""

    id: str
    text: str
    label: str
    probabilities: Mapping[str, float]
    margin: float
    cut: bool


def table(lines: Sequence[Line], review_below: float | None) -> None:
    """The labels for people, a line a text."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    names = list(dict.fromkeys(name for line in lines for name in line.probabilities))
    shown = Table("text", "label", *map(escape, names))
    for line in lines:
        text = line.text if len(line.text) <= 100 else line.text[:99] + "…"
        shares = (f"{line.probabilities[name]:.1%}" if name in line.probabilities else "" for name in names)
        review = line.margin < (review_below or 0.0)
        shown.add_row(Text(text), Text("to review" if review else line.label, style="bold"), *shares)
    Console(highlight=False).print(shown)


def ending(lines: Sequence[Line], review_below: float | None) -> None:
    """What stands out: the labels' shares, what was cut, and what was least certain."""
    if not lines:
        say("nothing was left to do")
        return
    counts = Counter(line.label for line in lines)
    names = dict.fromkeys(name for line in lines for name in line.probabilities)
    say("shares: " + ", ".join(f"{name} {counts[name] / len(lines):.1%}" for name in names))
    if review_below is not None or len(lines) >= _ENOUGH:
        left = {
            edge: sum(line.margin < edge for line in lines) for edge in sorted({*_EDGES, review_below or _EDGES[0]})
        }
        told = ", ".join(f"{count / len(lines):.1%} below {edge:g}" for edge, count in left.items())
        say(f"left to a person at a margin of: {told} (--review-below)")
    if cut := sum(line.cut for line in lines):
        say(f"{cut:,} texts were longer than the token limit and were cut")
    if len(lines) > _LEAST_CERTAIN:
        say("least certain:")
        for line in sorted(lines, key=lambda line: line.margin)[:_LEAST_CERTAIN]:
            say(f"  {line.id}: {line.label} {line.probabilities[line.label]:.1%}  {line.text[:80]}")
