"""The jobs of the default test run: what all others are built on, without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.apps.check.reports import LABELS, predictions
from tests.faults.sweep import Job, Place, as_command, looking, sweep
from zicl._util.files import atomic_write, write_json, write_text
from zicl._util.locks import publish, remove_finished, work_folder
from zicl.apps.check.sample import stratified_sample
from zicl.apps.check.sheet import Sheet, read_sheet, write_sheet


def write_file(place: Place) -> None:
    as_command(lambda: write_json(place.work / "note.json", {"n": 2}))


def file_content(place: Place) -> Any:
    return json.loads((place.work / "note.json").read_text())


def write_folder(place: Place) -> None:
    def write() -> None:
        with atomic_write(place.work / "made") as folder:
            fill(folder)

    as_command(write)


def fill(folder: Path) -> None:
    folder.mkdir()
    (folder / "rows").write_text("new")
    (folder / "more").write_text("new")


def old_folder(place: Place) -> None:
    (place.work / "made").mkdir()
    for name in ("rows", "more"):
        (place.work / "made" / name).write_text("old")


def folder_content(place: Place) -> Any:
    folder = place.work / "made"
    return sorted(path.read_text() for path in folder.iterdir()) if folder.exists() else "nothing"


def publish_folder(place: Place) -> None:
    def write() -> None:
        remove_finished(place.work / "made", "rows")
        if (place.work / "made").exists() and folder_content(place) == ["new", "new"]:
            return
        with work_folder(place.work / "made", "it is being made by another process") as work:
            if not (work / "whole").exists():
                with atomic_write(work / "whole") as folder:
                    fill(folder)
            publish(work / "whole", place.work / "made", "rows")

    as_command(write)


def write_vectors(place: Place) -> None:
    """Write as numpy and FAISS do, whose own ways with files say nothing of a disk that is full in the end."""
    import numpy as np

    from zicl.retrieve import kinds

    rows = np.arange(24, dtype=np.float32).reshape(3, 8)

    def write() -> None:
        with atomic_write(place.work / "made") as folder:
            folder.mkdir()
            kinds.write_array(folder / "rows.npy", rows)
            kinds.write_vectors("flat", 8, 3, [rows], folder / "vectors.faiss", place.work)

    as_command(write)


def vectors_content(place: Place) -> Any:
    import faiss
    import numpy as np

    if not (place.work / "made").exists():
        return "nothing"
    index = faiss.read_index(str(place.work / "made" / "vectors.faiss"))
    return [np.load(place.work / "made" / "rows.npy").tolist(), index.ntotal]


def old_sheet(place: Place) -> None:
    write_sheet(place.work / "sheet.csv", drawn(9))


def new_sheet(place: Place) -> None:
    as_command(lambda: write_sheet(place.work / "sheet.csv", drawn(12), overwrite=True))


def drawn(count: int) -> Sheet:
    return stratified_sample(predictions(20), LABELS, count)


def sheet_content(place: Place) -> Any:
    return [row.prediction.id for row in read_sheet(place.work / "sheet.csv").rows]


def build_corpus(place: Place) -> None:
    from zicl.corpus import builder
    from zicl.corpus.sources import find_sources

    sources = find_sources([str(place.inputs / "raw.txt")], {})
    as_command(lambda: builder.build_corpus(sources, place.work / "c.zicl"))


def write_raw(place: Place) -> None:
    (place.inputs / "raw.txt").write_text(
        "The lamp kept failing. Nobody complained.\n\nWe took the slow train north.\n"
    )


def corpus_content(place: Place) -> Any:
    from zicl.corpus.store import Corpus

    path = place.work / "c.zicl"
    return Corpus.open(path, verify=True).texts(range(3)) if path.exists() else "nothing"


JOBS = {
    job.name: job
    for job in [
        Job("file", lambda place: write_text(place.work / "note.json", '{"n": 1}'), write_file, file_content),
        Job("folder", old_folder, write_folder, folder_content),
        Job("work folder", old_folder, publish_folder, folder_content),
        Job("new folder", lambda place: None, publish_folder, folder_content),
        Job("vectors", lambda place: None, write_vectors, vectors_content),
        Job("sheet", old_sheet, new_sheet, looking(sheet_content), may_refuse=True),
        Job("corpus", write_raw, build_corpus, looking(corpus_content)),
    ]
}

if __name__ == "__main__":
    sweep(JOBS)
