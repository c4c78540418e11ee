"""Other label shares: properties of the draws, and the scores of methods under them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.report.folder import row, write_folder
from zicl.lab.report.build import make_report
from zicl.lab.report.label_shares import PATTERNS, draw, long_tailed, one_large, quotas

patterns = st.sampled_from(list(PATTERNS.values()))
golds = st.integers(2, 5).flatmap(
    lambda labels: st.lists(st.integers(1, 60), min_size=labels, max_size=labels).map(
        lambda counts: np.repeat(np.arange(labels), counts)
    )
)


@given(patterns, st.integers(2, 8))
def test_shares_sum_to_one_and_every_label_is_largest_once(pattern, labels):
    shares = pattern(labels)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert sorted(shares.argmax(axis=1)) == list(range(labels))
    np.testing.assert_allclose(shares.mean(axis=0), 1 / labels)


def test_shares_of_two_and_of_three_labels():
    np.testing.assert_allclose(one_large(2), [[0.9, 0.1], [0.1, 0.9]])
    np.testing.assert_allclose(one_large(3)[1], [0.05, 0.9, 0.05])
    np.testing.assert_allclose(long_tailed(2), [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])


@given(golds, patterns, st.data())
def test_a_draw_has_the_shares_and_no_row_twice(gold, pattern, data):
    every = pattern(gold.max() + 1)
    shares = every[data.draw(st.integers(0, len(every) - 1))]
    counts = np.bincount(gold)
    chosen = draw(gold, shares, np.random.default_rng(data.draw(st.integers(0, 99))))
    assert len(np.unique(chosen)) == len(chosen)
    taken = np.bincount(gold[chosen], minlength=len(shares))
    np.testing.assert_array_equal(taken, quotas(counts, shares))
    total = (counts / shares).min()
    assert (np.abs(taken - total * shares) <= 1).all()
    assert (taken >= 1).all()
    # As many as possible: all rows of some label are drawn.
    assert (taken == counts).any()


@given(golds)
def test_equal_shares_of_equal_counts_keep_everything(gold):
    labels = gold.max() + 1
    assert quotas(np.full(labels, 7), np.full(labels, 1 / labels)).tolist() == [7] * labels


def two_methods(tmp_path, **values):
    """Unbiased scores, correct for nine texts of ten: batch calibration has nothing to gain."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(200):
        gold = number % 2
        margin = rng.normal(2 if gold else -2, 1.5)
        for method in ("naive", "naive-batch"):
            rows.append(
                row("CR", method, ["bad", "good"][gold], ["bad", "good"][int(margin > 0)], f"{number}",
                    log_likelihoods=[0.0, float(margin)])
            )  # fmt: skip
        rows.append(row("CR", "majority", ["bad", "good"][gold], "bad", f"{number}", inference="none"))
    return write_folder(tmp_path / "r", rows, **values)


def test_equal_shares_flatter_batch_calibration(tmp_path):
    report = make_report([two_methods(tmp_path)], shares=True)
    found = {(each.key.method, each.pattern): each for each in report.shares}
    plain, batch = found["naive", "one-large"], found["naive-batch", "one-large"]
    assert (plain.rows, plain.of) == (111, 200)
    assert batch.accuracy < plain.accuracy - 2
    unsampled = {key.method: cell.scores("accuracy")[None] for key, cell in report.results.cells.items()}
    assert abs(unsampled["naive-batch"] - unsampled["naive"]) < 2
    # Every label is the large one in turn, so that the accuracy without calibration stays the same.
    assert plain.accuracy == pytest.approx(unsampled["naive"], abs=2)
    assert found["naive", "long-tailed"].rows == 150
    assert found["majority", "one-large"].accuracy == pytest.approx(90, abs=0.2)


def test_tables_and_json(tmp_path):
    folder = two_methods(tmp_path)
    report = make_report([folder], shares=True)
    text = report.render("markdown")
    assert "**Accuracy / macro-F1 in per cent where one label has 90 % of the rows**" in text
    assert "where each label is half as frequent as the one before**" in text
    assert "- Rows left in a draw, on average: CR 111 of 200." in text
    assert "half as frequent" in report.render("latex")
    found = json.loads(report.render("json"))["other_shares"]
    assert {each["pattern"] for each in found} == set(PATTERNS)
    assert {"model", "method", "task", "accuracy", "macro_f1", "rows", "of"} <= set(found[0])
    assert make_report([folder], shares=True).shares == report.shares
    assert "other_shares" not in make_report([folder]).to_dict()
    assert "half as frequent" not in make_report([folder]).render("markdown")


def test_a_cell_without_rows_of_some_label_is_left_out(tmp_path):
    rows = [row("CR", "naive", "good", "good", n) for n in "ab"]
    report = make_report([write_folder(tmp_path / "r", rows)], shares=True)
    assert report.shares == []
    assert "half as frequent" not in report.render("markdown")
