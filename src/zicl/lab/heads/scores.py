"""How much each head looks for the labels of its own kind, with the model these numbers belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from zicl._util.files import read_json, write_json
from zicl.exceptions import ConfigError, ModelError, StorageError
from zicl.lm.base import LanguageModel
from zicl.lm.heads import Head

# Where the scores of a study of heads are, in its folder.
FILE = "heads.json"
# What the prompts that heads are found on show: labelled training examples, as many of each label, or sentences of the
# raw corpus with labels that are drawn.
FoundOn = Literal["training", "corpus"]
Score = Annotated[float, Field(allow_inf_nan=False)]


class HeadScores(BaseModel):
    """The prefix-matching score of every head of one model, a row a layer, over ``prompts`` prompts of ``task``.

    ``found_on`` says what the demonstrations of these prompts were.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    identity: str
    task: str
    prompts: int = Field(ge=1)
    found_on: FoundOn = "training"
    scores: tuple[tuple[Score, ...], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rectangular(self) -> HeadScores:
        if len({len(row) for row in self.scores}) != 1 or not self.scores[0]:
            raise ValueError("every layer has to have as many heads, and at least one")
        return self

    @property
    def values(self) -> NDArray[np.float64]:
        """The scores, layers × heads."""
        return np.array(self.scores)

    def __getitem__(self, head: Head) -> float:
        return self.scores[head.layer][head.head]

    def top(self, count: int) -> tuple[Head, ...]:
        """The heads of the highest scores, highest first; of two alike the lower layer, then the lower number."""
        if not 0 <= count <= self.values.size:
            raise ConfigError(
                f"{count} heads were asked for, and {self.model} has {self.values.size}",
                hint="ask for fewer",
            )
        order = np.argsort(-self.values, axis=None, kind="stable")[:count]
        return tuple(Head(*divmod(int(place), self.values.shape[1])) for place in order)

    def check(self, lm: LanguageModel) -> None:
        """These are the scores of this very model."""
        if lm.identity != self.identity:
            raise ModelError(
                f"these are the heads of {self.model}, not of {lm.name} as it is here",
                hint="find the heads of this model anew: zicl study heads --find",
            )

    def write(self, path: Path) -> None:
        """Write them as JSON, whole or not at all."""
        write_json(path, self.model_dump(mode="json"))

    @classmethod
    def read(cls, path: Path) -> HeadScores:
        """Read them again, to the last digit."""
        try:
            return cls.model_validate(read_json(path))
        except FileNotFoundError as error:
            raise StorageError(f"there is no file {path}", hint="find the heads: zicl study heads --find") from error
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(map(str, wrong["loc"]))
            raise StorageError(
                f"{path} does not hold the scores of heads: {where + ': ' if where else ''}{wrong['msg']}",
                hint="remove it and find the heads again: zicl study heads --find",
            ) from error
