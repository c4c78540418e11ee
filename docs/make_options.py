"""Write the tables and the figure of the stored rows into docs/results/options.md: ``python docs/make_options.py``."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "results" / "options.md"
FIGURE = PAGE.with_name("share.svg")
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
ROWS = BENCHMARKS / "results"
# By method: about how many inputs share one set of demonstrations.
INPUTS_PER_SET = {"z-icl": "1", "share-8": "8", "share-32": "32"}
# Of every table: the folders of its rows, the baseline, and the tasks if not all.
TABLES = {
    "options": (["options"], "z-icl", None),
    "confirmed": (["confirm", "evaluation"], "z-icl+cosine", None),
    "topics": (["kinds"], "z-icl", ["AGNews"]),
    "pairs": (["kinds"], "z-icl", ["RTE"]),
    "choice": (["choice"], "z-icl", None),
}
_MARKED = re.compile(r"(<!-- (?P<name>[a-z-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with its tables made anew; the text around them is kept."""
    return _MARKED.sub(lambda match: f"{match[1]}\n{_table(match['name'])}\n\n{match[3]}", text)


def _table(name: str) -> str:
    make_table = runpy.run_path(str(BENCHMARKS / "options.py"))["table"]
    folders, baseline, tasks = TABLES[name]
    return str(make_table([ROWS / folder for folder in folders], baseline, tasks))


def draw() -> None:
    """Draw accuracy against forward tokens for each number of inputs that share demonstrations."""
    from zicl.lab.report.plotting import new_figure, plot_style, save_figure

    points: dict[str, Any] = runpy.run_path(str(BENCHMARKS / "options.py"))["points"](ROWS / "options", INPUTS_PER_SET)
    with plot_style():
        figure = new_figure(4.6, 2.8)
        axes = figure.add_subplot()
        for suffix, marker, line in (("", "o", "-"), (", batch", "s", "--")):
            tokens, accuracy = zip(*(points[f"{name}{suffix}"] for name in INPUTS_PER_SET), strict=True)
            axes.plot(tokens, accuracy, marker=marker, linestyle=line, color="black", label=f"Z-ICL{suffix}")
            for point, shared in zip(zip(tokens, accuracy, strict=True), INPUTS_PER_SET.values(), strict=True):
                axes.annotate(shared, point, textcoords="offset points", xytext=(4, 4))
        axes.set_xscale("log")
        axes.set_xlabel("forward tokens an input")
        axes.set_ylabel("accuracy, mean over tasks")
        axes.legend(frameon=False)
        save_figure(figure, FIGURE)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()
