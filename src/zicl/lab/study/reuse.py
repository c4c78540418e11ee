"""Rows that another experiment of the same folder has computed already: the same cell, under the same fingerprint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zicl._util.files import locked
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.plan import RunShard, batches
from zicl.lab.evaluate.store import ResultsFolder, cell_key, decisive_parts, model_identities


def reuse_rows(world: ExperimentContext, folder: Path, others: Iterable[Path], shard: RunShard | None = None) -> int:
    """Copy into a results folder the rows it, or a shard of it, would compute anew; how many these are."""
    copied = 0
    with locked(folder, f"another process is writing to {folder}"):
        results = ResultsFolder.begin(folder, manifest(world))
        done = results.done()
        plan = batches(world.experiment, world.examples, shard)
        planned = {(batch.cell.key, example.id) for batch in plan for example in batch.examples}
        for other in others:
            rows = [
                row
                for row in _alike(results.manifest, ResultsFolder.open(other))
                if (name := (_key(row), row["example"])) in planned and name not in done
            ]
            if rows:
                results.write(f"from.{other.parent.name}.{other.name}-{len(done)}", rows)
                done |= {(_key(row), row["example"]) for row in rows}
                copied += len(rows)
    return copied


def same_cells(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The cells of two manifests that give the same rows."""
    if model_identities(first["fingerprint"]) != model_identities(second["fingerprint"]):
        return []
    return [name for name in first["cells"] if name in second["cells"] and _given(first, name) == _given(second, name)]


def _given(manifest: Mapping[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decides the rows of a cell: its own settings, and its task."""
    cell, task = decisive_parts(manifest["cells"][name]), decisive_parts(manifest["tasks"][task_of(name)])
    if not cell["method"]["labelled"]:
        # Whether training examples were read is no matter to a cell that has none of them.
        task.pop("train_hash")
    return cell, task


def task_of(name: str) -> str:
    """The task of a cell.

    >>> task_of("SST2/no-demos/task/channel/-")
    'SST2'
    """
    return name.partition("/")[0]


def _alike(own: Mapping[str, Any], other: ResultsFolder) -> list[dict[str, Any]]:
    wanted = set(same_cells(own, other.manifest))
    return [row for row in other.table().to_pylist() if _key(row) in wanted] if wanted else []


def _key(row: Mapping[str, Any]) -> str:
    return cell_key(row["task"], row["method"], row["template"], row["inference"], row["seed"])
