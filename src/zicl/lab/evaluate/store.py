"""Results on disk: rows, and a manifest of everything that they depend on.

results/
  manifest.json    fingerprint, experiment, tasks, the configuration of every cell, and whether all rows are there
  rows.parquet     all rows, sorted by their key; written when a run ends
  rows/*.parquet   during a run: one segment per batch, removed when rows.parquet contains it
  overlap.json     the longest run of words that each input shares with the corpus
  time.json        how long the rows took

Every file is written atomically, so a killed run leaves a folder that can be read and resumed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from zicl._util.files import atomic_write, read_json, write_json
from zicl._util.locks import locked
from zicl.config import PromptSettings
from zicl.exceptions import ConfigError, StorageError
from zicl.lab.evaluate.methods import ExperimentMethod
from zicl.lab.evaluate.timing import total_time, write_time

FORMAT = 1
MANIFEST, ROWS, SEGMENTS, OVERLAP = "manifest.json", "rows.parquet", "rows", "overlap.json"
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
        # Null unless several scores are combined or content-free scores subtracted; see docs/reference/experiments.md.
        "values": pa.list_(pa.float64()),
        "terms": pa.list_(pa.list_(pa.float64())),
        "raw": pa.list_(pa.list_(pa.float64())),
        # The label shown with the test input, where it is one of the demonstrations.
        "identical": pa.string(),
    }
)
KEY = ("task", "method", "template", "inference", "seed", "example")
Row = dict[str, Any]
# In place of an inference, for methods without a prompt; reports show them beside every inference.
NO_INFERENCE = "none"
# Entries of a task or a cell that no row depends on.
_DESCRIPTIVE = ("examples", "note", "covered", "origin")
_RESUME = "run the evaluation again with the same output: it resumes"


class ResultsFolder:
    """A results folder. Rows are only ever added."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @classmethod
    def open(cls, folder: str | Path) -> ResultsFolder:
        """Open the folder of a finished or a running evaluation."""
        return cls(Path(folder), _read_manifest(Path(folder)))

    @classmethod
    def begin(cls, folder: Path, manifest: dict[str, Any]) -> ResultsFolder:
        """Start a new folder, or continue one with the same fingerprint and the same settings of shared cells."""
        if (folder / MANIFEST).is_file():
            stored = cls.open(folder)
            before: Mapping[str, Any] = stored.manifest
            try:
                check_same(before, manifest, folder)
            except ConfigError:
                # The plan of a failed run may be replaced. Only this case needs to read the rows.
                before = _with_rows(before, manifest, {cell for cell, _ in stored.done()})
                check_same(before, manifest, folder)
            manifest = join_manifests(before, manifest)
        results = cls(folder, {**manifest, "complete": False})
        results.save()
        # The caller holds the folder's lock, so temporary files belong to killed processes.
        for path in (*folder.glob(".*.tmp"), *(folder / SEGMENTS).glob(".*.tmp")):
            path.unlink()
        return results

    def save(self) -> None:
        """Write the manifest."""
        write_json(self.folder / MANIFEST, self.manifest)

    def write(self, name: str, rows: Sequence[Row]) -> None:
        """Add rows as a segment, atomically."""
        write_rows(self.folder / SEGMENTS / f"{name}.parquet", pa.Table.from_pylist(list(rows), SCHEMA))

    def finish(self) -> None:
        """Compact the rows, then say in the manifest whether all of them are there."""
        self.compact()
        self.manifest["complete"] = self.is_complete()
        self.save()

    def compact(self) -> None:
        """Write all rows to one sorted file, then remove the segments.

        After a crash between the two steps, rows that are in both count once, and the next run compacts again.
        """
        segments = self.segments()
        if segments:
            write_rows(self.folder / ROWS, _distinct(self.table()))
            with (self.folder / ROWS).open("ab") as stream:
                # On disk before anything is removed, even if the machine loses power.
                os.fsync(stream.fileno())
            for path in segments:
                path.unlink()
        # Also where an earlier run was stopped just before.
        if (self.folder / SEGMENTS).is_dir() and not any((self.folder / SEGMENTS).iterdir()):
            (self.folder / SEGMENTS).rmdir()

    def segments(self) -> list[Path]:
        """Return the files of batches that are not compacted yet."""
        return sorted((self.folder / SEGMENTS).glob("*.parquet"))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows sorted by the key: all columns, or the key and these."""
        wanted = list(dict.fromkeys([*KEY, *(SCHEMA.names if columns is None else columns)]))
        # Segments are listed first, so that rows which a running evaluation compacts meanwhile are not missed.
        segments = self.segments()
        compacted = [path for path in (self.folder / ROWS,) if path.is_file()]
        try:
            tables = [_read_rows(path, wanted) for path in (*compacted, *segments)]
        except FileNotFoundError:
            # A segment was compacted after it was listed.
            return self.table(columns)
        table = _sorted(pa.concat_tables(tables) if tables else SCHEMA.empty_table().select(wanted))
        return _distinct(table) if compacted and segments else table

    def done(self) -> set[tuple[str, str]]:
        """Return the (cell key, example id) of every row."""
        table = self.table([])
        columns = [table[name].to_pylist() for name in KEY]
        return {(cell_key(*cell), example) for *cell, example in zip(*columns, strict=True)}

    def is_complete(self) -> bool:
        """Return whether every cell of the manifest has all its examples."""
        counts = Counter(cell for cell, _ in self.done())
        return all(counts[key] >= cell["examples"] for key, cell in self.manifest["cells"].items())


def is_results(folder: Path) -> bool:
    """Return whether a folder holds results. A corpus has a manifest as well, but no rows."""
    return (folder / MANIFEST).is_file() and ((folder / ROWS).is_file() or (folder / SEGMENTS).is_dir())


def cell_key(task: str, method: str, template: str, inference: str, seed: int | None) -> str:
    """Return the name of a cell, as used in manifests and file names.

    >>> cell_key("SST2", "no-demos", "task", "channel", None)
    'SST2/no-demos/task/channel/-'
    """
    return f"{task}/{method}/{template}/{inference}/{'-' if seed is None else seed}"


def write_rows(path: Path, table: pa.Table) -> None:
    """Write a Parquet file atomically. Equal tables give equal bytes, whatever their chunks."""
    with atomic_write(path) as temporary:
        pq.write_table(table.combine_chunks(), temporary, compression="zstd", compression_level=9)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        what = f"there is no folder of results {folder}"
        if folder.exists():
            what = (
                f"{folder} is {f'a folder without {MANIFEST}' if folder.is_dir() else 'a file'}, not a results folder"
            )
        raise StorageError(what, hint=TABLE_HINT if folder.is_file() else _suggest_folder(folder))
    manifest = read_json(path)
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if version != FORMAT:
        raise StorageError(
            f"{path} has format {version!r}, expected {FORMAT}",
            hint="read it with the version of zicl that wrote it, or run the evaluation again",
        )
    missing = [name for name in ("fingerprint", "tasks", "cells") if not isinstance(manifest.get(name), dict)]
    if missing:
        raise StorageError(f"{path} is damaged: it lacks {', '.join(missing)}", hint=_RESUME)
    return dict(manifest)


# What someone with a labelled table may have wanted.
TABLE_HINT = (
    "expected the folder that zicl evaluate -o wrote; of a file that zicl classify wrote, zicl check sample draws rows "
    "to label by hand and zicl check score gives the accuracy, and the same zicl classify again prints its summary"
)


def _suggest_folder(folder: Path) -> str:
    """Return a hint for a folder without results; one of studies has results folders inside."""
    inner = sorted(path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/{MANIFEST}"))
    inner = [path for path in inner if is_results(path)]
    if not inner:
        return "give the folder an evaluation wrote: zicl evaluate … -o results/"
    return f"give one of those in it, such as {inner[0]}; or all to one page: zicl report {folder} --html report.html"


def _read_rows(path: Path, columns: list[str]) -> pa.Table:
    try:
        # As one file: given a path, pyarrow also looks for partitions in the names of its folders.
        with pq.ParquetFile(path) as parquet:
            missing = [name for name in columns if name not in parquet.schema_arrow.names]
            if not missing:
                table = parquet.read(columns=columns).select(columns)
                return table.cast(pa.schema([SCHEMA.field(name) for name in columns]))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path} is damaged: {error}", hint=f"remove that file; {_RESUME}") from error
    raise StorageError(f"{path} has no column {', '.join(missing)}", hint=f"remove that file; {_RESUME}")


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in KEY])


def _distinct(table: pa.Table) -> pa.Table:
    """Return a sorted table with equal rows once; different rows of one key are an error."""
    keys = list(zip(*(table[name].to_pylist() for name in KEY), strict=True))
    repeated = [number for number in range(1, len(keys)) if keys[number] == keys[number - 1]]
    for number in repeated:
        first, second = table.slice(number - 1, 2).to_pylist()
        if first != second:
            raise ConfigError(
                f"there are two different rows of {'/'.join(map(str, keys[number]))}",
                hint="they were computed under different conditions: leave one of them out",
            )
    return table.take(sorted(set(range(len(keys))) - set(repeated))) if repeated else table


# -- Comparing and joining manifests.


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], where: object) -> None:
    """Check that rows of two manifests may be mixed: same model, corpus, data and configuration."""
    differ = list(manifest_differences("", *(model_identities(manifest["fingerprint"]) for manifest in (before, now))))
    for group in ("tasks", "cells"):
        for name in sorted(set(before[group]) & set(now[group])):
            old, new = (decisive_parts(manifest[group][name]) for manifest in (before, now))
            differ += manifest_differences(f"{name}: ", old, new, strict=group == "cells")
    if not differ:
        # Reports average over seeds, so all seeds of a method need the same settings.
        old, new = (_cells_without_seed(manifest["cells"]) for manifest in (before, now))
        for name in sorted(set(old) & set(new)):
            differ += manifest_differences(f"{name}: ", old[name], new[name], strict=True)
    if differ:
        shown = "; ".join(differ[:5]) + (f"; and {len(differ) - 5} more" if len(differ) > 5 else "")
        raise ConfigError(
            f"{where} was computed under another configuration: {shown}",
            hint="choose another output folder, or go back to the configuration it was begun with",
        )


def _with_rows(before: Mapping[str, Any], now: Mapping[str, Any], done: set[str]) -> Mapping[str, Any]:
    """Return the part of a stored manifest that a new plan must agree with.

    Cells without rows, planned by a run that failed, are dropped where ``now`` plans the same task and method.
    """
    if not done:
        return now
    planned = _cells_without_seed(now["cells"])
    cells = {
        name: cell for name, cell in before["cells"].items() if name in done or name.rpartition("/")[0] not in planned
    }
    started = {name.partition("/")[0] for name in done}
    tasks = {name: task for name, task in before["tasks"].items() if name in started or name not in now["tasks"]}
    return {**before, "cells": cells, "tasks": tasks}


def _cells_without_seed(cells: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the decisive settings of each cell, by its name without the seed; a seed may have files of its own."""
    return {name.rpartition("/")[0]: {**decisive_parts(entry), "given": None} for name, entry in cells.items()}


def decisive_parts(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a task or a cell that its rows depend on; a method's title is not one."""
    parts = {name: value for name, value in entry.items() if name not in _DESCRIPTIVE}
    if "method" in parts:
        parts["method"] = _with_defaults({name: value for name, value in parts["method"].items() if name != "title"})
        parts["prompt"] = {**PromptSettings().model_dump(mode="json"), **parts.get("prompt", {})}
    return parts


def _with_defaults(method: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored method with the defaults of settings that are newer than its folder."""
    defaults = ExperimentMethod().model_dump(mode="json", exclude={"title"})
    filled = {**defaults, **method}
    for name, value in defaults.items():
        if isinstance(value, dict):
            filled[name] = {**value, **(method.get(name) or {})}
    if "shared" not in (method.get("labelling") or {}) and filled["retrieval"]["method"] == "random":
        # Before there was the setting, inputs with the same demonstrations had one draw of labels.
        filled["labelling"]["shared"] = filled["labels"] == "random" and filled["retrieval"]["k"] > 0
    return filled


def model_identities(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fingerprint without the names of models and the number of the device: other names, same rows."""
    lm, corpus, device = fingerprint.get("lm"), fingerprint.get("corpus"), fingerprint.get("device")
    return {
        **fingerprint,
        "device": device and device.partition(":")[0],
        "lm": lm and {key: value for key, value in lm.items() if key != "name"},
        "corpus": corpus and {key: value for key, value in corpus.items() if key != "encoder"},
    }


def manifest_differences(where: str, old: Any, new: Any, *, strict: bool = False) -> Iterable[str]:
    """Yield the differences between two nested values, in words.

    None says that the methods of that run did not need it, and differs from nothing; with ``strict`` it is a value.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from manifest_differences(f"{where}{key} ", old.get(key), new.get(key), strict=strict)
    elif old != new and (strict or (old is not None and new is not None)):
        yield f"{where}was {_shorten(old)}, is {_shorten(new)}"


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:16]}…"


def join_manifests(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return one manifest with the tasks and cells of both, each with the larger number of examples."""
    joined = {**before, **now, "fingerprint": _update_known(before["fingerprint"], now["fingerprint"])}
    for group in ("tasks", "cells"):
        joined[group] = {**before[group], **now[group]}
        for name in set(before[group]) & set(now[group]):
            most = max(before[group][name]["examples"], now[group][name]["examples"])
            joined[group][name] = {**_update_known(before[group][name], now[group][name]), "examples": most}
    return joined


def _update_known(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``before`` updated with the values of ``now`` that are not None."""
    return {**before, **{name: value for name, value in now.items() if value is not None}}


def merge(folders: Sequence[Path], output: Path) -> ResultsFolder:
    """Write one folder with the rows of several: the shards of a run, or a run and its extension."""
    parts = [ResultsFolder.open(folder) for folder in folders]
    manifest = parts[0].manifest
    for part in parts[1:]:
        check_same(manifest, part.manifest, part.folder)
        manifest = join_manifests(manifest, part.manifest)
    if (output / MANIFEST).exists():
        raise StorageError(f"{output} holds results already", hint="name a new folder: nothing is overwritten")
    table = _distinct(_sorted(pa.concat_tables([part.table() for part in parts])))
    with locked(output, f"another process is writing to {output}"):
        write_rows(output / ROWS, table)
        _join_overlaps([part.folder for part in parts], output)
        write_time(output, total_time(part.folder for part in parts))
        merged = ResultsFolder(output, manifest)
        merged.finish()
    return merged


def _join_overlaps(folders: Sequence[Path], output: Path) -> None:
    overlaps = [read_json(path) for folder in folders if (path := folder / OVERLAP).is_file()]
    if overlaps:
        tasks: dict[str, dict[str, int]] = {}
        for each in overlaps:
            for task, values in each["tasks"].items():
                tasks.setdefault(task, {}).update(values)
        write_json(output / OVERLAP, {"corpus": overlaps[0]["corpus"], "tasks": tasks})
