"""A study: a question, the experiments that answer it, and the figures and findings computed from their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from zicl.lab.evaluate.methods import ExperimentMethod, Inference
from zicl.lab.heads.scores import FoundOn, HeadScores
from zicl.lab.report.study_summary import SummaryFigure
from zicl.lab.study.figures import StudyFigure
from zicl.lab.study.outcome import SectionOutcome, StudyOutcome

# The tasks of the paper's ablations.
PAPER_SIX = ("CR", "Amz5", "Yelp5", "Tweet", "MR", "SST2")

# A positive number, as a study option.
Count = Annotated[int, Field(ge=1)]

# Experiment settings under which only the model's context limits a prompt.
UNLIMITED: Mapping[str, Any] = {"prompt": {"tokens_all_demos": 1 << 20, "tokens_prompt": None}}

# The methods of an experiment, by name.
Methods = Mapping[str, ExperimentMethod]


class StudyOptions(BaseModel):
    """Settings of a study in addition to those of its experiments; here none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def finds_in_corpus(self) -> bool:
        """Whether attention heads are found on sentences of the corpus."""
        return False

    @model_validator(mode="after")
    def _distinct_values(self) -> Self:
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, tuple) and len(set(value)) < len(value):
                raise ValueError(f"{name} names something twice: {', '.join(map(str, value))}")
        return self


class StudySetup(Protocol):
    """The parts of a run that decide a study's experiments: number of demonstrations, corpus, language model."""

    @property
    def k(self) -> int:
        """Return the number of demonstrations."""
        ...

    def count_with_neighbour(self, share: float) -> tuple[int, ...]:
        """Return, for each seed, how many sentences of a share of the corpus have a physical neighbour."""
        ...

    def heads(self, task: str | None, examples: int, found_on: FoundOn) -> HeadScores:
        """Return the scores of the model's heads, found once on ``examples`` training examples of a task."""
        ...


@dataclass(frozen=True)
class StudyPart:
    """One experiment of a study: its methods, and the experiment settings that it needs."""

    name: str
    methods: Methods
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A declaration of a study; running it is up to ``run``.

    Its functions get the study's options first. ``parts`` returns the experiments; a method is in one part only.
    ``figures`` returns the figures, and ``findings`` the sentences about one section of the results (one inference).
    ``paper`` says what the paper reports.
    """

    name: str
    title: str
    question: str
    paper: str
    parts: Callable[[Any, StudySetup], Sequence[StudyPart]]
    figures: Callable[[Any, StudyOutcome], Sequence[StudyFigure | SummaryFigure]]
    findings: Callable[[Any, SectionOutcome], Iterable[str]]
    options: type[StudyOptions] = StudyOptions
    tasks: tuple[str, ...] = PAPER_SIX
    inferences: tuple[Inference, ...] = ("channel",)

    def all_findings(self, options: StudyOptions, outcome: StudyOutcome) -> list[str]:
        """Return the findings of every section, each after the section's name."""
        return [
            f"{section.name}: {finding}" for section in outcome.sections for finding in self.findings(options, section)
        ]
