"""Reuse rows that another experiment of the same folder has computed: equal cells under equal fingerprints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zicl._util.locks import locked
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import RunShard, batches
from zicl.lab.evaluate.store import ResultsFolder, cell_key, decisive_parts, model_identities


def reuse_rows(context: ExperimentContext, folder: Path, others: Iterable[Path], shard: RunShard | None = None) -> int:
    """Copy rows of other results folders that this one, or a shard of it, still needs; return how many."""
    copied = 0
    with locked(folder, f"another process is writing to {folder}"):
        results = ResultsFolder.begin(folder, manifest(context))
        done = results.done()
        plan = batches(context.experiment, context.examples, shard)
        planned = {(batch.cell.key, example.id) for batch in plan for example in batch.examples}
        for path in others:
            other = ResultsFolder.open(path)
            cells = set(same_cells(results.manifest, other.manifest))
            rows = {_key(row): row for row in other.table().to_pylist()} if cells else {}
            needed = {key: row for key, row in rows.items() if key[0] in cells and key in planned and key not in done}
            if needed:
                results.write(f"from.{path.parent.name}.{path.name}-{len(done)}", list(needed.values()))
                done |= needed.keys()
                copied += len(needed)
    return copied


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    cell = cell_key(row["task"], row["method"], row["template"], row["inference"], row["seed"])
    return cell, row["example"]


def same_cells(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the cells of two manifests that give the same rows."""
    if model_identities(first["fingerprint"]) != model_identities(second["fingerprint"]):
        return []
    return [
        name for name in first["cells"] if name in second["cells"] and _decisive(first, name) == _decisive(second, name)
    ]


def _decisive(manifest: Mapping[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what decides the rows of a cell: its settings and its task."""
    cell, task = decisive_parts(manifest["cells"][name]), decisive_parts(manifest["tasks"][task_of(name)])
    if not cell["method"]["labelled"]:
        # Training examples do not matter to a method that shows none.
        task.pop("train_hash")
    return cell, task


def task_of(name: str) -> str:
    """Return the task of a cell.

    >>> task_of("SST2/no-demos/task/channel/-")
    'SST2'
    """
    return name.partition("/")[0]
