"""Heads: every method with and without the attention heads that copy labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator

from zicl._util.registry import did_you_mean
from zicl.lab.evaluate.methods import ExperimentMethod
from zicl.lab.heads.scores import SCORES_FILE, FoundOn, HeadScores, draw_head_map, random_like
from zicl.lab.report.study_summary import SummaryFigure
from zicl.lab.study.base import Count, Methods, Study, StudyOptions, StudyPart, StudySetup
from zicl.lab.study.figures import ACCURACY, Series, StudyFigure
from zicl.lab.study.method_grid import RETRIEVALS, WORDS, grid_method, method_name, method_style, method_title, variant
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome, minus, points
from zicl.lm.heads import Head

MAP = "map"
_RETRIEVALS, _WORDS = ("nearest", "diverse", "physical"), ("original", "synonyms")
# The methods by name, as retrieval strategy and words.
_GRID = {method_name(retrieval, words): (retrieval, words) for retrieval in _RETRIEVALS for words in _WORDS}
_DEMONSTRATIONS: Mapping[FoundOn, str] = {
    "training": "with training examples as demonstrations",
    "corpus": "with sentences of the corpus as demonstrations",
}


class HeadOptions(StudyOptions):
    """``count`` heads are silenced, found on ``examples`` training examples of ``task`` (by default the first task).

    ``methods`` are run with and without them; ``swept`` ones of these (by default all) also with each number of heads
    in ``sweep``, ``controls`` (by default all) with random heads of the same layers, ``draws`` times. ``found_on`` is
    the kind of demonstrations that heads are found on: nearest training examples with their labels, or nearest
    sentences of the corpus with random labels.
    """

    count: int = Field(5, ge=1)
    methods: tuple[str, ...] = Field(tuple(_GRID), min_length=1)
    sweep: tuple[Count, ...] = (1, 2, 10, 20)
    swept: tuple[str, ...] = Field(default_factory=lambda given: given.get("methods", ()))
    draws: int = Field(3, ge=1)
    controls: tuple[str, ...] = Field(default_factory=lambda given: given.get("methods", ()))
    task: str | None = None
    examples: int = Field(100, ge=1)
    found_on: FoundOn = "training"

    @property
    def finds_in_corpus(self) -> bool:
        """Whether attention heads are found on sentences of the corpus."""
        return self.found_on == "corpus"

    @field_validator("methods", "swept", "controls")
    @classmethod
    def _known(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        known = info.data.get("methods", tuple(_GRID))
        for name in names:
            if name not in known:
                raise did_you_mean("method of the study of heads", name, known)
        return names


def _silenced(name: str, count: int) -> str:
    return f"{name}-silent-{count}"


def _random(name: str, draw: int) -> str:
    return f"{name}-random-{draw}"


def _controls(options: HeadOptions, name: str) -> list[str]:
    """Return the names of a method with random heads silenced, one per draw; none unless it is a control."""
    return [_random(name, draw) for draw in range(1, options.draws + 1)] if name in options.controls else []


def _without(name: str, heads: Sequence[Head], what: str) -> ExperimentMethod:
    """Return a method with these heads silenced."""
    title = f"without {len(heads)} {what}"
    return variant(grid_method(*_GRID[name]), title, silenced=tuple(tuple(head) for head in heads))


def _parts(options: HeadOptions, setup: StudySetup) -> list[StudyPart]:
    scores = setup.heads(options.task, options.examples, options.found_on)
    top = scores.top(options.count)
    methods: Methods = {name: grid_method(*_GRID[name]) for name in options.methods}
    silenced: Methods = {
        _silenced(name, options.count): _without(name, top, "copying heads") for name in options.methods
    }
    layers, heads = scores.values.shape
    random: Methods = {
        _random(name, draw): _without(name, drawn, f"random heads, draw {draw}")
        for name in options.controls
        for draw, drawn in enumerate(random_like(top, (layers, heads), draws=options.draws), start=1)
    }
    sweep: Methods = {
        _silenced(name, count): _without(name, scores.top(count), "copying heads")
        for name in options.swept
        for count in options.sweep
        if count != options.count
    }
    parts = (StudyPart("arms", {**methods, **silenced}), StudyPart("random", random), StudyPart("sweep", sweep))
    return [part for part in parts if part.methods]


def _figures(options: HeadOptions, outcome: StudyOutcome) -> list[StudyFigure | SummaryFigure]:
    def accuracies(section: SectionOutcome) -> Iterator[Series]:
        silent = f"{options.count} copying heads silent"
        for name in options.methods:
            groups = {"all heads": {name: 1.0}, silent: {_silenced(name, options.count): 1.0}}
            yield section.bars(method_title(*_GRID[name]), method_style(*_GRID[name]), groups)

    def changes(section: SectionOutcome) -> Iterator[Series]:
        for name in options.methods:
            yield section.bars(method_title(*_GRID[name]), method_style(*_GRID[name]), _changes(options, name))

    def sweep(section: SectionOutcome) -> Iterator[Series]:
        counts = sorted({*options.sweep, options.count})
        for name in options.swept:
            if any(section.has(_silenced(name, count)) for count in counts if count != options.count):
                names = {0.0: name, **{float(count): _silenced(name, count) for count in counts}}
                title = f"{method_title(*_GRID[name])}, copying heads"
                yield section.line(title, method_style(*_GRID[name]), names)

    figures: list[StudyFigure | SummaryFigure] = [
        StudyFigure("heads", "Without the heads that copy", "", ACCURACY, outcome.panels(accuracies)),
        StudyFigure(
            "change", "What silencing heads changes: copying ones, and random ones of the same layers", "",
            "change in accuracy, points", outcome.panels(changes),
        ),
        StudyFigure(
            "sweep", "More and more heads silenced", "copying heads silenced", ACCURACY, outcome.panels(sweep), "lines",
        ),
    ]  # fmt: skip
    if (outcome.folder / SCORES_FILE).is_file():
        figures.append(draw_scores(outcome.folder, options))
    return figures


def draw_scores(folder: Path, options: HeadOptions) -> SummaryFigure:
    """Draw the map of the scores in a study's folder, and return it with a description."""
    scores = HeadScores.read(folder / SCORES_FILE)
    draw_head_map(scores, folder / MAP, top=options.count)
    top = ", ".join(f"{head} ({scores[head]:.3f})" for head in scores.top(options.count))
    prompts = f"{scores.prompts} prompts of {scores.task}, {_DEMONSTRATIONS[scores.found_on]}"
    alt = f"Over {prompts}, the highest scores, as layer.head, are: {top}."
    return SummaryFigure(f"{MAP}.svg", "Heads that look for the answer's label", alt)


def _changes(options: HeadOptions, name: str) -> dict[str, dict[str, float]]:
    """Return the weights of the change from silencing copying heads, and random heads in the mean over their draws."""
    changes = {"copying heads": {_silenced(name, options.count): 1.0, name: -1.0}}
    if controls := _controls(options, name):
        changes["random heads"] = {**dict.fromkeys(controls, 1 / len(controls)), name: -1.0}
    return changes


def _findings(options: HeadOptions, section: SectionOutcome) -> Iterator[str]:
    gains = {name: _changes(options, name)["copying heads"] for name in options.methods}

    def mean(retrievals: Sequence[str], words: Sequence[str]) -> dict[str, float]:
        names = [method_name(retrieval, each) for retrieval in retrievals for each in words]
        return {method: weight / len(names) for name in names for method, weight in gains[name].items()}

    each = [f"{points(section.compare(gain))} for {_in_words(name)}" for name, gain in gains.items()]
    every = [*gains, *(_silenced(name, options.count) for name in gains)]
    against = _against_random(options, section)
    silenced = f"without {options.count} copying heads accuracy changes by {', '.join(each)} ({section.size(every)})."
    if len(gains) < len(_GRID):
        yield silenced + against
        return
    yield silenced
    # The paper claims something about the retrieval strategy and about the words, each in the mean over the other.
    by_retrieval = section.compare(minus(mean(["nearest"], _WORDS), mean(["physical"], _WORDS)))
    by_words = section.compare(minus(mean(_RETRIEVALS, ["original"]), mean(_RETRIEVALS, ["synonyms"])))
    yield (
        "this change for nearest minus that for physical neighbour, over both kinds of words, is "
        f"{points(by_retrieval)}; with original labels minus with synonyms, over the three ways, {points(by_words)}."
        f"{against}"
    )


def _in_words(name: str) -> str:
    retrieval, words = _GRID[name]
    return f"{RETRIEVALS[retrieval].lower()} with {WORDS[words]}"


def _against_random(options: HeadOptions, section: SectionOutcome) -> str:
    """Compare copying heads with random heads, for the methods that were run with both."""
    comparisons, methods = list[str](), list[str]()
    for name in options.controls:
        controls = _controls(options, name)
        if section.has(*controls):
            weights = {_silenced(name, options.count): 1.0, **dict.fromkeys(controls, -1 / len(controls))}
            comparisons.append(f"{points(section.compare(weights))} for {_in_words(name)}")
            methods += weights
    if not comparisons:
        return ""
    return (
        f" Without copying heads minus without random heads of the same layers, {options.draws} draws of these, it is "
        f"{', '.join(comparisons)} ({section.size(methods)})."
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
