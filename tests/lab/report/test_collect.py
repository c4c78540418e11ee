"""From results folders to cells: rows, scores, demonstrations, and what damaged folders say."""

import json

import numpy as np
import pytest

from tests.lab.report.folder import make_rows, row, write_folder
from zicl.exceptions import StorageError, UsageError
from zicl.lab.evaluate.store import KEY, ResultsFolder
from zicl.lab.report.cells import CellKey
from zicl.lab.report.collect import collect
from zicl.score.calibration import join_terms


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
        (lambda f: (f / "manifest.json").unlink(), "a folder without manifest.json, not a results folder"),
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


def test_an_unknown_gold_label_is_an_error(tmp_path):
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


def run_of(tmp_path, *rows, **options):
    (cell,) = collect([write_folder(tmp_path / "r", list(rows), **options)]).cells.values()
    return cell.runs[0]


def scored(number, method="naive", **values):
    return row("CR", method, "good", "good", f"{number}", **values)


def test_plain_rows_have_one_term_the_log_likelihoods(tmp_path):
    run = run_of(tmp_path, *(scored(n, log_likelihoods=[-n, -4.0], tokens=[2, 4]) for n in range(3)))
    np.testing.assert_array_equal(run.terms, [[[0, -4], [-1, -4], [-2, -4]]])
    np.testing.assert_array_equal(run.scores, run.terms[0])


def test_means_are_over_tokens_where_there_are_any(tmp_path):
    run = run_of(tmp_path, scored(0, log_likelihoods=[-3.0, -4.0], tokens=[2, 4]), reduce="mean")
    np.testing.assert_array_equal(run.scores, [[-1.5, -1]])


def test_controls_have_scores_without_tokens(tmp_path):
    run = run_of(tmp_path, scored(0, "cosine-words", log_likelihoods=[0.25, 0.5]), reduce="mean")
    np.testing.assert_array_equal(run.scores, [[0.25, 0.5]])


def test_values_take_precedence_over_log_likelihoods_and_terms_over_both(tmp_path):
    given = {"log_likelihoods": [-9.0, -9.0], "values": [-1.0, -2.0], "raw": [[-9.0, -9.0]]}
    run = run_of(tmp_path / "values", scored(0, **given))
    np.testing.assert_array_equal(run.terms, [[[-1, -2]]])
    terms = [[-1.0, -2.0], [-5.0, -3.0], [0.0, 0.5]]
    run = run_of(tmp_path / "terms", *(scored(n, **{**given, "terms": terms}) for n in range(2)))
    assert run.terms.shape == (3, 2, 2)
    np.testing.assert_array_equal(run.terms[:, 1], terms)
    np.testing.assert_allclose(run.scores[1], join_terms(np.array(terms)))


def test_a_text_with_fewer_options_has_minus_infinity_for_the_rest(tmp_path):
    def options(number, scores, tokens):
        return row("AGNews", "naive", "world", "world", f"{number}", log_likelihoods=scores, tokens=tokens)

    run = run_of(tmp_path, options(0, [-1.0, -4.0], [1, 2]), options(1, [-3.0, -6.0, -9.0], [3, 3, 3]), reduce="mean")
    np.testing.assert_array_equal(run.scores, [[-1, -2, -np.inf], [-1, -2, -3]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"log_likelihoods": [0.0] * 3}, "log_likelihoods do not hold, in every row, a number for each of its options"),
        ({"log_likelihoods": []}, "log_likelihoods do not hold"),
        ({"terms": [[0.0, 1.0]]}, "some rows have terms and others have none"),
        ({"log_likelihoods": [0.0, float("nan")]}, "a score is not a number"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path, values, message):
    with pytest.raises(StorageError, match=message):
        run_of(tmp_path, scored(0), scored(1, **values))


def test_terms_of_unequal_number_are_refused(tmp_path):
    with pytest.raises(StorageError, match="terms do not hold"):
        run_of(tmp_path, scored(0, terms=[[0.0, 1.0]]), scored(1, terms=[[0.0, 1.0], [0.0, 1.0]]))
