"""Copying: gold and random labels for random and nearest demonstrations, and for the input itself as one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.study.base import Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import style_of, variant
from zicl.lab.study.outcome import (
    SectionOutcome,
    StudyOutcome,
    copy_rate,
    interval_series,
    minus,
    percent,
    points,
)

_ICL = ("icl-gold", "icl-random", "nearest-icl-gold", "nearest-icl-random")
_NEAREST = "nearest-icl-gold"
_SAME = {"correct": "icl-gold-same-correct", "incorrect": "icl-gold-same-incorrect"}
_FAR, _NEAR = {"icl-gold": 1.0, "icl-random": -1.0}, {"nearest-icl-gold": 1.0, "nearest-icl-random": -1.0}


def _parts(_: StudyOptions, __: StudySetup) -> list[StudyPart]:
    same = {
        name: variant(EXPERIMENT_METHODS["icl-gold"], f"the input itself with {kind} label", identical=kind)
        for kind, name in _SAME.items()
    }
    return [StudyPart("icl", {name: EXPERIMENT_METHODS[name] for name in _ICL}), StudyPart("identical", same)]


def _figures(_: StudyOptions, outcome: StudyOutcome) -> list[StudyFigure]:
    def icl(section: SectionOutcome) -> Iterator[Series]:
        for name in _ICL:
            yield section.bars_by_task(EXPERIMENT_METHODS[name].title, style_of(name), name)

    def same(section: SectionOutcome) -> Iterator[Series]:
        # Both are ICL-gold, and have its colour.
        styles = {"correct": style_of("icl-gold"), "incorrect": replace(style_of("icl-gold"), hatch="xx")}
        for kind, name in _SAME.items():
            yield section.bars_by_task(f"label is {kind}", styles[kind], name, copy_rate)

    def by_closeness(section: SectionOutcome) -> Iterator[Series]:
        thirds = dict(zip(("farthest third", "nearest third"), section.thirds(_NEAREST), strict=True))
        for name in _NEAR:
            values = {third: part.compare({name: 1}) for third, part in thirds.items()}
            yield interval_series(EXPERIMENT_METHODS[name].title, style_of(name), values)

    copied = "How often the label beside the input itself is predicted"
    return [
        StudyFigure("labels-far-and-near", "Gold and random labels, far and near", "", ACCURACY, outcome.panels(icl)),
        StudyFigure(
            "labels-by-closeness",
            "Gold and random labels by closeness",
            "examples by the similarity of their nearest demonstration",
            ACCURACY,
            outcome.panels(by_closeness),
        ),
        StudyFigure("identical", copied, "", "copied, per cent", outcome.panels(same)),
    ]


def _findings(_: StudyOptions, section: SectionOutcome) -> Iterator[str]:
    yield (
        f"gold minus random labels is {points(section.compare(_FAR))} for random demonstrations and "
        f"{points(section.compare(_NEAR))} for nearest ones; the second minus the first is "
        f"{points(section.compare(minus(_NEAR, _FAR)))} ({section.size(_ICL)})."
    )
    rates = {kind: section.compare({name: 1}, measure=copy_rate) for kind, name in _SAME.items()}
    total = section.compare(dict.fromkeys(_SAME.values(), 0.5), measure=copy_rate)
    # Methods of weight zero restrict the comparison to their seeds.
    without = section.compare({"icl-gold": 1, **dict.fromkeys(_SAME.values(), 0.0)})
    yield (
        f"with the input itself among the demonstrations, its label there is predicted in {percent(total)}: "
        f"{percent(rates['correct'])} where it is correct, {percent(rates['incorrect'])} where it is not "
        f"({section.size(list(_SAME.values()))}). Without it ICL-gold predicts the correct label in {percent(without)}."
    )
    far, near = section.thirds(_NEAREST)
    yield (
        f"with nearest demonstrations gold minus random labels is {points(far.compare(_NEAR))} in the third of texts "
        f"whose nearest example is farthest ({far.median_similarity(_NEAREST)}) and {points(near.compare(_NEAR))} in "
        f"the third where it is nearest ({near.median_similarity(_NEAREST)})."
    )


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
)
