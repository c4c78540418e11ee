"""The map of a model's heads: a square a head, the darker the more it looks for labels like the answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from zicl.lab.heads.scores import HeadScores
from zicl.lab.report.drawing import SUFFIXES, drawing, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches a head: a rank of two digits has to fit into its square.
_SQUARE = 0.24


def draw_map(scores: HeadScores, path: Path, *, top: int = 5) -> list[Path]:
    """Draw the map as ``path`` with .svg and .png behind it, the ``top`` heads with their ranks; the files written."""
    with drawing():
        figure = make_map(scores, top)
        return [save(figure, path.with_name(path.name + suffix)) for suffix in SUFFIXES]


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
