"""A study as its folder tells it: the question, what the paper found, what was found here, and the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from zicl._files import read_json
from zicl.exceptions import StorageError
from zicl.report.html.figures import Figure, figure_html, read_figure
from zicl.report.html.text import escape, slug

STUDY = "study.json"


class _Entry(BaseModel):
    # A later version may say more: what is not known here is left out of the page.
    model_config = ConfigDict(frozen=True, extra="ignore")


class _FigureEntry(_Entry):
    file: str
    title: str
    alt: str = ""


class _StudyEntry(_Entry):
    name: str
    title: str
    question: str = ""
    paper: str = ""
    findings: tuple[str, ...] = ()
    figures: tuple[_FigureEntry, ...] = ()


class Study(BaseModel):
    """What a study's folder says, its figures read, and the results folders in it."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    name: str
    title: str
    question: str
    paper: str
    findings: tuple[str, ...]
    figures: tuple[Figure, ...]
    results: tuple[Path, ...]

    @property
    def id(self) -> str:
        """The name of its part of the page."""
        return slug(f"study-{self.name}")


def read_study(folder: Path, results: tuple[Path, ...]) -> Study:
    """The study of a folder; its figures have to be inside it."""
    value: Any = read_json(folder / STUDY)
    try:
        entry = _StudyEntry.model_validate(value)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise StorageError(
            f"{folder / STUDY} is damaged: {where}: {error.errors()[0]['msg']}", hint="run the study again"
        ) from error
    figures = tuple(read_figure(folder, each.file, each.title, each.alt) for each in entry.figures)
    told = entry.model_dump(include={"name", "title", "question", "paper", "findings"})
    return Study(**told, figures=figures, results=results)


def study_html(study: Study, numbers: str) -> str:
    """A study's part of the page; ``numbers`` is the table behind it."""
    findings = "".join(f"<p>{escape(line)}</p>" for line in study.findings)
    parts = [
        f'<section class="study" id="{study.id}" aria-labelledby="{study.id}-title">',
        f'<h3 id="{study.id}-title">{escape(study.title)}</h3>',
        f'<p class="question">{escape(study.question)}</p>' if study.question else "",
        f'<div class="finding">{findings}</div>' if findings else "",
        f'<p class="paper"><span class="tag">The paper</span> {escape(study.paper)}</p>' if study.paper else "",
        *(figure_html(figure, study.id, 4) for figure in study.figures),
        f"<details><summary>The numbers behind it</summary>{numbers}</details>" if numbers else "",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)
