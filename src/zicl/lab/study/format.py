"""Format: how many demonstrations, and whether they have to be pairs of inputs and labels."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS, ExperimentMethod
from zicl.lab.report.cells import ReportSection
from zicl.lab.study.base import UNLIMITED, Count, Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import changed, style_of
from zicl.lab.study.outcome import StudyOutcome, points

_SHOWN = {"z-icl": "Z-ICL", "inputs-only": "Inputs only", "icl-gold": "ICL-gold"}


class FormatOptions(StudyOptions):
    """``k`` are the numbers of demonstrations; ``inputs_only`` those for which inputs stand alone as well."""

    k: tuple[Count, ...] = Field((1, 2, 4, 8, 16, 32, 64), min_length=1)
    inputs_only: tuple[Count, ...] = Field((1, 2, 4, 8, 16, 32, 64), min_length=1)


def _bases() -> dict[str, ExperimentMethod]:
    ours = EXPERIMENT_METHODS["z-icl"]
    alone = changed(ours, "inputs only", labelling={"words": "none"})
    return {"z-icl": ours, "inputs-only": alone, "icl-gold": EXPERIMENT_METHODS["icl-gold"]}


def _parts(options: FormatOptions, _: StudyInputs) -> list[StudyPart]:
    counts = {"z-icl": options.k, "inputs-only": options.inputs_only, "icl-gold": options.k}
    arms = {
        f"{name}-k{k}": changed(base, f"k = {k}", retrieval={"k": k})
        for name, base in _bases().items()
        for k in counts[name]
    }
    return [StudyPart("k", {"no-demos": EXPERIMENT_METHODS["no-demos"], **arms}, UNLIMITED)]


def _figures(options: FormatOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    counts = sorted({*options.k, *options.inputs_only})

    def series(block: ReportSection) -> Sequence[Series]:
        lines = [
            outcome.line(block, title, style_of(name), {float(k): f"{name}-k{k}" for k in counts})
            for name, title in _SHOWN.items()
        ]
        flat = dict.fromkeys([float(k) for k in counts], "no-demos")
        return [*lines, outcome.line(block, "No-demos", style_of("no-demos"), flat)]

    panels, title = outcome.panels(series), "How many demonstrations, and in which form"
    return [StudyFigure("format", title, "k, demonstrations", ACCURACY, panels, "lines", logarithmic=True)]


def _findings(options: FormatOptions, outcome: StudyOutcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        both = [k for k in options.inputs_only if outcome.has(block, f"z-icl-k{k}", f"inputs-only-k{k}")]
        if both:
            pairs = {f"z-icl-k{k}": 1 / len(both) for k in both} | {f"inputs-only-k{k}": -1 / len(both) for k in both}
            alone = {f"inputs-only-k{k}": 1 / len(both) for k in both} | {"no-demos": -1.0}
            shown = ", ".join(str(k) for k in sorted(both))
            said.append(
                f"{outcome.name(block)}: over k = {shown}, Z-ICL minus inputs only is "
                f"{points(outcome.compare(block, pairs))} and inputs only minus no-demos "
                f"{points(outcome.compare(block, alone))} ({outcome.size(block, [*pairs, 'no-demos'])})."
            )
        least, most = (f"z-icl-k{k}" for k in (min(options.k), max(options.k)))
        every = {f"z-icl-k{k}": 1 / len(options.k) for k in options.k}
        gold = {f"icl-gold-k{k}": -1 / len(options.k) for k in options.k}
        grown = ""
        if most != least:
            change = points(outcome.compare(block, {most: 1, least: -1}))
            grown = f"with k = {max(options.k)} minus k = {min(options.k)} is {change}; over all k it "
        said.append(
            f"{outcome.name(block)}: Z-ICL {grown}is "
            f"{points(outcome.compare(block, every | {'no-demos': -1}))} against no-demos and "
            f"{points(outcome.compare(block, every | gold))} against ICL-gold "
            f"({outcome.size(block, [*every, *gold])})."
        )
    return said


STUDY = Study(
    name="format",
    title="How many demonstrations, and in which form",
    question="How many demonstrations does Z-ICL need, and does it gain from relevant text alone or from pairs of "
    "inputs and labels?",
    paper="For k from 1 to 64 Z-ICL is better than no demonstrations and on par with ICL-gold; retrieved inputs "
    "without labels are much worse.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=FormatOptions,
)
