"""Record how long rows took, beside them and for people: equal rows may have taken different times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated_dataclass

from zicl._util.files import read_json, write_json
from zicl.exceptions import StorageError

if TYPE_CHECKING:
    pass


FILE = "time.json"


@validated_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ElapsedTime:
    """Seconds, and the number of rows that were computed in them."""

    seconds: float = 0.0
    rows: int = 0


def total_time(folders: Iterable[Path]) -> ElapsedTime:
    """What several results folders took together; rows of earlier versions have no time."""
    told = [_read(path) for folder in folders if (path := folder / FILE).is_file()]
    return ElapsedTime(sum(each.seconds for each in told), sum(each.rows for each in told))


def _read(path: Path) -> ElapsedTime:
    try:
        return TypeAdapter(ElapsedTime).validate_python(read_json(path))
    except ValidationError as error:
        wrong = error.errors()[0]
        where = "".join(f"{part}: " for part in wrong["loc"])
        raise StorageError(
            f"{path} does not say how long rows took: {where}{wrong['msg']}; expected seconds and rows",
            hint="remove it: no row depends on it, and only the time is then not told",
        ) from error


def add_time(folder: Path, seconds: float, rows: int) -> None:
    """Some more rows were computed."""
    before = total_time([folder])
    write_time(folder, ElapsedTime(before.seconds + seconds, before.rows + rows))


def write_time(folder: Path, value: ElapsedTime) -> None:
    """Write what a folder took, if anything is known of it."""
    if value.rows:
        write_json(folder / FILE, {**asdict(value), "seconds": round(value.seconds, 3)})
