"""Heads: every method with and without the attention heads that copy labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, field_validator

from zicl._util.registry import did_you_mean
from zicl.lab.evaluate.methods import ExperimentMethod
from zicl.lab.heads.find import random_like
from zicl.lab.heads.scores import FILE, FoundOn, HeadScores, draw_head_map
from zicl.lab.report.cells import ReportSection
from zicl.lab.report.study_summary import DrawnFigure
from zicl.lab.study.base import Arms, Count, Study, StudyInputs, StudyOptions, StudyPart
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import RETRIEVALS, WORDS, changed, grid_method, method_name, method_style, method_title
from zicl.lab.study.outcome import StudyOutcome, minus, points
from zicl.lm.heads import Head

MAP = "map"
_WAYS, _WORDS = ("nearest", "diverse", "physical"), ("original", "synonyms")
_ARMS = {method_name(way, words): (way, words) for way in _WAYS for words in _WORDS}


_SHOWN: Mapping[FoundOn, str] = {
    "training": "with training examples as demonstrations",
    "corpus": "with sentences of the corpus as demonstrations",
}


class HeadOptions(StudyOptions):
    """``count`` heads are silenced, found on ``examples`` training examples of ``task`` (the first, if none is named).

    ``swept`` methods are run with each number of ``sweep`` as well, ``controls`` with so many random heads of the same
    layers, ``draws`` times. ``found_on`` is what the prompts show that heads are found on: nearest training examples
    with their labels, or nearest sentences of the corpus with random ones.
    """

    count: int = Field(5, ge=1)
    sweep: tuple[Count, ...] = (1, 2, 10, 20)
    swept: tuple[str, ...] = tuple(_ARMS)
    draws: int = Field(3, ge=1)
    controls: tuple[str, ...] = tuple(_ARMS)
    task: str | None = None
    examples: int = Field(100, ge=1)
    found_on: FoundOn = "training"

    @property
    def finds_in_corpus(self) -> bool:
        """Whether heads are found on sentences of the corpus."""
        return self.found_on == "corpus"

    @field_validator("swept", "controls")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in _ARMS:
                raise did_you_mean("method of the study of heads", name, _ARMS)
        return names


def _silent(name: str, count: int) -> str:
    return f"{name}-silent-{count}"


def _random(name: str, draw: int) -> str:
    return f"{name}-random-{draw}"


def _without(base: str, heads: Sequence[Head], what: str) -> ExperimentMethod:
    """A method without some heads."""
    return changed(
        grid_method(*_ARMS[base]), f"without {len(heads)} {what}", silenced=tuple(tuple(head) for head in heads)
    )


def _parts(options: HeadOptions, setup: StudyInputs) -> list[StudyPart]:
    scores = setup.heads(options.task, options.examples, options.found_on)
    found = scores.top(options.count)
    arms: Arms = {name: grid_method(*which) for name, which in _ARMS.items()}
    silent: Arms = {_silent(name, options.count): _without(name, found, "copying heads") for name in _ARMS}
    layers, heads = scores.values.shape
    random: Arms = {
        _random(name, draw): _without(name, drawn, f"random heads, draw {draw}")
        for name in options.controls
        for draw, drawn in enumerate(random_like(found, (layers, heads), draws=options.draws), start=1)
    }
    sweep: Arms = {
        _silent(name, count): _without(name, scores.top(count), "copying heads")
        for name in options.swept
        for count in options.sweep
        if count != options.count
    }
    parts = (StudyPart("arms", {**arms, **silent}), StudyPart("random", random), StudyPart("sweep", sweep))
    return [part for part in parts if part.arms]


def _figures(options: HeadOptions, outcome: StudyOutcome) -> list[StudyFigure | DrawnFigure]:
    def silenced(block: ReportSection) -> Iterator[Series]:
        for name, which in _ARMS.items():
            groups = {"all heads": name, f"{options.count} copying heads silent": _silent(name, options.count)}
            yield outcome.bars(block, method_title(*which), method_style(*which), groups)

    def sweep(block: ReportSection) -> Iterator[Series]:
        counts = sorted({*options.sweep, options.count})
        for name in options.swept:
            names = {0.0: name, **{float(count): _silent(name, count) for count in counts}}
            if any(outcome.has(block, _silent(name, count)) for count in counts if count != options.count):
                yield outcome.line(
                    block, f"{method_title(*_ARMS[name])}, copying heads", method_style(*_ARMS[name]), names
                )

    def change(block: ReportSection) -> Iterator[Series]:
        for name, which in _ARMS.items():
            yield outcome.differences(block, method_title(*which), method_style(*which), _changes(options, name))

    made: list[StudyFigure | DrawnFigure] = [
        StudyFigure("heads", "Without the heads that copy", "", ACCURACY, outcome.panels(lambda b: [*silenced(b)])),
        StudyFigure(
            "change", "What silencing heads changes: copying ones, and random ones of the same layers", "",
            "change in accuracy, points", outcome.panels(lambda b: [*change(b)]),
        ),
        StudyFigure(
            "sweep", "More and more heads silenced", "copying heads silenced", ACCURACY,
            outcome.panels(lambda b: [*sweep(b)]), "lines",
        ),
    ]  # fmt: skip
    if (outcome.folder / FILE).is_file():
        made.append(draw_scores(outcome.folder, options))
    return made


def draw_scores(folder: Path, options: HeadOptions) -> DrawnFigure:
    """Draw the map of the scores beside them."""
    scores = HeadScores.read(folder / FILE)
    draw_head_map(scores, folder / MAP, top=options.count)
    top = ", ".join(f"{head} ({scores[head]:.3f})" for head in scores.top(options.count))
    over = f"{scores.prompts} prompts of {scores.task}, {_SHOWN[scores.found_on]}"
    said = f"Over {over}, the highest scores, as layer.head, are: {top}."
    return DrawnFigure(f"{MAP}.svg", "Heads that look for the answer's label", said)


def _controls(options: HeadOptions, name: str) -> list[str]:
    """The random draws of a method, if it has any."""
    return [_random(name, draw) for draw in range(1, options.draws + 1)] if name in options.controls else []


def _changes(options: HeadOptions, name: str) -> dict[str, dict[str, float]]:
    """What silencing copying heads changes, and what random ones change, in the mean over their draws."""
    found = {"copying heads": {_silent(name, options.count): 1.0, name: -1.0}}
    if drawn := _controls(options, name):
        found["random heads"] = {**dict.fromkeys(drawn, 1 / len(drawn)), name: -1.0}
    return found


def _mean(gains: Mapping[str, Mapping[str, float]], ways: Sequence[str], words: Sequence[str]) -> dict[str, float]:
    """What silencing changes, in the mean over these ways to find sentences and these words."""
    names = [method_name(way, each) for way in ways for each in words]
    return {method: weight / len(names) for name in names for method, weight in gains[name].items()}


def _said(name: str) -> str:
    way, words = _ARMS[name]
    return f"{RETRIEVALS[way].lower()} with {WORDS[words]}"


def _findings(options: HeadOptions, outcome: StudyOutcome) -> list[str]:
    gains = {name: _changes(options, name)["copying heads"] for name in _ARMS}
    # What the paper says of each: its claims are about one at a time, whatever the other is.
    by_way = minus(_mean(gains, ["nearest"], _WORDS), _mean(gains, ["physical"], _WORDS))
    by_words = minus(_mean(gains, _WAYS, ["original"]), _mean(gains, _WAYS, ["synonyms"]))
    said = []
    for block in outcome.blocks:
        each = [f"{points(outcome.compare(block, gain))} for {_said(name)}" for name, gain in gains.items()]
        every = [*_ARMS, *(_silent(name, options.count) for name in _ARMS)]
        said.append(
            f"{outcome.name(block)}: without {options.count} copying heads accuracy changes by {', '.join(each)} "
            f"({outcome.size(block, every)})."
        )
        said.append(
            f"{outcome.name(block)}: this change for nearest minus that for physical neighbour, over both kinds of "
            f"words, is {points(outcome.compare(block, by_way))}; with original labels minus with synonyms, over the "
            f"three ways, {points(outcome.compare(block, by_words))}.{_against(options, outcome, block)}"
        )
    return said


def _against(options: HeadOptions, outcome: StudyOutcome, block: ReportSection) -> str:
    """Copying heads against random ones, of the methods that were run with both."""
    found, methods = list[str](), list[str]()
    for name in options.controls:
        drawn = _controls(options, name)
        if outcome.has(block, *drawn):
            weights = {_silent(name, options.count): 1.0, **dict.fromkeys(drawn, -1 / len(drawn))}
            found.append(f"{points(outcome.compare(block, weights))} for {_said(name)}")
            methods += weights
    if not found:
        return ""
    return (
        f" Without copying heads minus without random heads of the same layers, {options.draws} draws of these, it is "
        f"{', '.join(found)} ({outcome.size(block, methods)})."
    )


STUDY = Study(
    name="heads",
    title="Heads that copy labels",
    question="If the attention heads that copy labels are silenced, do the methods that suffer from copying gain most?",
    paper="With the heads silenced all methods improve; nearest improves most and physical neighbour least, and "
    "methods with synonym labels improve much less than those without.",
    parts=_parts,
    figures=_figures,
    findings=_findings,
    options=HeadOptions,
    inferences=("channel", "direct"),
)
