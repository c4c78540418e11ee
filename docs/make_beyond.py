"""Puts the tables and the figure of the stored rows into docs/BEYOND.md: ``python docs/make_beyond.py``."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "BEYOND.md"
FIGURE = Path(__file__).parent / "share.svg"
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
ROWS = BENCHMARKS / "results"
# About how many inputs share a set of demonstrations.
KNOB = {"z-icl": "1", "share-8": "8", "share-32": "32"}
# Every table: the folders of its rows, what all are compared with, and the tasks if not all.
TABLES = {
    "options": (["beyond"], "z-icl", None),
    "confirmed": (["confirm", "evaluation"], "z-icl+", None),
    "topics": (["kinds"], "z-icl", ["AGNews"]),
    "pairs": (["kinds"], "z-icl", ["RTE"]),
    "choice": (["choice"], "z-icl", None),
}
_PLACE = re.compile(r"(<!-- (?P<name>[a-z-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def page(text: str) -> str:
    """The page with its tables made anew; the sentences around them stay."""
    return _PLACE.sub(lambda place: f"{place[1]}\n{_made(place['name'])}\n\n{place[3]}", text)


def _made(name: str) -> str:
    table = runpy.run_path(str(BENCHMARKS / "beyond.py"))["table"]
    folders, base, tasks = TABLES[name]
    return str(table([ROWS / folder for folder in folders], base, tasks))


def draw() -> None:
    """Accuracy against forward tokens along the knob."""
    from matplotlib.figure import Figure

    from zicl.lab.report.plotting import plot_style, save_figure

    points: dict[str, Any] = runpy.run_path(str(BENCHMARKS / "beyond.py"))["points"](ROWS / "beyond", KNOB)
    with plot_style():
        figure = Figure(figsize=(4.6, 2.8), layout="constrained")
        axes = figure.add_subplot()
        for more, marker, line in (("", "o", "-"), (", batch", "s", "--")):
            tokens, accuracy = zip(*(points[f"{name}{more}"] for name in KNOB), strict=True)
            axes.plot(tokens, accuracy, marker=marker, linestyle=line, color="black", label=f"Z-ICL{more}")
            for place, shared in zip(zip(tokens, accuracy, strict=True), KNOB.values(), strict=True):
                axes.annotate(shared, place, textcoords="offset points", xytext=(4, 4))
        axes.set_xscale("log")
        axes.set_xlabel("forward tokens an input")
        axes.set_ylabel("accuracy, mean over tasks")
        axes.legend(frameon=False)
        save_figure(figure, FIGURE)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()
