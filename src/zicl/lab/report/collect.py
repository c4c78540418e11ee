"""The scores of stored rows as one array, whichever of the columns they stand in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl.exceptions import StorageError, UsageError
from zicl.lab.evaluate.store import ResultsFolder as Stored
from zicl.lab.evaluate.store import cell_key, manifest_differences
from zicl.lab.report.cells import (
    CellKey,
    Ints,
    MethodTraits,
    RaggedArray,
    ReportCell,
    ReportTask,
    ResultSet,
    SeedRun,
    last_label,
    nearest_label,
)
from zicl.score.calibration import Scores, join_terms

SCORES = ("log_likelihoods", "tokens", "values", "terms")
_HINT = "the rows are damaged or mixed from two runs; run the evaluation again with another output"


def term_values(rows: Any, labels: int, reduce: str, where: str) -> Scores:
    """What each term gave, (terms, rows, labels), for the rows of one cell and seed.

    Where nothing was joined the only term is what was compared: ``values`` if inputs without content were taken
    off, else the log-likelihoods, a sum or a mean over tokens. Rows of earlier versions have only these. Where texts
    have options of their own, a text with fewer than there are labels has minus infinity for the rest.
    """
    for name in ("terms", "values"):
        column = rows[name]
        if 0 < column.null_count < len(column):
            raise StorageError(f"{where}: some rows have {name} and others have none", hint=_HINT)
        if not column.null_count:
            return _checked(_cube(column, labels, f"{where}: {name}"), where)
    found = _cube(rows["log_likelihoods"], labels, f"{where}: log_likelihoods")
    if reduce == "mean" and _lengths(rows["tokens"]).any():
        # Controls have scores without tokens: there is nothing to divide by.
        found = found / _cube(rows["tokens"], labels, f"{where}: tokens", absent=1)
    return _checked(found, where)


def _cube(column: Any, labels: int, where: str, absent: float = -np.inf) -> Scores:
    """A column of lists, or of lists of lists, filled up to one size."""
    rows, array = len(column), column.combine_chunks()
    nested = hasattr(array.type.value_type, "value_type")
    counts, inner = (_lengths(array), array.flatten()) if nested else (np.ones(rows, np.int64), array)
    lengths = _lengths(inner)
    if len(set(counts.tolist())) > 1 or lengths.min() < 1 or lengths.max() > labels:
        raise StorageError(
            f"{where} do not hold, in every row, a number for each of its options, at most {labels}", hint=_HINT
        )
    filled = np.full((len(lengths), labels), absent, dtype=np.float64)
    filled[np.arange(labels) < lengths[:, None]] = inner.flatten().to_numpy(zero_copy_only=False)
    return np.moveaxis(filled.reshape(rows, int(counts[0]), labels), 1, 0)


def _lengths(array: Any) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(array), 0).to_numpy(), dtype=np.int64)


def _checked(scores: Scores, where: str) -> Scores:
    if np.isnan(scores).any():
        raise StorageError(
            f"{where}: a score is not a number, so the prediction means nothing",
            hint="run the evaluation again with another output and scoring = { dtype = 'float32' }",
        )
    return scores


# -- Read results folders and sort their rows into cells.


_KEY = ("task", "method", "template", "inference", "seed")
_COLUMNS = (*_KEY, "example", "gold", "predicted", "demo_labels", "similarities", "kept", "identical", *SCORES)


def collect(paths: Sequence[str | Path]) -> ResultSet:
    """The cells of all folders; several folders are several models, or parts of one model's results."""
    if not paths:
        raise UsageError("no results folder was given", hint="zicl report RESULTS")
    stored = [Stored.open(path) for path in paths]
    loaded = [(each.folder, each.manifest, each.table(_COLUMNS)) for each in stored]
    examples = _names([rows["example"] for _, _, rows in loaded])
    names = model_names([(path, manifest) for path, manifest, _ in loaded])
    tasks, notes = _tasks([manifest for _, manifest, _ in loaded])
    notes += _unlike([(path, manifest, name) for (path, manifest, _), name in zip(loaded, names, strict=True)])
    cells: dict[CellKey, ReportCell] = {}
    for (path, manifest, rows), model in zip(loaded, names, strict=True):
        for key, cell in _cells(path, manifest, rows, model, tasks, examples).items():
            if key in cells:
                raise UsageError(
                    f"{path} and a folder before it both hold {key.method} on {key.task} "
                    f"({key.inference}, template {key.template}) with {key.model}",
                    hint="give folders that do not overlap",
                )
            cells[key] = cell
    return ResultSet(tuple(dict.fromkeys(names)), tasks, cells, tuple(notes), tuple(examples))


def _unlike(loaded: list[tuple[Path, dict[str, Any], str]]) -> list[str]:
    """Folders that stand as one model's results, and were not made alike: merging would refuse them."""
    notes, first = [], dict[str, tuple[Path, dict[str, Any]]]()
    for path, manifest, name in loaded:
        before, other = first.setdefault(name, (path, manifest))
        differ = list(manifest_differences("", other["fingerprint"], manifest["fingerprint"]))
        if differ:
            notes.append(f"{path.name} and {before.name} were not made alike: {'; '.join(differ[:5])}.")
    return notes


def model_names(loaded: Sequence[tuple[Path, dict[str, Any]]]) -> list[str]:
    """A name for each folder's model; two models of one name are told apart by their folders."""
    prints = []
    for path, manifest in loaded:
        lm = manifest["fingerprint"].get("lm") or {}
        dtype = manifest["fingerprint"].get("dtype")
        prints.append((str(lm.get("name") or "no model"), (lm.get("identity"), lm.get("revision"), dtype), path))
    return [
        f"{name} ({path.name})" if any(n == name and i != identity for n, i, _ in prints) else name
        for name, identity, path in prints
    ]


def _tasks(manifests: list[dict[str, Any]]) -> tuple[dict[str, ReportTask], list[str]]:
    tasks: dict[str, ReportTask] = {}
    notes: list[str] = []
    hashes: dict[str, set[str]] = {}
    for manifest in manifests:
        for name, entry in manifest["tasks"].items():
            new = ReportTask(
                name,
                tuple(entry["labels"]),
                entry.get("covered"),
                entry.get("note") or "",
                entry["examples"],
                entry.get("counted", False),
            )
            old = tasks.setdefault(name, new)
            if old.labels != new.labels:
                raise UsageError(
                    f"the folders have different labels for {name}: {', '.join(old.labels)} and "
                    f"{', '.join(new.labels)}",
                    hint="report them one by one",
                )
            if old.covered != new.covered:
                # One corpus covers the task and another does not: the column can stand in neither group.
                tasks[name] = replace(old, covered=None)
            hashes.setdefault(name, set()).add(str(entry.get("hash")))
    differ = [name for name, found in hashes.items() if len(found) > 1]
    if differ:
        notes.append(f"The results folders hold different examples of {', '.join(differ)}: compare them with care.")
    return tasks, notes


def _cells(
    path: Path, manifest: dict[str, Any], rows: Any, model: str, tasks: dict[str, ReportTask], examples: list[str]
) -> dict[CellKey, ReportCell]:
    kinds: dict[CellKey, MethodTraits] = {}
    expected: dict[CellKey, int] = {}
    for name, entry in manifest["cells"].items():
        key = _planned(path, name, model, tasks)
        kinds[key] = _kind(key.method, entry.get("method") or {})
        expected[key] = expected.get(key, 0) + int(entry.get("examples", 0))
    runs: dict[CellKey, list[SeedRun]] = {key: [] for key in kinds}
    reduced = {name: str(entry.get("reduce") or "sum") for name, entry in manifest["cells"].items()}
    for key, run in _runs(path, rows, model, tasks, examples, reduced):
        runs.setdefault(key, []).append(run)
    return {
        key: ReportCell(
            key,
            kinds.get(key) or _kind(key.method, {}),
            tasks[key.task].labels,
            tuple(sorted(found, key=lambda run: -1 if run.seed is None else run.seed)),
            expected.get(key, 0),
        )
        for key, found in runs.items()
    }


def _planned(path: Path, name: str, model: str, tasks: dict[str, ReportTask]) -> CellKey:
    parts = name.split("/")
    if len(parts) != len(_KEY) or parts[0] not in tasks:
        raise StorageError(
            f"{path / 'manifest.json'} is damaged: {name!r} is not task/method/template/inference/seed",
            hint="run the evaluation again",
        )
    task, method, template, inference, _ = parts
    return CellKey(model, template, inference, method, task)


def _kind(method: str, entry: dict[str, Any]) -> MethodTraits:
    sort = str(entry.get("kind") or "prompt")
    return MethodTraits(
        str(entry.get("title") or method),
        bool(entry.get("labelled", False)),
        bool(entry.get("control", False)),
        sort,
        sort == "prompt" and (entry.get("calibration") or {}).get("method") == "batch",
    )


def _runs(
    path: Path, rows: Any, model: str, tasks: dict[str, ReportTask], names: list[str], reduced: dict[str, str]
) -> Iterator[tuple[CellKey, SeedRun]]:
    if not rows.num_rows:
        return
    vocabulary = sorted({label for task in tasks.values() for label in task.labels})
    gold, predicted = _codes(rows["gold"], vocabulary), _codes(rows["predicted"], vocabulary)
    found, kept, nearest, last = _shown(rows, vocabulary)
    identical = _codes(rows["identical"], vocabulary)
    examples = _codes(rows["example"], names)
    for first, members in _groups(rows):
        task, method, template, inference, seed = (rows[name][first].as_py() for name in _KEY)
        key = CellKey(model, template, inference, method, task)
        if task not in tasks:
            raise StorageError(
                f"{path} has rows of {task!r}, which its manifest does not name", hint="run the evaluation again"
            )
        own = np.full(len(vocabulary) + 1, -1, dtype=np.int64)
        own[[vocabulary.index(label) for label in tasks[task].labels]] = np.arange(len(tasks[task].labels))
        chosen = _distinct(path, key, members, examples, predicted)
        right, said, near, end, same = (own[codes[chosen]] for codes in (gold, predicted, nearest, last, identical))
        name = cell_key(task, method, template, inference, seed)
        terms = term_values(rows.take(chosen), len(tasks[task].labels), reduced.get(name, "sum"), f"{path}: {name}")
        run = SeedRun(
            seed, examples[chosen], right, said, near, end, terms, join_terms(terms), same, found[chosen], kept[chosen]
        )
        if (run.gold < 0).any():
            raise StorageError(
                f"{path}: a gold label of {task} is not one of {', '.join(tasks[task].labels)}",
                hint="run the evaluation again",
            )
        yield key, run


def _groups(rows: Any) -> Iterator[tuple[int, Ints]]:
    """The row numbers of every cell and seed, with the first of them."""
    import pyarrow as pa

    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for name in _KEY:
        # As text: the files may have the keys as plain or as dictionary columns.
        column = rows[name].cast(pa.string()).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        yield int(members[0]), members


def _distinct(path: Path, key: CellKey, members: Ints, examples: Ints, predicted: Ints) -> Ints:
    """The rows sorted by example. One written twice by an interrupted run is no harm, if both say the same."""
    order = members[np.argsort(examples[members], kind="stable")]
    twice = np.flatnonzero(examples[order][1:] == examples[order][:-1])
    if (predicted[order][twice] != predicted[order][twice + 1]).any():
        raise StorageError(
            f"{path} holds two different predictions of {key.method} for one example of {key.task}",
            hint="it mixes two runs; run the evaluation again with another output",
        )
    return np.delete(order, twice + 1)


def _codes(values: Any, vocabulary: list[str]) -> Ints:
    """Positions in the vocabulary, -1 for what is not in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(values.cast(pa.string()), value_set=pa.array(vocabulary, pa.string()))
    return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)


def _shown(rows: Any, vocabulary: list[str]) -> tuple[Ints, Ints, Ints, Ints]:
    """How many demonstrations were found and kept, and the classes of the nearest and the last."""
    kept = np.asarray(rows["kept"].fill_null(0).to_numpy(), dtype=np.int64)
    lengths, words = _flat(rows["demo_labels"])
    labels = RaggedArray(lengths, _codes(words, vocabulary))
    lengths, numbers = _flat(rows["similarities"])
    similarities = RaggedArray(lengths, np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64))
    return labels.lengths, kept, nearest_label(labels, similarities, kept), last_label(labels, kept)


def _flat(column: Any) -> tuple[Ints, Any]:
    """How long each list is, and all values one after the other."""
    import pyarrow.compute as pc

    array = column.combine_chunks()
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0).to_numpy(), dtype=np.int64)
    return lengths, array.flatten()


def _names(columns: list[Any]) -> list[str]:
    """The examples of all folders in one order, so that nothing depends on the order of files and rows."""
    return sorted({str(name) for column in columns for name in column.unique().to_pylist()})
