"""How much each head looks for the labels of its own kind, with the model these numbers belong to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from zicl._util.files import read_json, write_json
from zicl.exceptions import ConfigError, ModelError, StorageError
from zicl.lab.report.plotting import SUFFIXES, plot_style, save_figure
from zicl.lm.base import LanguageModel
from zicl.lm.heads import Head

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


# -- The map of a model's heads: a square a head, the darker the more it looks for labels like the answer.


# Inches a head: a rank of two digits has to fit into its square.
_SQUARE = 0.24


def draw_head_map(scores: HeadScores, path: Path, *, top: int = 5) -> list[Path]:
    """Draw the map as ``path`` with .svg and .png behind it, the ``top`` heads with their ranks; the files written."""
    with plot_style():
        figure = make_map(scores, top)
        return [save_figure(figure, path.with_name(path.name + suffix)) for suffix in SUFFIXES]


def make_map(scores: HeadScores, top: int = 5) -> Figure:
    """The map as a matplotlib figure: layers across, heads up."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    values = scores.values
    layers, heads = values.shape
    # Room for the title, the names of the axes and the scale beside the squares.
    figure = Figure(figsize=(max(3.4, layers * _SQUARE + 1.6), max(1.6, heads * _SQUARE + 1.1)), layout="constrained")
    panel = figure.subplots()
    # One grey after the other, so that it prints; less than nothing is as white as nothing.
    image = panel.imshow(values.T, cmap="Greys", vmin=0, vmax=max(float(values.max()), 1e-9), origin="lower")
    figure.suptitle(_title(scores), fontsize="large")
    panel.set(xlabel="layer", ylabel="head")
    panel.set_xticks(range(0, layers, 1 + layers // 32))
    panel.set_yticks(range(0, heads, 1 + heads // 32))
    for rank, head in enumerate(scores.top(min(top, values.size)), start=1):
        dark = scores[head] > 0.5 * float(values.max())
        panel.add_patch(Rectangle((head.layer - 0.5, head.head - 0.5), 1, 1, fill=False, linewidth=1.2))
        panel.text(head.layer, head.head, str(rank), ha="center", va="center", color="white" if dark else "black")
    figure.colorbar(image, ax=panel, label="prefix-matching score", shrink=0.9)
    return figure


def _title(scores: HeadScores) -> str:
    over = f"{scores.prompts} prompts of {scores.task}" if scores.task else f"{scores.prompts} prompts"
    over += " with sentences of the corpus" if scores.found_on == "corpus" else ""
    return f"Heads that look for the answer's label\n{scores.model}, {over}"
