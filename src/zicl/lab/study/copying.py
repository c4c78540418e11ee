"""Copying: labels beside demonstrations that are close to the input, and beside the input itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.report.cells import ReportSection
from zicl.lab.study.base import Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import changed, style_of
from zicl.lab.study.outcome import StudyOutcome, copy_rate, minus, per_cent, points

_ICL = ("icl-gold", "icl-random", "nearest-icl-gold", "nearest-icl-random")
_SAME = {"correct": "icl-gold-same-correct", "incorrect": "icl-gold-same-incorrect"}
_FAR, _NEAR = {"icl-gold": 1.0, "icl-random": -1.0}, {"nearest-icl-gold": 1.0, "nearest-icl-random": -1.0}


def _parts(_: StudyOptions, __: StudyInputs) -> list[StudyPart]:
    same = {
        name: changed(EXPERIMENT_METHODS["icl-gold"], f"the input itself with {kind} label", identical=kind)
        for kind, name in _SAME.items()
    }
    return [StudyPart("icl", {name: EXPERIMENT_METHODS[name] for name in _ICL}), StudyPart("identical", same)]


def _figures(_: StudyOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def icl(block: ReportSection) -> Sequence[Series]:
        return [outcome.by_task(block, EXPERIMENT_METHODS[name].title, style_of(name), name) for name in _ICL]

    def same(block: ReportSection) -> Sequence[Series]:
        # Both are ICL-gold, and have its colour.
        looks = {"correct": style_of("icl-gold"), "incorrect": replace(style_of("icl-gold"), hatch="xx")}
        return [
            outcome.by_task(block, f"label is {kind}", looks[kind], name, copy_rate) for kind, name in _SAME.items()
        ]

    return [
        StudyFigure("labels-far-and-near", "Gold and random labels, far and near", "", ACCURACY, outcome.panels(icl)),
        StudyFigure(
            "identical",
            "How often the label beside the input itself is predicted",
            "",
            "copied, per cent",
            outcome.panels(same),
        ),
    ]


def _findings(_: StudyOptions, outcome: StudyOutcome) -> list[str]:
    said = []
    for block in outcome.blocks:
        far, near = outcome.compare(block, _FAR), outcome.compare(block, _NEAR)
        more = outcome.compare(block, minus(_NEAR, _FAR))
        said.append(
            f"{outcome.name(block)}: gold minus random labels is {points(far)} for random demonstrations and "
            f"{points(near)} for nearest ones; the second minus the first is {points(more)} "
            f"({outcome.size(block, _ICL)})."
        )
        rates = {kind: outcome.compare(block, {name: 1}, measure=copy_rate) for kind, name in _SAME.items()}
        total = outcome.compare(block, dict.fromkeys(_SAME.values(), 0.5), measure=copy_rate)
        # Terms that weigh nothing keep it to the seeds of the others.
        without = outcome.compare(block, {"icl-gold": 1, **dict.fromkeys(_SAME.values(), 0.0)})
        said.append(
            f"{outcome.name(block)}: with the input itself among the demonstrations, its label there is predicted in "
            f"{per_cent(total)}: {per_cent(rates['correct'])} where it is correct, {per_cent(rates['incorrect'])} "
            f"where it is not ({outcome.size(block, list(_SAME.values()))}). Without it ICL-gold predicts the correct "
            f"label in {per_cent(without)}."
        )
    return said


STUDY = Study(
    name="copying",
    title="The copying effect",
    question="Does the correctness of labels matter more where demonstrations are close to the input, and is the label "
    "copied where the input itself is among them?",
    paper="With GPT-J (channel) on CR, Amz and Yelp, gold and random labels come out alike for random demonstrations, "
    "and random labels are much worse for nearest ones. With an identical demonstration on CR its label is predicted "
    "in 82.3 % (GPT-J; 90.8 % where it is correct, 73.9 % where not) and 88.0 % (GPT-NeoX; 94.2 % and 81.7 %).",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    tasks=("CR", "Amz", "Yelp"),
    needs_corpus=False,
)
