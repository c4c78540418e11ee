"""The prefix-matching scores of a model's attention heads: their file, the heads chosen by them, and their map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from zicl._util.files import read_json, write_json
from zicl._util.random import rng
from zicl.exceptions import ConfigError, ModelError, StorageError
from zicl.lab.report.plotting import SUFFIXES, plot_style, save_figure
from zicl.lm.base import LanguageModel
from zicl.lm.heads import Head

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The file of the scores, in the folder of the study of heads.
SCORES_FILE = "heads.json"
# The demonstrations of the prompts that heads are found on: labelled training examples, balanced over the labels, or
# corpus sentences with random labels.
FoundOn = Literal["training", "corpus"]
Score = Annotated[float, Field(allow_inf_nan=False)]


class HeadScores(BaseModel):
    """The prefix-matching score of every head of one model, one row per layer, averaged over ``prompts`` prompts.

    ``found_on`` is the kind of their demonstrations, ``task`` the task they are from.
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
            raise ValueError("every layer needs the same number of heads, at least one")
        return self

    @property
    def values(self) -> NDArray[np.float64]:
        """Return the scores as an array, layers × heads."""
        return np.array(self.scores)

    def __getitem__(self, head: Head) -> float:
        return self.scores[head.layer][head.head]

    def top(self, count: int) -> tuple[Head, ...]:
        """Return the heads with the highest scores, highest first; ties go to the lower layer, then the lower head."""
        if not 0 <= count <= self.values.size:
            raise ConfigError(
                f"{count} heads were requested, and {self.model} has {self.values.size}", hint="use a smaller number"
            )
        order = np.argsort(-self.values, axis=None, kind="stable")[:count]
        return tuple(Head(*divmod(int(place), self.values.shape[1])) for place in order)

    def check(self, lm: LanguageModel) -> None:
        """Check that these are the scores of this model."""
        if lm.identity != self.identity:
            raise ModelError(
                f"these are the heads of {self.model}, and {lm.name} is not the same model",
                hint="find the heads of this model: zicl study heads --find",
            )

    def write(self, path: Path) -> None:
        """Write the scores as JSON, atomically."""
        write_json(path, self.model_dump(mode="json"))

    @classmethod
    def read(cls, path: Path) -> HeadScores:
        """Read scores that ``write`` wrote; no digit is lost."""
        try:
            return cls.model_validate(read_json(path))
        except FileNotFoundError as error:
            raise StorageError(f"there is no file {path}", hint="find the heads: zicl study heads --find") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise StorageError(
                f"{path} does not hold the scores of heads: {where + ': ' if where else ''}{first['msg']}",
                hint="remove it and find the heads again: zicl study heads --find",
            ) from error


def random_like(
    heads: Sequence[Head], shape: tuple[int, int], *, draws: int, seed: int = 0
) -> tuple[tuple[Head, ...], ...]:
    """Draw other heads from the layers of these, the same number, ``draws`` times: the control for silencing them.

    ``shape`` is the model's number of layers and of heads per layer. Where a layer has too few other heads, the nearest
    layer that has some is used, the lower of two.
    """
    layers, per_layer = shape
    for head in heads:
        if not (0 <= head.layer < layers and 0 <= head.head < per_layer):
            raise ConfigError(
                f"there is no head {head} among {layers} layers of {per_layer}", hint="find the heads again"
            )
    if 2 * len(set(heads)) > layers * per_layer:
        raise ConfigError(
            f"too few other heads are left to compare with: {len(set(heads))} of {layers * per_layer} are silenced",
            hint="silence fewer heads",
        )
    return tuple(_draw_others(heads, shape, rng(seed, draw, "random heads")) for draw in range(draws))


def _draw_others(heads: Sequence[Head], shape: tuple[int, int], generator: np.random.Generator) -> tuple[Head, ...]:
    layers, per_layer = shape
    free = {n: sorted(set(range(per_layer)) - {each.head for each in heads if each.layer == n}) for n in range(layers)}
    drawn = []
    for head in dict.fromkeys(heads):
        layer = min((n for n in free if free[n]), key=lambda n: (abs(n - head.layer), n))
        drawn.append(Head(layer, free[layer].pop(int(generator.integers(len(free[layer]))))))
    return tuple(drawn)


# Inches per head: a rank of two digits has to fit into its square.
_SQUARE = 0.24


def draw_head_map(scores: HeadScores, path: Path, *, top: int = 5) -> list[Path]:
    """Draw the map as SVG and PNG, with the ranks of the ``top`` heads, and return the files.

    The suffixes are appended to ``path``.
    """
    with plot_style():
        figure = plot_head_map(scores, top)
        return [save_figure(figure, path.with_name(path.name + suffix)) for suffix in SUFFIXES]


def plot_head_map(scores: HeadScores, top: int = 5) -> Figure:
    """Return the map as a matplotlib figure: layers on the x axis, heads on the y axis, darker for higher scores."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    values = scores.values
    layers, heads = values.shape
    # Leave room for the title, the axis labels and the colour bar beside the squares.
    figure = Figure(figsize=(max(3.4, layers * _SQUARE + 1.6), max(1.6, heads * _SQUARE + 1.1)), layout="constrained")
    axes = figure.subplots()
    # Greys, so that it can be printed; negative scores are as white as zero.
    image = axes.imshow(values.T, cmap="Greys", vmin=0, vmax=max(float(values.max()), 1e-9), origin="lower")
    prompts = f"{scores.prompts} prompts of {scores.task}" if scores.task else f"{scores.prompts} prompts"
    prompts += " with sentences of the corpus" if scores.found_on == "corpus" else ""
    figure.suptitle(f"Heads that look for the answer's label\n{scores.model}, {prompts}", fontsize="large")
    axes.set(xlabel="layer", ylabel="head")
    axes.set_xticks(range(0, layers, 1 + layers // 32))
    axes.set_yticks(range(0, heads, 1 + heads // 32))
    for rank, head in enumerate(scores.top(min(top, values.size)), start=1):
        dark = scores[head] > 0.5 * float(values.max())
        axes.add_patch(Rectangle((head.layer - 0.5, head.head - 0.5), 1, 1, fill=False, linewidth=1.2))
        axes.text(head.layer, head.head, str(rank), ha="center", va="center", color="white" if dark else "black")
    figure.colorbar(image, ax=axes, label="prefix-matching score", shrink=0.9)
    return figure
