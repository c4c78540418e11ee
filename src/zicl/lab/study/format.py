"""Format: the number of demonstrations, and whether they have to be pairs of inputs and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.study.base import UNLIMITED, Count, Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import style_of, variant
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome, points

_TITLES = {"z-icl": "Z-ICL", "inputs-only": "Inputs only", "icl-gold": "ICL-gold"}


class FormatOptions(StudyOptions):
    """``k`` are the numbers of demonstrations; ``inputs_only`` those of demonstrations without labels."""

    k: tuple[Count, ...] = Field((1, 2, 4, 8, 16, 32, 64), min_length=1)
    inputs_only: tuple[Count, ...] = Field((1, 2, 4, 8, 16, 32, 64), min_length=1)


def _name(base: str, k: int) -> str:
    return f"{base}-k{k}"


def _parts(options: FormatOptions, _: StudySetup) -> list[StudyPart]:
    ours = EXPERIMENT_METHODS["z-icl"]
    bases = {
        "z-icl": (ours, options.k),
        "inputs-only": (variant(ours, "inputs only", labelling={"words": "none"}), options.inputs_only),
        "icl-gold": (EXPERIMENT_METHODS["icl-gold"], options.k),
    }
    methods = {
        _name(name, k): variant(base, f"k = {k}", retrieval={"k": k}) for name, (base, ks) in bases.items() for k in ks
    }
    return [StudyPart("k", {"no-demos": EXPERIMENT_METHODS["no-demos"], **methods}, UNLIMITED)]


def _figures(options: FormatOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    ks = sorted({*options.k, *options.inputs_only})

    def series(section: SectionOutcome) -> Iterator[Series]:
        for name, title in _TITLES.items():
            yield section.line(title, style_of(name), {float(k): _name(name, k) for k in ks})
        yield section.line("No-demos", style_of("no-demos"), dict.fromkeys(map(float, ks), "no-demos"))

    panels, title = outcome.panels(series), "How many demonstrations, and in which form"
    return [StudyFigure("format", title, "k, demonstrations", ACCURACY, panels, "lines", log_x=True)]


def _mean(base: str, ks: Sequence[int], sign: int = 1) -> dict[str, float]:
    """Return the weights of the mean over several k."""
    return {_name(base, k): sign / len(ks) for k in ks}


def _findings(options: FormatOptions, section: SectionOutcome) -> Iterator[str]:
    both = [k for k in options.inputs_only if section.has(_name("z-icl", k), _name("inputs-only", k))]
    if both:
        pairs = _mean("z-icl", both) | _mean("inputs-only", both, -1)
        inputs = _mean("inputs-only", both) | {"no-demos": -1.0}
        yield (
            f"over k = {', '.join(map(str, sorted(both)))}, Z-ICL minus inputs only is "
            f"{points(section.compare(pairs))} and inputs only minus no-demos {points(section.compare(inputs))} "
            f"({section.size([*pairs, 'no-demos'])})."
        )
    least, most = min(options.k), max(options.k)
    growth = ""
    if most != least:
        change = section.compare({_name("z-icl", most): 1, _name("z-icl", least): -1})
        growth = f"with k = {most} minus k = {least} is {points(change)}; over all k it "
    every, gold = _mean("z-icl", options.k), _mean("icl-gold", options.k, -1)
    yield (
        f"Z-ICL {growth}is {points(section.compare(every | {'no-demos': -1}))} against no-demos and "
        f"{points(section.compare(every | gold))} against ICL-gold ({section.size([*every, *gold])})."
    )


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
