"""A writer with the faults that the harness has to find: see ``test_small``."""

from __future__ import annotations

from pathlib import Path

from tests.faults.sweep import Job, Place, looking, sweep
from zicl.exceptions import StorageError


def write(place: Place) -> None:
    path: Path = place.work / "note"
    temporary = place.work / f"note-{len(list(place.work.iterdir()))}"
    temporary.write_text("temporary")
    path.write_text("new content")
    temporary.unlink()


def prepare(place: Place) -> None:
    (place.work / "note").write_text("old")


def look(place: Place) -> str:
    return (place.work / "note").read_text()


def strict_look(place: Place) -> str:
    if (found := look(place)) not in ("old", "new content"):
        raise StorageError("the note is damaged", hint="write it again")
    return found


JOBS = {
    "careless": Job("careless", prepare, write, look),
    # A reader that notices the damage does not bring the old content back.
    "refusing": Job("refusing", prepare, write, looking(strict_look)),
}

if __name__ == "__main__":
    sweep(JOBS)
