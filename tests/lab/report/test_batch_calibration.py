"""Batch calibration of stored rows: which methods, what is subtracted, and the notes on it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.lab.report.folder import row, write_folder
from zicl.lab.report.batch_calibration import batch_scores, calibrate_results
from zicl.lab.report.build import make_report
from zicl.lab.report.collect import collect
from zicl.score.calibration import join_terms, log_prior, log_softmax

batches = st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-30, 30))
)


@given(batches)
def test_each_terms_prior_is_subtracted(terms):
    by_hand = np.stack([values - log_prior(values) for values in terms])
    expected = [join_terms(by_hand[:, number]) for number in range(terms.shape[1])]
    np.testing.assert_allclose(batch_scores(terms), expected)


@given(batches, st.integers(-50, 50))
def test_a_constant_added_to_a_row_changes_nothing(terms, constant):
    moved = terms.copy()
    moved[:, 0] += constant
    np.testing.assert_allclose(log_softmax(batch_scores(moved)), log_softmax(batch_scores(terms)), atol=1e-6, rtol=1e-9)


@given(batches)
def test_a_binary_batch_with_all_its_mirror_images_keeps_its_predictions(terms):
    """With every row and its mirror image both labels are equally frequent: there is nothing to subtract."""
    two = terms[:, :, :2]
    both = np.concatenate([two, two[:, :, ::-1]], axis=1)
    before, after = join_terms(both), batch_scores(both)
    clear = np.abs(before[:, 0] - before[:, 1]) > 1e-6
    np.testing.assert_array_equal(after.argmax(axis=1)[clear], before.argmax(axis=1)[clear])


@given(batches)
def test_a_batch_of_several_labels_with_all_its_rotations_keeps_its_scores(terms):
    labels = terms.shape[2]
    every = np.concatenate([np.roll(terms, turn, axis=2) for turn in range(labels)], axis=1)
    before, after = log_softmax(join_terms(every)), log_softmax(batch_scores(every))
    np.testing.assert_allclose(after, before, atol=1e-6)


def rows_of(method, **more):
    """Both labels are correct twice; the model prefers the first one for any text."""
    scores = {"a": (-1.0, -3.0), "b": (-1.0, -3.5), "c": (-1.0, -1.2), "d": (-1.0, -1.5)}
    gold = {"a": "bad", "b": "bad", "c": "good", "d": "good"}
    inference = "none" if method in ("majority", "cosine-words") else "channel"
    return [
        row("CR", method, gold[name], "bad", name, log_likelihoods=list(values), inference=inference, **more)
        for name, values in scores.items()
    ]


@pytest.fixture
def folder(tmp_path):
    rows = [*rows_of("naive"), *rows_of("naive-batch"), *rows_of("majority"), *rows_of("cosine-words")]
    return write_folder(tmp_path / "r", rows)


def accuracies(results):
    return {key.method: cell.scores("accuracy")[None] for key, cell in results.cells.items()}


def test_methods_configured_so_are_always_calibrated(folder):
    raw = collect([folder])
    assert set(accuracies(raw).values()) == {50}
    assert accuracies(calibrate_results(raw)) == {"naive": 50, "naive-batch": 100, "majority": 50, "cosine-words": 50}


def test_the_option_calibrates_every_prompt_and_nothing_else(folder):
    report = make_report([folder], calibrate="batch")
    assert accuracies(report.results) == {"naive": 100, "naive-batch": 100, "majority": 50, "cosine-words": 50}
    text = report.render("markdown")
    assert "| Naive (batch-calibrated) | " in text
    assert "| Majority (control) | " in text
    assert "fitted for each method and seed on the test inputs themselves, labels unused (4 texts a task)" in text
    plain = make_report([folder]).render("markdown")
    assert "| Naive | " in plain
    assert "labels unused (4 texts a task)" in plain


def test_without_any_such_method_there_is_no_note(tmp_path):
    folder = write_folder(tmp_path / "r", rows_of("naive"))
    assert "calibrated" not in make_report([folder]).render("markdown")


def test_the_note_lists_tasks_of_several_sizes(tmp_path):
    rows = [*rows_of("naive"), row("SST2", "naive", "good", "bad", "x"), row("SST2", "z-icl", "good", "bad", "x")]
    rows += [row("SST2", "z-icl", "good", "bad", "y")]
    text = make_report([write_folder(tmp_path / "r", rows)], calibrate="batch").render("markdown")
    assert "labels unused (CR: 4 texts; SST2: 1 to 2 texts)" in text


def test_texts_with_fewer_options_are_left_as_they_are(tmp_path):
    rows = rows_of("naive-batch")
    rows += [row("AGNews", "naive-batch", "world", "world", f"{n}", log_likelihoods=[0.0] * (2 + n)) for n in (0, 1)]
    report = make_report([write_folder(tmp_path / "r", rows)], shares=True)
    cells = {key.task: cell for key, cell in report.results.cells.items()}
    assert cells["CR"].scores("accuracy") == {None: 100}
    assert not cells["AGNews"].kind.batch
    text = report.render("markdown")
    assert "- Not batch-calibrated, for not all texts have the same options: AGNews." in text
    assert "| Naive-batch (batch-calibrated) | 100.0 |" in text
    alone = write_folder(tmp_path / "alone", rows[-2:])
    assert "- Not batch-calibrated, for not" in make_report([alone]).render("markdown")


def test_shares_and_copy_rates_follow_the_new_predictions(tmp_path):
    shown = {"demo_labels": ["bad", "good"], "similarities": [0.9, 0.1], "kept": 2}
    folder = write_folder(tmp_path / "r", rows_of("naive", **shown))
    (raw,) = collect([folder]).cells.values()
    assert (raw.shares, raw.copied_nearest, raw.copied_last) == ({"bad": 100, "good": 0}, 100, 0)
    (cell,) = make_report([folder], calibrate="batch").results.cells.values()
    assert (cell.shares, cell.copied_nearest, cell.copied_last) == ({"bad": 50, "good": 50}, 50, 50)


def test_the_prior_is_fitted_seed_by_seed(tmp_path):
    """Each seed prefers another label; a common prior would subtract nothing."""
    rows = []
    for seed, lean in ((13, 3.0), (21, -3.0)):
        for number, gold in enumerate(["bad", "good"]):
            scores = [lean + (gold == "bad"), float(gold == "good")]
            rows.append(row("CR", "z-icl", gold, "bad" if lean > 0 else "good", f"{number}", seed=seed,
                            log_likelihoods=scores))  # fmt: skip
    (cell,) = make_report([write_folder(tmp_path / "r", rows)], calibrate="batch").results.cells.values()
    assert cell.scores("accuracy") == {13: 100, 21: 100}


def test_several_terms_are_calibrated_one_by_one(tmp_path):
    terms = [[[5.0, 0.0], [0.0, 1.0]], [[5.2, 0.0], [1.0, 0.0]]]
    rows = [
        row("CR", "z-icl", gold, "bad", f"{number}", inference="both", terms=values, values=[0.0, 0.0])
        for number, (gold, values) in enumerate(zip(["good", "bad"], terms, strict=True))
    ]
    (cell,) = make_report([write_folder(tmp_path / "r", rows)], calibrate="batch").results.cells.values()
    np.testing.assert_allclose(cell.runs[0].scores, batch_scores(np.moveaxis(np.array(terms), 1, 0)))
    assert cell.scores("accuracy") == {None: 100}
