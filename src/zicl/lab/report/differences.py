"""Every method's difference in accuracy to some baselines, with intervals and corrected p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from zicl.lab.evaluate.store import NO_INFERENCE
from zicl.lab.report.bootstrap import Bootstrap, Draws, averaged, pair
from zicl.lab.report.cells import Block, Cell, Kind, Results
from zicl.lab.report.holm import holm

BASELINES = ("no-demos", "icl-gold")


@dataclass(frozen=True)
class Difference:
    """A method minus a baseline, on one task or (``task`` None) averaged over ``tasks`` of them."""

    block: Block
    method: str
    kind: Kind
    baseline: str
    task: str | None
    tasks: int
    estimate: float
    low: float
    high: float
    p: float
    p_holm: float = 1.0


def differences(results: Results, baselines: Sequence[str] = BASELINES) -> list[Difference]:
    """All differences of the tables; Holm's correction is over all of them together."""
    bootstrap = Bootstrap()
    found: list[Difference] = []
    for block in results.blocks:
        if block.inference == NO_INFERENCE:
            continue
        # Methods without a prompt have no inference of their own: they are compared in every block.
        beside = {next(iter(cells.values())).key.method: (kind, cells) for kind, cells in results.beside(block)}
        own = {method: (kind, results.row(block, method)) for method, kind in results.methods(block).items()}
        every = {**beside, **own}
        for name in baselines:
            baseline = every.get(name)
            for method, (kind, cells) in every.items():
                if baseline and method != name:
                    found += _row(bootstrap, block, method, kind, name, cells, baseline[1])
    corrected = holm([each.p for each in found])
    return [replace(each, p_holm=p) for each, p in zip(found, corrected, strict=True)]


def _row(
    bootstrap: Bootstrap,
    block: Block,
    method: str,
    kind: Kind,
    name: str,
    cells: dict[str, Cell],
    baseline: dict[str, Cell],
) -> list[Difference]:
    both = [pair(cell, baseline[task]) for task, cell in cells.items() if task in baseline]
    drawn = {each.task: bootstrap.resample(each) for each in both if each is not None}
    groups: list[tuple[str | None, list[Draws]]] = [(task, [each]) for task, each in drawn.items()]
    if len(drawn) > 1:
        groups.append((None, list(drawn.values())))
    compared = [(task, len(members), averaged(members)) for task, members in groups]
    return [
        Difference(block, method, kind, name, task, tasks, value.estimate, value.low, value.high, value.p)
        for task, tasks, value in compared
    ]
