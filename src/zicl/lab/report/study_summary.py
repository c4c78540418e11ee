"""What a study's folder says to people and to the report, as its ``study.json`` has it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from zicl._util.files import read_json, write_json
from zicl.exceptions import StorageError

FILE = "study.json"


@dataclass(frozen=True)
class StudySummary:
    """A study's question, what the paper found, what was found here, and the figures beside it."""

    name: str
    title: str
    question: str
    paper: str
    findings: tuple[str, ...]
    figures: tuple[DrawnFigure, ...]

    def write(self, folder: Path) -> None:
        """Into a study's folder."""
        write_json(folder / FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> StudySummary:
        """From a study's folder. A later version may say more: what is not known here is left out."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_python(read_json(folder / FILE))
        except ValidationError as error:
            first = error.errors()[0]
            raise StorageError(
                f"{folder / FILE} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}",
                hint="run the study again",
            ) from error


@dataclass(frozen=True)
class DrawnFigure:
    """A figure that is drawn already: its file in the study's folder, and what it shows."""

    file: str
    title: str
    alt: str
