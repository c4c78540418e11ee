"""Order: where the nearest demonstrations stand; and how much draws of labels and draws of sentences matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from zicl.lab.evaluate.methods import METHODS
from zicl.lab.report.bootstrap import Estimate
from zicl.lab.report.cells import Block
from zicl.lab.study.base import Arms, Options, Part, Setup, Study
from zicl.lab.study.figure import ACCURACY, Figure, Panel, Point, Series
from zicl.lab.study.method_grid import arm, arm_look, changed, look
from zicl.lab.study.outcome import Outcome, points
from zicl.lab.study.variance import Spreads, spreads

_ORDERS = {"nearest-last": "nearest last", "nearest-first": "nearest first", "shuffled": "shuffled"}
_METHODS = {"naive": "Nearest, original labels", "z-icl": "Z-ICL"}


class OrderOptions(Options):
    """``draws`` of labels for each draw of sentences, of which there is one a seed."""

    draws: int = Field(3, ge=2)


def _name(method: str, order: str) -> str:
    return method if order == "nearest-last" else f"{method}-{order}"


def _drawn(options: OrderOptions) -> list[str]:
    return [f"diverse-synonyms-labels-{draw}" for draw in range(1, options.draws + 1)]


def _parts(options: OrderOptions, _: Setup) -> list[Part]:
    orders: Arms = {
        _name(method, order): METHODS[method]
        if order == "nearest-last"
        else changed(METHODS[method], title, retrieval={"order": order})
        for method in _METHODS
        for order, title in _ORDERS.items()
    }
    # Diverse nearest, since the other ways draw no sentences.
    base = arm("diverse", "synonyms")
    draws = {
        name: changed(base, f"labels drawn with seed {draw}", labelling={"seed": draw})
        for draw, name in enumerate(_drawn(options), start=1)
    }
    return [Part("orders", orders), Part("variance", draws)]


def _figures(options: OrderOptions, outcome: Outcome) -> list[Figure]:
    def orders(block: Block) -> Sequence[Series]:
        return [
            outcome.bars(block, title, look(method), {said: _name(method, order) for order, said in _ORDERS.items()})
            for method, title in _METHODS.items()
        ]

    panels = []
    for block in outcome.blocks:
        found = _spreads(options, outcome, block)
        if found is not None:
            # Both are of diverse nearest, and have its colour.
            plain = arm_look("diverse", "synonyms")
            shown = (("labels", plain, found.labels), ("sentences", replace(plain, hatch="--"), found.sentences))
            series = [Series(f"draws of {what}", style, (Point(what, value),)) for what, style, value in shown]
            panels.append(Panel(outcome.name(block), tuple(series)))
    return [
        Figure("order", "Where the nearest demonstrations stand", "", ACCURACY, outcome.panels(orders)),
        Figure("variance", "What the draws do to accuracy", "", "standard deviation, points", tuple(panels)),
    ]


def _spreads(options: OrderOptions, outcome: Outcome, block: Block) -> Spreads | None:
    rows = [outcome.results.row(block, name) for name in _drawn(options)]
    return spreads([[row[task] for row in rows] for task in outcome.tasks(block, _drawn(options))])


def _findings(options: OrderOptions, outcome: Outcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        each = []
        for method, title in _METHODS.items():
            first = outcome.compare(block, {_name(method, "nearest-first"): 1, method: -1})
            mixed = outcome.compare(block, {_name(method, "shuffled"): 1, method: -1})
            each.append(f"{points(first)} nearest first and {points(mixed)} shuffled for {title}")
        size = outcome.size(block, [_name(method, order) for method in _METHODS for order in _ORDERS])
        said.append(f"{outcome.name(block)}: against nearest last accuracy is {'; '.join(each)} ({size}).")
        found = _spreads(options, outcome, block)
        if found is None:
            said.append(f"{outcome.name(block)}: what draws of sentences do needs two seeds at least.")
            continue
        said.append(
            f"{outcome.name(block)}: the standard deviation of accuracy on a task is {_spread(found.labels)} over "
            f"draws of labels for the same sentences and {_spread(found.sentences)} over draws of sentences with the "
            f"same labels; the first minus the second is {points(found.difference)} ({options.draws} draws of labels "
            f"by a draw of sentences a seed; {outcome.size(block, _drawn(options))})."
        )
    return said


def _spread(value: Estimate) -> str:
    return f"{value.estimate:.1f} points [{value.low:.1f}, {value.high:.1f}]"


STUDY = Study(
    name="order",
    title="The order of demonstrations, and what draws do",
    question="Does it matter where the nearest demonstrations stand, and do draws of labels matter more than draws of "
    "sentences?",
    paper="The paper puts the nearest last and tries no other order; it reports deviations over seeds that draw both.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=OrderOptions,
)
