"""A writer with the faults that the harness has to find: see ``test_small``."""

from __future__ import annotations

from pathlib import Path

from tests.faults.sweep import Job, Place, sweep


def write(place: Place) -> None:
    path: Path = place.work / "note"
    temporary = place.work / f"note-{len(list(place.work.iterdir()))}"
    temporary.write_text("temporary")
    path.write_text("new content")
    temporary.unlink()


JOBS = {
    "careless": Job(
        "careless",
        lambda place: (place.work / "note").write_text("old"),
        write,
        lambda p: (p.work / "note").read_text(),
    )
}

if __name__ == "__main__":
    sweep(JOBS)
