"""Answer the paper's claims from the stored rows, in docs/results/CLAIMS.md: ``python docs/make_claims.py``.

A test compares the page with the rows. No model is loaded.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent / "results"
PAGE, CLAIMS = HERE / "CLAIMS.md", HERE / "claims.toml"
ROWS = Path(__file__).parent.parent / "benchmarks" / "results" / "claims"
# The models, by what is added to the name of a folder.
MODELS = {"": "SmolLM2-135M", "-gemma": "Gemma-3-270M", "-qwen": "Qwen2.5-Coder-0.5B"}
# Points that count as no difference; and what refutes a larger one.
_EQUAL, _NOTHING = 3.5, 2.0


@dataclass(frozen=True)
class Found:
    """What the rows of one model say about a claim."""

    estimate: float
    low: float
    high: float
    examples: int
    seeds: int
    tasks: int

    def __str__(self) -> str:
        return f"{self.estimate:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def page(text: str) -> str:
    """Return the page with its answers made anew; the text around them stays."""
    for name, make in (("answers", _answers), ("tables", _tables)):
        before, _, rest = text.partition(f"<!-- {name}: begin -->\n")
        _, _, after = rest.partition(f"<!-- {name}: end -->\n")
        text = f"{before}<!-- {name}: begin -->\n\n{make()}\n<!-- {name}: end -->\n{after}"
    return text


def _answers() -> str:
    claims = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claim"]
    found = [{name: find(claim, suffix) for suffix, name in MODELS.items()} for claim in claims]
    main, *others = MODELS.values()
    lines = [
        f"| | claim | the paper | {main} | tasks × examples × seeds | answer | {' | '.join(others)} |",
        "|---|---|---|---|---|---|" + "---|" * len(others),
    ]
    for number, (claim, by_model) in enumerate(zip(claims, found, strict=True), start=1):
        one = by_model[main]
        says = f"{claim['says']} †" if claim.get("late") else claim["says"]
        size = "–" if one is None else f"{one.tasks} × {one.examples} × {one.seeds}"
        more = " | ".join(_cell(by_model[name]) for name in others)
        lines.append(
            f"| {number} | {says} | {claim['paper']} | {_cell(one)} | {size} | {answer(claim, one)} | {more} |"
        )
    return "\n".join(lines) + "\n"


def _cell(found: Found | None) -> str:
    return "not run" if found is None else str(found)


def answer(claim: Mapping[str, Any], found: Found | None) -> str:
    """Return the answer to a claim by the rules of the page; whatever the rows say, only complete ones answer."""
    if found is None:
        return "not run"
    examples, seeds = claim["planned"]
    if found.tasks < len(claim["tasks"]) or found.examples < examples or found.seeds < seeds:
        return "not complete"
    return verdict(claim["expected"], found, claim.get("points"))


def verdict(expected: str, found: Found, points: float | None = None) -> str:
    """Apply the rules: the interval decides, and where it does not, the claim stays open.

    >>> verdict("more", Found(5.0, 1.0, 9.0, 200, 2, 9)), verdict("more", Found(0.1, -1.5, 1.7, 200, 2, 9), 8.7)
    ('**confirmed**', '**refuted**')
    >>> verdict("equal", Found(0.5, -2.9, 3.9, 200, 2, 9))
    'open: some 670 examples a task'
    """
    low, high = found.low, found.high
    if expected in ("equal", "not-less"):
        inside = low > -_EQUAL and (expected == "not-less" or high < _EQUAL)
        outside = high < -_EQUAL or (expected == "equal" and low > _EQUAL)
    else:
        low, high = (low, high) if expected == "more" else (-high, -low)
        inside = low > 0
        nothing = points is not None and abs(points) > _NOTHING and low > -_NOTHING and high < _NOTHING
        outside = high < 0 or nothing
    if inside or outside:
        return "**confirmed**" if inside else "**refuted**"
    # The number with which the interval would be as narrow as "nothing".
    needed = found.examples * ((high - low) / 2 / _NOTHING) ** 2
    return f"open: some {_round(needed)} examples a task"


def _round(number: float) -> str:
    digits = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return f"{math.ceil(number / digits) * digits:,}"


def find(claim: Mapping[str, Any], suffix: str) -> Found | None:
    """Return what the rows of one model say, so far; None without any."""
    from zicl.lab.report.statistics import correct
    from zicl.lab.study.outcome import copied_nearest, copy_rate

    section = _section(claim["folder"] + suffix, claim["inference"])
    if section is None:
        return None
    measure = {"accuracy": correct, "copied": copy_rate, "nearest": copied_nearest}[claim.get("measure", "accuracy")]
    terms, against = claim["terms"], float(claim.get("against", 0))
    # Tasks on which a method is still being run are left out.
    counts = {
        t: {len(run.examples) for name in terms for run in section.row(name)[t].runs} for t in section.tasks(terms)
    }
    tasks = [task for task in claim["tasks"] if len(counts.get(task, ())) == 1]
    if not tasks:
        return None
    if method := claim.get("thirds"):
        far, near = (part.compare(terms, tasks=tasks, measure=measure) for part in section.thirds(method))
        if far is None or near is None:
            return None
        # Other texts in each: two independent intervals.
        width = [
            math.hypot(one.estimate - one.low, other.high - other.estimate) for one, other in ((near, far), (far, near))
        ]
        estimate = near.estimate - far.estimate
        low, high = estimate - width[0], estimate + width[1]
    else:
        value = section.compare(terms, tasks=tasks, measure=measure)
        if value is None:
            return None
        estimate, low, high = value.estimate - against, value.low - against, value.high - against
    runs = [run for name in terms for task in tasks for run in section.row(name)[task].runs]
    seeds = [{run.seed for run in section.row(name)[task].runs} for name in terms for task in tasks]
    drawn = [each for each in seeds if each != {None}]
    return Found(
        estimate,
        low,
        high,
        min(len(run.examples) for run in runs),
        len(set.intersection(*drawn)) if drawn else 1,
        len(tasks),
    )


def _section(folder: str, inference: str) -> Any:
    """Return the rows of an experiment, or of all parts of a study, under one inference."""
    from zicl.lab.report.collect import collect
    from zicl.lab.study.outcome import StudyOutcome

    paths = _folders(folder)
    if not paths:
        return None
    outcome = StudyOutcome(collect(paths), ROWS / folder)
    return next((each for each in outcome.sections if each.section.inference == inference), None)


def _folders(folder: str) -> list[Path]:
    return sorted(path.parent for path in (ROWS / folder).rglob("manifest.json"))


def _tables() -> str:
    """Return the accuracy of every method, with the encoder alone beside the language model's rows."""
    parts = []
    for suffix, name in MODELS.items():
        if paths := _folders("main" + suffix):
            parts.append(f"**{name}**\n\n{_table(paths)}")
    return "\n".join(parts) or "Nothing is stored yet.\n"


def _table(paths: Sequence[Path]) -> str:
    from zicl.lab.evaluate.experiment import PAPER_TASKS
    from zicl.lab.evaluate.store import NO_INFERENCE
    from zicl.lab.report.collect import collect

    results = collect(paths)
    tasks = [task for task in PAPER_TASKS if task in results.tasks]
    most = dict.fromkeys(tasks, 0)
    for key, cell in results.cells.items():
        most[key.task] = max([most[key.task], *(len(run.examples) for run in cell.runs)])
    lines = [f"| | {' | '.join(tasks)} | mean |", "|---|" + "---:|" * (len(tasks) + 1)]
    for section in results.sections:
        for method, traits in results.methods(section).items():
            cells = results.row(section, method)
            means = [_mean(cells.get(task), most[task]) for task in tasks]
            whole = f"{np.mean(means):.1f}" if all(mean is not None for mean in means) else "–"
            title = traits.title if section.inference == NO_INFERENCE else f"{traits.title}, {section.inference}"
            shown = ["–" if mean is None else f"{mean:.1f}" for mean in means]
            lines.append(f"| {title} | {' | '.join(shown)} | {whole} |")
    return "\n".join(lines) + "\n"


def _mean(cell: Any, examples: int) -> float | None:
    """Return the accuracy of a method on a task, once it has as many examples as the others."""
    if cell is None or not cell.runs or any(len(run.examples) < examples for run in cell.runs):
        return None
    return float(np.mean(list(cell.scores("accuracy").values())))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
