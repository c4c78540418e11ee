"""A study as its folder tells it: the question, what the paper found, what was found here, and the figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zicl.lab.report.html.figures import Figure, figure_html, read_figure
from zicl.lab.report.html.text import escape, slug
from zicl.lab.report.study_summary import Told


@dataclass(frozen=True)
class Study:
    """What a study's folder says, its figures read, and the results folders in it."""

    told: Told
    figures: tuple[Figure, ...]
    results: tuple[Path, ...]
    # Where another study on the page has this name: the folder that tells them apart.
    within: str = ""

    @property
    def name(self) -> str:
        """Its name on the page."""
        return f"{self.told.name} ({self.within})" if self.within else self.told.name

    @property
    def title(self) -> str:
        """Its title on the page."""
        return f"{self.told.title} ({self.within})" if self.within else self.told.title

    @property
    def id(self) -> str:
        """The name of its part of the page."""
        return slug(f"study-{self.name}")


def read_study(folder: Path, results: tuple[Path, ...]) -> Study:
    """The study of a folder; its figures have to be inside it."""
    told = Told.read(folder)
    return Study(told, tuple(read_figure(folder, each.file, each.title, each.alt) for each in told.figures), results)


def study_html(study: Study, numbers: str) -> str:
    """A study's part of the page; ``numbers`` is the table behind it."""
    told = study.told
    findings = "".join(f"<p>{escape(line)}</p>" for line in told.findings)
    parts = [
        f'<section class="study" id="{study.id}" aria-labelledby="{study.id}-title">',
        f'<h3 id="{study.id}-title">{escape(study.title)}</h3>',
        f'<p class="question">{escape(told.question)}</p>' if told.question else "",
        f'<div class="finding">{findings}</div>' if findings else "",
        f'<p class="paper"><span class="tag">The paper</span> {escape(told.paper)}</p>' if told.paper else "",
        *(figure_html(figure, study.id, 4) for figure in study.figures),
        f"<details><summary>The numbers behind it</summary>{numbers}</details>" if numbers else "",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)
