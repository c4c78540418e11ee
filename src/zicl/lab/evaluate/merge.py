"""Several results folders into one: the parts of a sharded run, or a run and its extension."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from zicl._util.files import locked, read_json, write_json
from zicl.exceptions import ConfigError, StorageError
from zicl.lab.evaluate.store import KEY, MANIFEST, ROWS, Results, check_same, joined, write_rows
from zicl.lab.evaluate.timing import keep, spent


def merge(folders: Sequence[Path], output: Path) -> Results:
    """One folder with the rows of all, sorted, in one file. Equal rows may be in several; differing ones may not."""
    parts = [Results.open(folder) for folder in folders]
    manifest = parts[0].manifest
    for part in parts[1:]:
        check_same(manifest, part.manifest, part.folder)
        manifest = joined(manifest, part.manifest)
    if (output / MANIFEST).exists():
        raise StorageError(f"{output} holds results already", hint="name a new folder: nothing is overwritten")
    table = _distinct(pa.concat_tables([part.table() for part in parts]))
    with locked(output, f"another process is writing to {output}"):
        write_rows(output / ROWS / "all.parquet", table)
        _join_overlaps([part.folder for part in parts], output)
        keep(output, spent(part.folder for part in parts))
        merged = Results(output, manifest)
        merged.manifest["complete"] = merged.is_complete()
        merged.save()
    return merged


def _distinct(table: pa.Table) -> pa.Table:
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.to_pylist():
        key = tuple(row[name] for name in KEY)
        if rows.setdefault(key, row) != row:
            raise ConfigError(
                f"two folders hold different rows of {'/'.join(map(str, key))}",
                hint="they were computed under different conditions: leave one of them out",
            )
    return pa.Table.from_pylist(list(rows.values()), table.schema).sort_by([(name, "ascending") for name in KEY])


def _join_overlaps(folders: Sequence[Path], output: Path) -> None:
    notes = [read_json(path) for folder in folders if (path := folder / "overlap.json").is_file()]
    if notes:
        tasks: dict[str, dict[str, int]] = {}
        for note in notes:
            for task, values in note["tasks"].items():
                tasks.setdefault(task, {}).update(values)
        write_json(output / "overlap.json", {"corpus": notes[0]["corpus"], "tasks": tasks})
