"""Store the compute time beside the rows, in a file that no row depends on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated_dataclass

from zicl._util.files import read_json, write_json
from zicl.exceptions import StorageError

FILE = "time.json"


@validated_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ComputeTime:
    """Seconds of computing, and the number of rows computed in them."""

    seconds: float = 0.0
    rows: int = 0


def total_time(folders: Iterable[Path]) -> ComputeTime:
    """Return the compute time of several results folders together; one without a record counts as zero."""
    times = [_read_time(path) for folder in folders if (path := folder / FILE).is_file()]
    return ComputeTime(sum(each.seconds for each in times), sum(each.rows for each in times))


def _read_time(path: Path) -> ComputeTime:
    try:
        return TypeAdapter(ComputeTime).validate_python(read_json(path))
    except ValidationError as error:
        wrong = error.errors()[0]
        where = "".join(f"{part}: " for part in wrong["loc"])
        raise StorageError(
            f"{path} does not say how long rows took: {where}{wrong['msg']}; expected seconds and rows",
            hint="remove it: no row depends on it, only the reported time is lost",
        ) from error


def add_time(folder: Path, seconds: float, rows: int) -> None:
    """Add the time of newly computed rows to a folder's record."""
    before = total_time([folder])
    write_time(folder, ComputeTime(before.seconds + seconds, before.rows + rows))


def write_time(folder: Path, value: ComputeTime) -> None:
    """Write the record of a folder, if any rows were computed."""
    if value.rows:
        write_json(folder / FILE, {**asdict(value), "seconds": round(value.seconds, 3)})
