"""What a study is: a question, the experiments that answer it, and what to make of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from zicl.lab.evaluate.methods import EXPERIMENT_METHODS, ExperimentMethod, Inference
from zicl.lab.heads.scores import FoundOn, HeadScores
from zicl.lab.report.study_summary import DrawnFigure
from zicl.lab.study.figures import StudyFigure
from zicl.lab.study.outcome import StudyOutcome

# The tasks of the paper's ablations.
PAPER_SIX = ("CR", "Amz5", "Yelp5", "Tweet", "MR", "SST2")

# A number of something, as options have it.
Count = Annotated[int, Field(ge=1)]

# No limit but the model's context, which prompts always keep to.
UNLIMITED: Mapping[str, Any] = {"prompt": {"tokens_all_demos": 1 << 20}}

# The methods of an experiment by name.
Arms = Mapping[str, ExperimentMethod]


class StudyOptions(BaseModel):
    """What can be set of a study beside its experiments; one without options has these."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def finds_in_corpus(self) -> bool:
        """Whether heads are found on sentences of the corpus."""
        return False

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, tuple) and len(set(value)) < len(value):
                raise ValueError(f"{name} names something twice: {', '.join(map(str, value))}")
        return self


class StudyInputs(Protocol):
    """What the experiments of a study may depend on: the sizes of a run, its corpus, its model."""

    @property
    def k(self) -> int:
        """How many demonstrations there are."""
        ...

    def accompanied(self, share: float) -> tuple[int, ...]:
        """For each seed, how many sentences of a share of the corpus have a neighbour."""
        ...

    def heads(self, task: str | None, examples: int, found_on: FoundOn) -> HeadScores:
        """The scores of the model's heads, found on so many training examples of a task, once."""
        ...


@dataclass(frozen=True)
class StudyPart:
    """One experiment of a study: its methods, and what else of an experiment it sets."""

    name: str
    arms: Arms
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, Any]:
        """Methods as an experiment names and defines them."""
        return {
            "methods": tuple(self.arms),
            "define": {name: arm for name, arm in self.arms.items() if EXPERIMENT_METHODS.get(name) != arm},
        }


@dataclass(frozen=True)
class Study:
    """A declaration: nothing runs here. ``paper`` says what the paper found.

    ``parts`` are its experiments, ``figures`` and ``findings`` what their rows show; each is given the study's options.
    No method stands in two parts.
    """

    name: str
    title: str
    question: str
    paper: str
    parts: Callable[[Any, StudyInputs], Sequence[StudyPart]]
    figures: Callable[[Any, StudyOutcome], Sequence[StudyFigure | DrawnFigure]]
    findings: Callable[[Any, StudyOutcome], Sequence[str]]
    options: type[StudyOptions] = StudyOptions
    tasks: tuple[str, ...] = PAPER_SIX
    inferences: tuple[Inference, ...] = ("channel",)
    needs_corpus: bool = True
