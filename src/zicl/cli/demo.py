"""zicl demo: a hundred real sentences, labelled by each expert and by all joined."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from zicl._util.process import go_offline
from zicl.cli.console import people_console, print_status, progress_bars
from zicl.cli.options import OfflineOption

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.score.results import Prediction

# How many sentences the demo learns from, how many of these it checks, and how many it prints.
_PILE, _CHECKED, _PRINTED = 1000, 100, 5
# A sentence is printed up to this many characters.
_WIDTH = 70


@dataclass(frozen=True)
class DemoRow:
    """A line of the comparison; ``rate`` is in texts per second, without loading models."""

    title: str
    right: int
    rate: float


def demo(
    paper: Annotated[bool, typer.Option("--paper", help="Also run the paper's method, z-icl: minutes more.")] = False,
    offline: OfflineOption = False,
) -> None:
    """Fetch the default models and label a hundred real sentences: with each expert, and with all joined."""
    if offline:
        go_offline()
    print_status("zicl turns a pile of raw text and a list of labels into a classifier. No labelled example is used.")
    print_status(f"The pile: {_PILE:,} sentences of film reviews. {_CHECKED} of them, drawn by a seed, are checked.")
    with progress_bars() as report:
        from zicl._util.catalog import find_asset
        from zicl.apps.demo import LABELS, REVIEWS, example_sentences

        for name in ("bge-small-en-v1.5", "smollm2-135m", REVIEWS, *(["wordnet"] if paper else [])):
            find_asset(name, offline=offline, report=report)
        report("loading the libraries", 0, None)
        from zicl.classifier import ZICLClassifier
        from zicl.config import Scoring

        examples = example_sentences(_PILE, offline=offline)
        pile, gold = [text for text, _ in examples], [label for _, label in examples[:_CHECKED]]
        rows = []
        for title, method, scoring in (
            ("the encoder alone", "encoder", None),
            ("the language model alone", "no-demos", Scoring(inference="direct")),
            *([("z-icl, the paper's method", "z-icl", None)] if paper else []),
        ):
            classifier = ZICLClassifier(labels=LABELS, method=method, scoring=scoring, offline=offline)
            classifier.fit(pile if method == "z-icl" else None, report=report)
            started = time.perf_counter()
            results = classifier.classify(pile[:_CHECKED], _advance(report, title))
            rows.append(_row(title, results, gold, _CHECKED / (time.perf_counter() - started)))
        classifier, started = ZICLClassifier(labels=LABELS, offline=offline), time.perf_counter()
        results = classifier.fit(pile, report=report).classify(pile)
        # First, whatever ran first: it is what to use.
        title = "z-icl+, the default: encoder and pile"
        rows.insert(0, _row(title, results, gold, _PILE / (time.perf_counter() - started)))
    _show_rows(rows)
    print_status(f"The first {_PRINTED} of the {_CHECKED}, by z-icl+:")
    _show(results[:_PRINTED], gold)
    print_status("What each expert said about the first one:")
    people_console().print(classifier.explain(pile[0]))
    print_status("For your own texts, any .csv, .jsonl or .parquet file with a column 'text', or a .txt file:")
    print_status("  zicl classify --file tickets.csv --labels billing,delivery,praise -o labelled.csv")
    print_status("  zicl explain --fit tickets.csv --labels billing,delivery,praise 'my parcel never came'")


def _row(title: str, results: Sequence[Prediction], gold: Sequence[str], rate: float) -> DemoRow:
    right = sum(result.label == truth for result, truth in zip(results, gold, strict=False))
    return DemoRow(title, right, rate)


def _advance(report: ProgressReport, stage: str) -> Callable[[int], None]:
    """Return a callback that moves a stage's bar by the number of texts it is given."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(stage, done, _CHECKED)

    return advance


def _show(results: Sequence[Prediction], gold: Sequence[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("sentence", "prediction", "probability", "right?")
    for result, truth in zip(results, gold, strict=False):
        mark = "✓" if result.label == truth else f"✗ {truth}"
        text = str(result.text)
        shown = text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
        table.add_row(Text(shown), result.label, f"{result.probabilities[result.label]:.0%}", mark)
    people_console().print(table)


def _show_rows(rows: Sequence[DemoRow]) -> None:
    from rich.table import Table

    table = Table("who was asked", f"right, of {_CHECKED}", "texts a second")
    for number, row in enumerate(rows):
        rate = f"{row.rate:.0f}" if row.rate >= 10 else f"{row.rate:.1f}"
        table.add_row(row.title, str(row.right), rate, style="" if number else "bold")
    people_console().print(table)
