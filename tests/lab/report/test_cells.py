"""From folders to cells: what is counted, and what a missing or damaged folder says."""

import json

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tests.lab.report.folder import make_rows, row, write_folder
from zicl.exceptions import StorageError, UsageError
from zicl.lab.evaluate.store import KEY, ResultsFolder
from zicl.lab.report.cells import CellKey, macro_f1, mean_and_deviation
from zicl.lab.report.collect import collect


def key(method, task="CR", inference="channel", template="task", model="tiny"):
    return CellKey(model, template, inference, method, task)


def test_all_files_are_read(tmp_path):
    rows = make_rows({"z-icl": 0.8, "majority": 0.5}, examples=10)
    stored = ResultsFolder.open(write_folder(tmp_path / "r", rows, files=3))
    assert stored.manifest["format"] == 1
    assert stored.table().num_rows == len(rows)
    assert stored.table(["gold"]).column_names == [*KEY, "gold"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "manifest.json").unlink(), "is not a results folder"),
        (lambda f: (f / "manifest.json").write_text("{"), "is damaged"),
        (lambda f: (f / "manifest.json").write_text('{"format": 9}'), "has format 9, expected 1"),
        (lambda f: (f / "manifest.json").write_text('{"format": 1}'), "lacks fingerprint, tasks, cells"),
        (lambda f: (f / "rows" / "0.parquet").write_bytes(b"PAR1 and no more"), "0.parquet is damaged"),
    ],
)
def test_a_damaged_folder_says_what_is_wrong(tmp_path, damage, message):
    folder = write_folder(tmp_path / "r", make_rows({"z-icl": 0.8}, examples=4))
    damage(folder)
    with pytest.raises(StorageError, match=message):
        collect([folder])


def test_no_folder_and_a_missing_column(tmp_path):
    with pytest.raises(StorageError, match="there is no"):
        ResultsFolder.open(tmp_path / "nothing")
    with pytest.raises(UsageError, match="no results folder was given"):
        collect([])
    folder = write_folder(tmp_path / "r", make_rows({"z-icl": 0.8}, examples=4))
    with pytest.raises(StorageError, match="has no column nothing"):
        ResultsFolder.open(folder).table(["nothing"])


def test_scores_seed_by_seed(tmp_path):
    rows = [row("CR", "z-icl", "good", "good", f"{n}", seed=13) for n in range(4)]
    rows += [row("CR", "z-icl", "good", "good" if n else "bad", f"{n}", seed=21) for n in range(4)]
    cell = collect([write_folder(tmp_path / "r", rows)]).cells[key("z-icl")]
    assert cell.scores("accuracy") == {13: 100.0, 21: 75.0}
    mean, deviation = mean_and_deviation([cell], "accuracy")
    assert mean == 87.5
    assert deviation == pytest.approx(np.std([100, 75], ddof=1))
    assert cell.shares == {"bad": 12.5, "good": 87.5}
    assert (cell.present, cell.missing) == (8, 0)
    assert (cell.copied_nearest, cell.copied_last) == (None, None)


def test_macro_f1_is_scikit_learns():
    rng = np.random.default_rng(0)
    for classes in (2, 3, 5):
        gold, said = rng.integers(classes, size=(2, 60))
        assert macro_f1(gold, said) == pytest.approx(f1_score(gold, said, average="macro"))


def test_averages_take_the_seeds_together(tmp_path):
    """Seeds that differ in opposite directions on two tasks leave no deviation in the average."""
    rows = []
    for task, first in (("CR", 13), ("SST2", 21)):
        for seed in (13, 21):
            said = "good" if seed == first else "bad"
            rows += [row(task, "z-icl", "good", said, f"{n}", seed=seed) for n in range(2)]
    rows += [row("AGNews", "z-icl", "world", "world", "0")]
    cells = collect([write_folder(tmp_path / "r", rows)]).cells
    two = [cells[key("z-icl", task)] for task in ("CR", "SST2")]
    assert mean_and_deviation(two, "accuracy") == (50.0, 0.0)
    # A cell without seeds counts as every seed.
    mean, deviation = mean_and_deviation([cells[key("z-icl", "CR")], cells[key("z-icl", "AGNews")]], "accuracy")
    assert mean == 75
    assert deviation == pytest.approx(np.std([100, 50], ddof=1))
    assert mean_and_deviation([cells[key("z-icl", "AGNews")]], "accuracy") == (100.0, None)


def test_copy_rates(tmp_path):
    def shown(number, predicted, labels, similarities, kept):
        return row(
            "CR", "naive", "good", predicted, f"{number}", demo_labels=labels, similarities=similarities, kept=kept
        )

    rows = [
        # The nearest is the second from the end, the last is of another class.
        shown(0, "good", ["bad", "good", "bad"], [0.1, 0.9, 0.2], 3),
        # The most similar did not survive the token limit.
        shown(1, "good", ["good", "bad", "bad"], [0.9, 0.5, 0.2], 2),
        # Of equally near ones the later counts.
        shown(2, "good", ["bad", "good"], [0.5, 0.5], 2),
        # No similarities: only the last one is known.
        shown(3, "bad", ["good", "bad"], [], 2),
        # Nothing kept, and nothing shown: not counted.
        shown(4, "good", ["good"], [0.5], 0),
        shown(5, "good", [], [], 0),
    ]
    cell = collect([write_folder(tmp_path / "r", rows)]).cells[key("naive")]
    # The classes: 0 is bad, 1 is good.
    np.testing.assert_array_equal(cell.runs[0].nearest, [1, 0, 1, -1, -1, -1])
    np.testing.assert_array_equal(cell.runs[0].last, [0, 0, 1, 0, -1, -1])
    assert cell.copied_nearest == pytest.approx(100 * 2 / 3)
    assert cell.copied_last == 50


def test_planned_cells_without_rows_are_missing(tmp_path):
    rows = make_rows({"z-icl": 0.8, "no-demos": 0.5}, examples=10, tasks=["CR"])
    folder = write_folder(tmp_path / "r", rows, planned=10)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["cells"]["CR/naive/task/channel/-"] = {"method": {"title": "Naive"}, "examples": 10}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "rows" / "1.parquet").unlink()
    results = collect([folder])
    assert results.cells[key("naive")].runs == ()
    assert results.cells[key("naive")].missing == 10
    assert results.missing == 10 + 15
    for file in (folder / "rows").iterdir():
        file.unlink()
    assert collect([folder]).missing == 40


def test_a_row_written_twice_counts_once_unless_it_differs(tmp_path):
    rows = [row("CR", "naive", "good", "good", "a"), row("CR", "naive", "good", "good", "a")]
    assert collect([write_folder(tmp_path / "same", rows)]).cells[key("naive")].present == 1
    rows[1]["predicted"] = "bad"
    with pytest.raises(StorageError, match="two different predictions"):
        collect([write_folder(tmp_path / "other", rows)])


def test_a_gold_label_that_is_none_is_an_error(tmp_path):
    with pytest.raises(StorageError, match="a gold label of CR is not one of bad, good"):
        collect([write_folder(tmp_path / "r", [row("CR", "naive", "fine", "good", "a")])])


def test_several_folders(tmp_path):
    rows = make_rows({"z-icl": 0.8}, examples=4)
    first = write_folder(tmp_path / "a", rows)
    other = write_folder(tmp_path / "b", rows, model="large")
    assert collect([first, other]).models == ("tiny", "large")
    with pytest.raises(UsageError, match="both hold z-icl on CR"):
        collect([first, first])
    again = write_folder(tmp_path / "c", rows, identity="2")
    assert collect([first, again]).models == ("tiny (a)", "tiny (c)")
    more = write_folder(tmp_path / "d", make_rows({"naive": 0.8}, examples=4))
    assert len(collect([first, more]).cells) == 6


def test_coverage_that_differs_between_folders_is_unknown(tmp_path):
    rows = make_rows({"z-icl": 0.8}, examples=4)
    first = write_folder(tmp_path / "a", rows)
    other = write_folder(tmp_path / "b", rows, model="large", covered={"CR": True, "SST2": True, "AGNews": None})
    covered = {name: task.covered for name, task in collect([first, other]).tasks.items()}
    assert covered == {"CR": True, "SST2": None, "AGNews": None}
