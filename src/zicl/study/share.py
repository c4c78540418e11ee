"""Rows that another experiment of the same folder has computed already: the same cell, under the same fingerprint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zicl._files import locked
from zicl.evaluate.manifest import manifest
from zicl.evaluate.store import Results, cell_key, deciding
from zicl.evaluate.world import World


def borrow(world: World, folder: Path, others: Iterable[Path]) -> int:
    """Copy into a results folder the rows it would compute anew; how many these are."""
    copied = 0
    with locked(folder, f"another process is writing to {folder}"):
        results = Results.begin(folder, manifest(world))
        done = results.done()
        for other in others:
            rows = [row for row in _alike(results.manifest, Results.open(other)) if _missing(row, world, done)]
            if rows:
                results.write(f"from.{other.parent.name}.{other.name}-{len(done)}", rows)
                done |= {(_key(row), row["example"]) for row in rows}
                copied += len(rows)
    return copied


def same_cells(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The cells of two manifests that give the same rows."""
    if first["fingerprint"] != second["fingerprint"]:
        return []
    tasks = [name for name in first["tasks"] if _same(first, second, "tasks", name)]
    return [name for name in first["cells"] if name.split("/")[0] in tasks and _same(first, second, "cells", name)]


def _same(first: Mapping[str, Any], second: Mapping[str, Any], group: str, name: str) -> bool:
    if name not in second[group]:
        return False
    one, two = (deciding(manifest[group][name]) for manifest in (first, second))
    # Whether training examples were read is no matter to a cell that has none of them.
    return {**one, "train_hash": None} == {**two, "train_hash": None}


def _alike(own: Mapping[str, Any], other: Results) -> list[dict[str, Any]]:
    wanted = set(same_cells(own, other.manifest))
    return [row for row in other.table().to_pylist() if _key(row) in wanted] if wanted else []


def _missing(row: Mapping[str, Any], world: World, done: set[tuple[str, str]]) -> bool:
    planned = any(example.id == row["example"] for example in world.examples[row["task"]])
    return planned and (_key(row), row["example"]) not in done


def _key(row: Mapping[str, Any]) -> str:
    return cell_key(row["task"], row["method"], row["template"], row["inference"], row["seed"])
