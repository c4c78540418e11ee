"""The summary of a study, ``study.json``: written by the study, read by the HTML report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from zicl._util.files import read_json, write_json
from zicl.exceptions import StorageError

FILE = "study.json"


@dataclass(frozen=True)
class SummaryFigure:
    """A figure of a study: its file in the study's folder, its title, and its content in words."""

    file: str
    title: str
    alt: str


@dataclass(frozen=True)
class StudySummary:
    """The question of a study, the paper's result, the findings here, and the figures beside it."""

    name: str
    title: str
    question: str
    paper: str
    findings: tuple[str, ...]
    figures: tuple[SummaryFigure, ...]

    def write(self, folder: Path) -> None:
        """Write the summary into a study's folder."""
        write_json(folder / FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> StudySummary:
        """Read the summary of a study's folder; unknown fields are ignored."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_python(read_json(folder / FILE))
        except ValidationError as error:
            first = error.errors()[0]
            raise StorageError(
                f"{folder / FILE} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}",
                hint="run the study again",
            ) from error
