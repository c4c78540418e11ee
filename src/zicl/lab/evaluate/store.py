"""Results on disk: a file of rows a batch, whole or not there, and a manifest that says what they are of.

results/
  manifest.json    fingerprint, experiment, tasks, the configuration of every cell, and whether all is done
  rows/*.parquet   the rows; one file a batch, or one for all after a merge
  time.json        how long they took
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from zicl._util.files import locked, read_json, write_json, writing
from zicl.exceptions import ConfigError, StorageError
from zicl.lab.evaluate.methods import stored_method
from zicl.lab.evaluate.timing import total_time, write_time

FORMAT = 1
MANIFEST, ROWS = "manifest.json", "rows"
SCHEMA = pa.schema(
    {
        "task": pa.string(),
        "method": pa.string(),
        "template": pa.string(),
        "inference": pa.string(),
        "seed": pa.int32(),
        "example": pa.string(),
        "gold": pa.string(),
        "predicted": pa.string(),
        "log_likelihoods": pa.list_(pa.float64()),
        "tokens": pa.list_(pa.int32()),
        "demos": pa.list_(pa.string()),
        "demo_words": pa.list_(pa.string()),
        "demo_labels": pa.list_(pa.string()),
        "similarities": pa.list_(pa.float64()),
        "kept": pa.int16(),
        "input_cut": pa.bool_(),
        "prompt_hash": pa.string(),
        "overlap": pa.int16(),
        # Only where an answer is joined from several, or less what inputs without content got; see docs/EVALUATION.md.
        "values": pa.list_(pa.float64()),
        "terms": pa.list_(pa.list_(pa.float64())),
        "raw": pa.list_(pa.list_(pa.float64())),
        # The label beside the test input, where that stands among its own demonstrations.
        "identical": pa.string(),
    }
)
# Columns that rows of earlier versions lack.
_LATER = ("values", "terms", "raw", "identical")
KEY = ("task", "method", "template", "inference", "seed", "example")
Row = dict[str, Any]
# What a method without a prompt of its own has in place of an inference; it stands beside every inference.
NO_INFERENCE = "none"
# What a manifest only tells: it changes no row.
_TOLD = ("examples", "note", "covered", "origin")
_AGAIN = "run the evaluation again with the same output: it goes on where it was"


class ResultsFolder:
    """A results folder. Rows are only ever added."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @classmethod
    def open(cls, folder: str | Path) -> ResultsFolder:
        """A folder that an evaluation wrote, or is writing."""
        return cls(Path(folder), _manifest(Path(folder)))

    @classmethod
    def begin(cls, folder: Path, manifest: dict[str, Any]) -> ResultsFolder:
        """A new folder, or one that goes on: under the same fingerprint, and each cell as it was."""
        if (folder / MANIFEST).is_file():
            there = cls.open(folder)
            before: Mapping[str, Any] = there.manifest
            try:
                check_same(before, manifest, folder)
            except ConfigError:
                # What a run that failed only planned binds nobody; reading all rows for that is left to this case.
                before = _with_rows(before, manifest, {cell for cell, _ in there.done()})
                check_same(before, manifest, folder)
            manifest = join_manifests(before, manifest)
        results = cls(folder, {**manifest, "complete": False})
        results.save()
        # The caller holds the folder's lock: what was half written was left by a process that is gone.
        for path in (folder / ROWS).glob(".*.tmp"):
            path.unlink()
        return results

    def save(self) -> None:
        """Write the manifest."""
        write_json(self.folder / MANIFEST, self.manifest)

    def write(self, name: str, rows: Sequence[Row]) -> None:
        """Add a batch, whole or not at all."""
        write_rows(self.folder / ROWS / f"{name}.parquet", pa.Table.from_pylist(list(rows), SCHEMA))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, or of all rows these columns beside the key, sorted by the key."""
        wanted = list(dict.fromkeys([*KEY, *(SCHEMA.names if columns is None else columns)]))
        parts = [_read(path, wanted) for path in sorted((self.folder / ROWS).glob("*.parquet"))]
        table = pa.concat_tables(parts) if parts else SCHEMA.empty_table().select(wanted)
        return table.sort_by([(name, "ascending") for name in KEY])

    def done(self) -> set[tuple[str, str]]:
        """Which (cell key, example) are there."""
        table = self.table([])
        columns = [table[name].to_pylist() for name in KEY]
        return {(cell_key(*cell), example) for *cell, example in zip(*columns, strict=True)}

    def is_complete(self) -> bool:
        """Whether every cell of the manifest has all its examples."""
        counts = Counter(cell for cell, _ in self.done())
        return all(counts[key] >= cell["examples"] for key, cell in self.manifest["cells"].items())


def cell_key(task: str, method: str, template: str, inference: str, seed: int | None) -> str:
    """The name of a cell, the same everywhere.

    >>> cell_key("SST2", "no-demos", "task", "channel", None)
    'SST2/no-demos/task/channel/-'
    """
    return f"{task}/{method}/{template}/{inference}/{'-' if seed is None else seed}"


def write_rows(path: Path, table: pa.Table) -> None:
    """A Parquet file, whole or not at all."""
    with writing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=9)


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        what = f"{folder} is not a results folder: it has no {MANIFEST}" if folder.is_dir() else f"there is no {folder}"
        raise StorageError(what, hint=_instead_of(folder))
    manifest = read_json(path)
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise StorageError(
            f"{path} has format {found!r}, expected {FORMAT}",
            hint="read it with the version of zicl that wrote it, or run the evaluation again",
        )
    missing = [name for name in ("fingerprint", "tasks", "cells") if not isinstance(manifest.get(name), dict)]
    if missing:
        raise StorageError(f"{path} is damaged: it lacks {', '.join(missing)}", hint=_AGAIN)
    return dict(manifest)


def _instead_of(folder: Path) -> str:
    """What to give in the place of a folder that holds no results, or none of its own: a folder of studies."""
    inner = sorted(path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/{ROWS}"))
    if not inner:
        return "give the folder an evaluation wrote: zicl evaluate … -o results/"
    return f"give one of those in it, such as {inner[0]}; or all to one page: zicl report {folder} --html report.html"


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        # Opened as one file: a path would also be searched for partitions in the names of its folders.
        with pq.ParquetFile(path) as parquet:
            there = [name for name in columns if name in parquet.schema_arrow.names]
            missing = [name for name in columns if name not in (*there, *_LATER)]
            if not missing:
                table = parquet.read(columns=there)
                for name in set(columns) - set(there):
                    table = table.append_column(name, pa.nulls(len(table), SCHEMA.field(name).type))
                return table.select(columns).cast(_schema(columns))
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path} is damaged: {error}", hint=f"remove that file; {_AGAIN}") from error
    raise StorageError(f"{path} has no column {', '.join(missing)}", hint=f"remove that file; {_AGAIN}")


def _schema(columns: list[str]) -> pa.Schema:
    return pa.schema([SCHEMA.field(name) for name in columns])


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], where: object) -> None:
    """Rows under another model, corpus or configuration must not be mixed."""
    differ = list(manifest_differences("", *(model_identities(manifest["fingerprint"]) for manifest in (before, now))))
    for group in ("tasks", "cells"):
        for name in sorted(set(before[group]) & set(now[group])):
            old, new = (decisive_parts(manifest[group][name]) for manifest in (before, now))
            differ += manifest_differences(f"{name}: ", old, new)
    if not differ:
        # A report takes the mean over seeds: another seed under other settings is no seed of the same method.
        seedless = [_but_for_seeds(manifest["cells"]) for manifest in (before, now)]
        for name in sorted(set(seedless[0]) & set(seedless[1])):
            differ += manifest_differences(f"{name}: ", seedless[0][name], seedless[1][name])
    if differ:
        shown = "; ".join(differ[:5]) + (f"; and {len(differ) - 5} more" if len(differ) > 5 else "")
        raise ConfigError(
            f"{where} was computed under another configuration: {shown}",
            hint="choose another output folder, or go back to the configuration it was begun with",
        )


def _with_rows(before: Mapping[str, Any], now: Mapping[str, Any], done: set[str]) -> Mapping[str, Any]:
    """What of a folder's manifest binds: what was only planned, by a run that failed, gives way to what is planned now.

    Cells of ``before`` without a row are kept where ``now`` has nothing of their task and method.
    """
    if not done:
        return now
    planned = _but_for_seeds(now["cells"])
    cells = {
        name: cell for name, cell in before["cells"].items() if name in done or name.rpartition("/")[0] not in planned
    }
    begun = {name.partition("/")[0] for name in done}
    tasks = {name: task for name, task in before["tasks"].items() if name in begun or name not in now["tasks"]}
    return {**before, "cells": cells, "tasks": tasks}


def _but_for_seeds(cells: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What decides the rows of cells that are the same but for their seeds; the number of examples does not."""
    return {name.rpartition("/")[0]: decisive_parts(entry) for name, entry in cells.items()}


def decisive_parts(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What of a task or a cell decides its rows; a method's title does not."""
    kept = {name: value for name, value in entry.items() if name not in _TOLD}
    if kept.get("method"):
        kept["method"] = {name: value for name, value in stored_method(kept["method"]).items() if name != "title"}
    return kept


def model_identities(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Models by what they are: the same weights may lie in a folder of another name, or on another such device."""
    lm, corpus, device = fingerprint.get("lm"), fingerprint.get("corpus"), fingerprint.get("device")
    return {
        **fingerprint,
        "device": device and device.partition(":")[0],
        "lm": lm and {key: value for key, value in lm.items() if key != "name"},
        "corpus": corpus and {key: value for key, value in corpus.items() if key != "encoder"},
    }


def manifest_differences(where: str, old: Any, new: Any) -> Iterable[str]:
    """What differs between two nested values, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from manifest_differences(f"{where}{key} ", old.get(key), new.get(key))
    elif old != new and old is not None and new is not None:
        # None: not needed by the methods of that run, and so not a difference.
        yield f"{where}was {_short(old)}, is {_short(new)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:16]}…"


def join_manifests(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of both: tasks and cells of either, the larger number of examples of each."""
    merged = {**before, **now, "fingerprint": _known_cells(before["fingerprint"], now["fingerprint"])}
    for group in ("tasks", "cells"):
        merged[group] = {**before[group], **now[group]}
        for name in set(before[group]) & set(now[group]):
            most = max(before[group][name]["examples"], now[group][name]["examples"])
            merged[group][name] = {**_known_cells(before[group][name], now[group][name]), "examples": most}
    return merged


def _known_cells(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The values of now; where there is none, those of before."""
    return {**before, **{name: value for name, value in now.items() if value is not None}}


# -- Several results folders into one: the parts of a sharded run, or a run and its extension.


def merge(folders: Sequence[Path], output: Path) -> ResultsFolder:
    """One folder with the rows of all, sorted, in one file. Equal rows may be in several; differing ones may not."""
    parts = [ResultsFolder.open(folder) for folder in folders]
    manifest = parts[0].manifest
    for part in parts[1:]:
        check_same(manifest, part.manifest, part.folder)
        manifest = join_manifests(manifest, part.manifest)
    if (output / MANIFEST).exists():
        raise StorageError(f"{output} holds results already", hint="name a new folder: nothing is overwritten")
    table = _distinct(pa.concat_tables([part.table() for part in parts]))
    with locked(output, f"another process is writing to {output}"):
        write_rows(output / ROWS / "all.parquet", table)
        _join_overlaps([part.folder for part in parts], output)
        write_time(output, total_time(part.folder for part in parts))
        merged = ResultsFolder(output, manifest)
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
