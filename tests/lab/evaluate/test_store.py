"""Segments while a run goes on, one sorted file after it, and nothing lost or counted twice in between."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.lab.evaluate.conftest import make_experiment
from zicl.exceptions import ConfigError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.plan import RunShard
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.store import KEY, MANIFEST, ROWS, SCHEMA, SEGMENTS, ResultsFolder, is_results, merge

METHODS = ["majority", "no-demos", "z-icl"]


@pytest.fixture
def make(tasks, lm, index):
    def make(**changes) -> ExperimentContext:
        return ExperimentContext(make_experiment(tasks, **{"methods": METHODS, **changes}), lm=lm, index=index)

    return make


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def table(folder: Path):
    return ResultsFolder.open(folder).table()


def interrupt(monkeypatch, context: ExperimentContext, folder: Path, after: int) -> None:
    """Run until so many batches are computed, then fail."""
    batch, count = Runner.batch, iter(range(after))

    def counted(self, planned):
        if next(count, None) is None:
            raise KeyboardInterrupt
        return batch(self, planned)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "batch", counted)
        with pytest.raises(KeyboardInterrupt):
            evaluate(context, folder)


def test_a_finished_run_has_one_sorted_file(make, tmp_path):
    evaluate(make(), tmp_path / "r")
    assert names(tmp_path / "r") == {MANIFEST, ROWS, "overlap.json", "time.json"}
    stored = pq.ParquetFile(tmp_path / "r" / ROWS)
    assert stored.schema_arrow.equals(SCHEMA)
    rows = stored.read()
    assert rows.equals(rows.sort_by([(name, "ascending") for name in KEY]))


def test_an_interrupted_run_has_segments_that_are_read_and_kept(make, tmp_path, monkeypatch):
    evaluate(make(), tmp_path / "whole")
    interrupt(monkeypatch, make(), tmp_path / "r", after=5)
    assert is_results(tmp_path / "r")
    assert not (tmp_path / "r" / ROWS).exists()
    assert len(list((tmp_path / "r" / SEGMENTS).iterdir())) == 5
    done = table(tmp_path / "r").num_rows
    summary = evaluate(make(), tmp_path / "r")
    assert summary.kept == done > 0
    for name in (ROWS, MANIFEST):
        assert (tmp_path / "r" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("removed", [0, 3])
def test_a_crash_while_segments_are_removed_is_harmless(make, tmp_path, monkeypatch, removed):
    evaluate(make(), tmp_path / "whole")
    unlink, count = Path.unlink, iter(range(removed))

    def crash(path, missing_ok=False):
        if path.suffix == ".parquet" and next(count, None) is None:
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", crash)
        with pytest.raises(KeyboardInterrupt):
            evaluate(make(), tmp_path / "r")
    assert {ROWS, SEGMENTS} <= names(tmp_path / "r")
    assert not ResultsFolder.open(tmp_path / "r").manifest["complete"]
    assert table(tmp_path / "r").equals(table(tmp_path / "whole"))
    assert table(tmp_path / "r").num_rows == len(ResultsFolder.open(tmp_path / "r").done())
    assert evaluate(make(), tmp_path / "r").computed == 0
    assert names(tmp_path / "r") == names(tmp_path / "whole")
    for name in (ROWS, MANIFEST):
        assert (tmp_path / "r" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_crash_before_the_file_is_in_place_leaves_the_segments(make, tmp_path, monkeypatch):
    def crash(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("zicl.lab.evaluate.store._distinct", crash)
        with pytest.raises(KeyboardInterrupt):
            evaluate(make(), tmp_path / "r")
    (tmp_path / "r" / f".{ROWS}.0123.tmp").write_bytes(b"half")
    assert not (tmp_path / "r" / ROWS).exists()
    assert evaluate(make(), tmp_path / "r").computed == 0
    assert not list((tmp_path / "r").glob(".*.tmp"))
    assert not (tmp_path / "r" / SEGMENTS).exists()


def test_an_extended_run_writes_segments_again_and_compacts_again(make, tmp_path, monkeypatch):
    evaluate(make(examples=6), tmp_path / "r")
    before = (tmp_path / "r" / ROWS).read_bytes()
    interrupt(monkeypatch, make(seeds=[100, 13, 7]), tmp_path / "r", after=4)
    assert (tmp_path / "r" / ROWS).read_bytes() == before
    assert len(list((tmp_path / "r" / SEGMENTS).iterdir())) == 4
    partly = table(tmp_path / "r").to_pylist()
    assert evaluate(make(seeds=[100, 13, 7]), tmp_path / "r").complete
    after = table(tmp_path / "r").to_pylist()
    assert names(tmp_path / "r") == {MANIFEST, ROWS, "overlap.json", "time.json"}
    assert [row for row in after if row in partly] == partly
    assert len(after) == 10 * (1 + 2 + 2 * 3) > len(partly)


def test_a_shard_compacts_its_rows_and_so_does_a_merge(make, tmp_path):
    for part in (1, 2):
        evaluate(make(), tmp_path / f"{part}", shard=RunShard(part, 2))
        assert names(tmp_path / f"{part}") == {MANIFEST, ROWS, "overlap.json", "time.json"}
        assert not ResultsFolder.open(tmp_path / f"{part}").manifest["complete"]
    merged = merge([tmp_path / "1", tmp_path / "2"], tmp_path / "merged")
    assert merged.manifest["complete"]
    evaluate(make(), tmp_path / "whole")
    for name in (ROWS, MANIFEST):
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_segment_that_contradicts_the_rows_is_an_error(make, tmp_path):
    evaluate(make(), tmp_path / "r")
    results = ResultsFolder.open(tmp_path / "r")
    rows = results.table().to_pylist()[:2]
    results.write("again", rows)
    assert len(results.table()) == len(results.done())
    results.write("again", [{**row, "kept": 3} for row in rows])
    with pytest.raises(ConfigError, match="two different rows of Days/majority"):
        results.table()


def test_segments_that_a_running_evaluation_compacts_are_read_from_its_file(make, tmp_path, monkeypatch):
    evaluate(make(), tmp_path / "r")
    results = ResultsFolder.open(tmp_path / "r")
    listed, gone = ResultsFolder.segments, iter([[tmp_path / "r" / SEGMENTS / "gone.parquet"]])
    monkeypatch.setattr(ResultsFolder, "segments", lambda self: next(gone, None) or listed(self))
    assert results.table().num_rows == len(results.done()) > 0


def test_what_is_a_results_folder(make, index, tmp_path):
    evaluate(make(), tmp_path / "r")
    assert is_results(tmp_path / "r")
    assert not is_results(tmp_path)
    assert not is_results(index.corpus.path)


def test_an_empty_folder_of_segments_is_removed_by_the_next_run(tmp_path):
    (tmp_path / "r" / SEGMENTS).mkdir(parents=True)
    ResultsFolder(tmp_path / "r", {}).compact()
    assert not (tmp_path / "r" / SEGMENTS).exists()
