"""Read results folders: sort the stored rows into cells, with scores and classes as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zicl.exceptions import StorageError, UsageError
from zicl.lab.evaluate.store import KEY, ResultsFolder, cell_key, manifest_differences
from zicl.lab.report.cells import CellKey, Ints, MethodTraits, ReportCell, ReportTask, ResultSet, SeedRun
from zicl.score.calibration import Scores, join_terms

# The columns that name a cell and its seed.
CELL_COLUMNS = KEY[:-1]
_COLUMNS = (
    "gold", "predicted", "demo_labels", "similarities", "kept", "identical", "log_likelihoods", "tokens", "values",
    "terms",
)  # fmt: skip
_DAMAGED = "the rows are damaged or mixed from two runs; run the evaluation again with another output"


def collect(paths: Sequence[str | Path]) -> ResultSet:
    """Return the cells of all folders; several folders are several models, or parts of one model's results."""
    if not paths:
        raise UsageError("no results folder was given", hint="zicl report RESULTS")
    folders = [ResultsFolder.open(path) for path in paths]
    tables = [folder.table(_COLUMNS) for folder in folders]
    models = model_names(folders)
    tasks, notes = _tasks([folder.manifest for folder in folders])
    # Sorted, so that nothing depends on the order of files and rows.
    examples = sorted({str(name) for table in tables for name in table["example"].unique().to_pylist()})
    cells: dict[CellKey, ReportCell] = {}
    for folder, table, model in zip(folders, tables, models, strict=True):
        for key, cell in _cells(folder, table, model, tasks, examples).items():
            if key in cells:
                raise UsageError(
                    f"{folder.folder} and a folder before it both hold {key.method} on {key.task} "
                    f"({key.inference}, template {key.template}) with {key.model}",
                    hint="give folders that do not overlap",
                )
            cells[key] = cell
    notes += _fingerprint_notes(folders, models)
    return ResultSet(tuple(dict.fromkeys(models)), tasks, cells, tuple(notes), tuple(examples))


def model_names(folders: Sequence[ResultsFolder]) -> list[str]:
    """Return a name for each folder's model; different models of one name get their folder's name as well."""
    models = []
    for each in folders:
        fingerprint = each.manifest["fingerprint"]
        lm = fingerprint.get("lm") or {}
        identity = (lm.get("identity"), lm.get("revision"), fingerprint.get("dtype"))
        models.append((str(lm.get("name") or "no model"), identity, each.folder))
    return [
        f"{name} ({path.name})" if any(n == name and i != identity for n, i, _ in models) else name
        for name, identity, path in models
    ]


def _fingerprint_notes(folders: Sequence[ResultsFolder], models: Sequence[str]) -> list[str]:
    """Name folders of one model that were computed under different conditions: merging would refuse them."""
    notes, first = [], dict[str, ResultsFolder]()
    for results, model in zip(folders, models, strict=True):
        other = first.setdefault(model, results)
        differ = list(manifest_differences("", other.manifest["fingerprint"], results.manifest["fingerprint"]))
        if differ:
            names = f"{results.folder.name} and {other.folder.name}"
            notes.append(f"{names} were computed under different conditions: {'; '.join(differ[:5])}.")
    return notes


def _tasks(manifests: Sequence[dict[str, Any]]) -> tuple[dict[str, ReportTask], list[str]]:
    """Return the tasks of all folders, and a note on those whose examples differ."""
    tasks: dict[str, ReportTask] = {}
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
                # One corpus covers the task and another does not: the column belongs to neither group.
                tasks[name] = replace(old, covered=None)
            hashes.setdefault(name, set()).add(str(entry.get("hash")))
    differ = [name for name, values in hashes.items() if len(values) > 1]
    if not differ:
        return tasks, []
    return tasks, [f"The results folders hold different examples of {', '.join(differ)}: compare them with care."]


# -- one folder's rows as cells ----------------------------------------------------------------


def _cells(
    results: ResultsFolder, table: Any, model: str, tasks: dict[str, ReportTask], examples: list[str]
) -> dict[CellKey, ReportCell]:
    planned = results.manifest["cells"]
    traits: dict[CellKey, MethodTraits] = {}
    expected: dict[CellKey, int] = {}
    for name, entry in planned.items():
        key = _parse_key(results.folder, name, model, tasks)
        traits[key] = _traits(key.method, entry.get("method") or {})
        expected[key] = expected.get(key, 0) + int(entry.get("examples", 0))
    runs: dict[CellKey, list[SeedRun]] = {key: [] for key in traits}
    reductions = {name: str(entry.get("reduce") or "sum") for name, entry in planned.items()}
    for key, run in _runs(results.folder, table, model, tasks, examples, reductions):
        runs.setdefault(key, []).append(run)
    return {
        key: ReportCell(
            key,
            traits.get(key) or _traits(key.method, {}),
            tasks[key.task].labels,
            tuple(sorted(members, key=lambda run: -1 if run.seed is None else run.seed)),
            expected.get(key, 0),
        )
        for key, members in runs.items()
    }


def _parse_key(folder: Path, name: str, model: str, tasks: dict[str, ReportTask]) -> CellKey:
    parts = name.split("/")
    if len(parts) != len(CELL_COLUMNS) or parts[0] not in tasks:
        raise StorageError(
            f"{folder / 'manifest.json'} is damaged: {name!r} is not task/method/template/inference/seed",
            hint="run the evaluation again",
        )
    task, method, template, inference, _ = parts
    return CellKey(model, template, inference, method, task)


def _traits(method: str, entry: dict[str, Any]) -> MethodTraits:
    kind = str(entry.get("kind") or "prompt")
    return MethodTraits(
        str(entry.get("title") or method),
        bool(entry.get("labelled", False)),
        bool(entry.get("control", False)),
        kind,
        kind == "prompt" and (entry.get("calibration") or {}).get("method") == "batch",
        (entry.get("pile") or {}).get("method", "none") != "none",
    )


def _runs(
    folder: Path, table: Any, model: str, tasks: dict[str, ReportTask], names: list[str], reductions: dict[str, str]
) -> Iterator[tuple[CellKey, SeedRun]]:
    if not table.num_rows:
        return
    # The columns are encoded once for all tasks; each run then translates the codes to its task's labels.
    vocabulary = sorted({label for task in tasks.values() for label in task.labels})
    gold, predicted, identical = (_encode(table[name], vocabulary) for name in ("gold", "predicted", "identical"))
    retrieved, kept, nearest, last, similarity = _demonstrations(table, vocabulary)
    examples = _encode(table["example"], names)
    for members in _groups(table):
        task, method, template, inference, seed = (table[name][int(members[0])].as_py() for name in CELL_COLUMNS)
        key = CellKey(model, template, inference, method, task)
        if task not in tasks:
            raise StorageError(
                f"{folder} has rows of {task!r}, which its manifest does not name", hint="run the evaluation again"
            )
        labels = tasks[task].labels
        classes = np.full(len(vocabulary) + 1, -1, dtype=np.int64)
        classes[[vocabulary.index(label) for label in labels]] = np.arange(len(labels))
        rows = _distinct(folder, key, members, examples, predicted)
        if (classes[gold[rows]] < 0).any():
            raise StorageError(
                f"{folder}: a gold label of {task} is not one of {', '.join(labels)}", hint="run the evaluation again"
            )
        name = cell_key(task, method, template, inference, seed)
        terms = term_values(table.take(rows), len(labels), reductions.get(name, "sum"), f"{folder}: {name}")
        yield (
            key,
            SeedRun(
                seed,
                examples[rows],
                classes[gold[rows]],
                classes[predicted[rows]],
                classes[nearest[rows]],
                classes[last[rows]],
                terms,
                join_terms(terms),
                classes[identical[rows]],
                retrieved[rows],
                kept[rows],
                similarity[rows],
            ),
        )


def _groups(table: Any) -> Iterator[Ints]:
    """Yield the row numbers of every cell and seed."""
    import pyarrow as pa

    codes = np.zeros(table.num_rows, dtype=np.int64)
    for name in CELL_COLUMNS:
        # As text: the files may have the keys as plain or as dictionary columns.
        column = table[name].cast(pa.string()).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _distinct(folder: Path, key: CellKey, members: Ints, examples: Ints, predicted: Ints) -> Ints:
    """Return the rows sorted by example. An interrupted run may have written one twice, if both are equal."""
    order = members[np.argsort(examples[members], kind="stable")]
    twice = np.flatnonzero(examples[order][1:] == examples[order][:-1])
    if (predicted[order][twice] != predicted[order][twice + 1]).any():
        raise StorageError(
            f"{folder} holds two different predictions of {key.method} for one example of {key.task}",
            hint="it mixes two runs; run the evaluation again with another output",
        )
    return np.delete(order, twice + 1)


def _encode(values: Any, vocabulary: list[str]) -> Ints:
    """Return positions in the vocabulary, -1 for values that are not in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = pc.index_in(values.cast(pa.string()), value_set=pa.array(vocabulary, pa.string()))
    return np.asarray(pc.fill_null(codes, -1).to_numpy(), dtype=np.int64)


# -- scores -------------------------------------------------------------------------------------


def term_values(rows: Any, labels: int, reduce: str, where: str) -> Scores:
    """Return the scores of each term, (terms, rows, labels), for the rows of one cell and seed.

    Rows without ``terms`` have a single one: ``values`` (calibrated with content-free inputs) if there are any, else
    the log-likelihoods, summed or averaged over tokens. A text with fewer options than labels has minus infinity for
    the rest.
    """
    for name in ("terms", "values"):
        column = rows[name]
        if 0 < column.null_count < len(column):
            raise StorageError(f"{where}: some rows have {name} and others have none", hint=_DAMAGED)
        if not column.null_count:
            return _check_numbers(_pad(column, labels, f"{where}: {name}"), where)
    scores = _pad(rows["log_likelihoods"], labels, f"{where}: log_likelihoods")
    if reduce == "mean" and _lengths(rows["tokens"]).any():
        # Controls have scores without tokens: there is nothing to divide by.
        scores = scores / _pad(rows["tokens"], labels, f"{where}: tokens", fill=1)
    return _check_numbers(scores, where)


def _pad(column: Any, labels: int, where: str, fill: float = -np.inf) -> Scores:
    """Turn a column of lists, or of lists of lists, into an array, padded to the number of labels."""
    rows, array = len(column), column.combine_chunks()
    nested = hasattr(array.type.value_type, "value_type")
    counts, inner = (_lengths(array), array.flatten()) if nested else (np.ones(rows, np.int64), array)
    lengths = _lengths(inner)
    if len(set(counts.tolist())) > 1 or lengths.min() < 1 or lengths.max() > labels:
        raise StorageError(
            f"{where} do not hold, in every row, a number for each of its options, at most {labels}", hint=_DAMAGED
        )
    padded = np.full((len(lengths), labels), fill, dtype=np.float64)
    padded[np.arange(labels) < lengths[:, None]] = inner.flatten().to_numpy(zero_copy_only=False)
    return np.moveaxis(padded.reshape(rows, int(counts[0]), labels), 1, 0)


def _check_numbers(scores: Scores, where: str) -> Scores:
    if np.isnan(scores).any():
        raise StorageError(
            f"{where}: a score is not a number, so the prediction means nothing",
            hint="run the evaluation again with another output and scoring = { dtype = 'float32' }",
        )
    return scores


# -- demonstrations ------------------------------------------------------------------------------


class RaggedArray(NamedTuple):
    """A column of lists: the length of each, and all their values concatenated."""

    lengths: Ints
    values: NDArray[Any]

    @property
    def ends(self) -> Ints:
        """The position after the last value of each list."""
        return np.cumsum(self.lengths)


def _demonstrations(table: Any, vocabulary: list[str]) -> tuple[Ints, Ints, Ints, Ints, NDArray[np.float64]]:
    """Return the numbers retrieved and kept, the classes of the nearest and the last, and the nearest's similarity."""
    kept = np.asarray(table["kept"].fill_null(0).to_numpy(), dtype=np.int64)
    shown = table["demo_labels"].combine_chunks()
    labels = RaggedArray(_lengths(shown), _encode(shown.flatten(), vocabulary))
    numbers = table["similarities"].combine_chunks()
    values = np.asarray(numbers.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    similarities = RaggedArray(_lengths(numbers), values)
    position = nearest_position(similarities, labels.lengths, kept)
    nearest = np.full(len(kept), np.nan)
    found = position >= 0
    nearest[found] = values[(similarities.ends - similarities.lengths + position)[found]]
    position[found] += (labels.ends - labels.lengths)[found]
    return labels.lengths, kept, _take_labels(labels, position), last_label(labels, kept), nearest


def last_label(labels: RaggedArray, kept: Ints) -> Ints:
    """Return the class of the last demonstration in each prompt, -1 where there is none.

    >>> last_label(RaggedArray(np.array([2, 1, 0]), np.array([1, 0, 1])), np.array([2, 1, 0]))
    array([ 0,  1, -1])
    """
    shown = np.minimum(labels.lengths, kept) > 0
    return _take_labels(labels, np.where(shown, labels.ends - 1, -1))


def nearest_position(similarities: RaggedArray, shown: Ints, kept: Ints) -> Ints:
    """Return the place in each list of the most similar kept demonstration, -1 without one; kept are the last ones.

    ``shown`` has the numbers of demonstrations: where it differs, they were not found by similarity.

    >>> found = RaggedArray(np.array([3, 0]), np.array([0.9, 0.7, 0.8]))
    >>> nearest_position(found, np.array([3, 2]), np.array([2, 2]))
    array([ 2, -1])
    """
    count = np.minimum(shown, kept)
    ranked = (count > 0) & (similarities.lengths == shown)
    places = np.full(len(kept), -1, dtype=np.int64)
    if not ranked.any():
        return places
    # All kept demonstrations of all rows in one array; the start of each row's part splits it for reduceat.
    count, length = count[ranked], shown[ranked]
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    from_end = np.repeat(count, count) - (np.arange(count.sum()) - np.repeat(starts, count))
    score = similarities.values[np.repeat(similarities.ends[ranked], count) - from_end]
    best = np.repeat(np.maximum.reduceat(score, starts), count)
    # Among equally similar ones the last, which is closest to the input.
    place = np.repeat(length, count) - from_end
    places[ranked] = np.maximum.reduceat(np.where(score == best, place, -1), starts)
    return places


def _take_labels(labels: RaggedArray, positions: Ints) -> Ints:
    taken = np.full(len(positions), -1, dtype=np.int64)
    taken[positions >= 0] = labels.values[positions[positions >= 0]]
    return taken


def _lengths(lists: Any) -> Ints:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(), dtype=np.int64)
