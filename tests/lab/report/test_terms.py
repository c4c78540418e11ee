"""Scores from stored rows: which column they come from, and what is refused."""

import numpy as np
import pytest

from tests.lab.report.folder import row, write_folder
from zicl.exceptions import StorageError
from zicl.lab.report.collect import collect
from zicl.score.calibration import join_terms


def run_of(tmp_path, *rows, **options):
    (cell,) = collect([write_folder(tmp_path / "r", list(rows), **options)]).cells.values()
    return cell.runs[0]


def scored(number, method="naive", **values):
    return row("CR", method, "good", "good", f"{number}", **values)


def test_plain_rows_have_one_term_which_is_what_was_compared(tmp_path):
    run = run_of(tmp_path, *(scored(n, log_likelihoods=[-n, -4.0], tokens=[2, 4]) for n in range(3)))
    np.testing.assert_array_equal(run.terms, [[[0, -4], [-1, -4], [-2, -4]]])
    np.testing.assert_array_equal(run.scores, run.terms[0])


def test_means_are_over_tokens_where_there_are_any(tmp_path):
    run = run_of(tmp_path, scored(0, log_likelihoods=[-3.0, -4.0], tokens=[2, 4]), reduce="mean")
    np.testing.assert_array_equal(run.scores, [[-1.5, -1]])


def test_controls_have_scores_without_tokens(tmp_path):
    run = run_of(tmp_path, scored(0, "cosine-words", log_likelihoods=[0.25, 0.5]), reduce="mean")
    np.testing.assert_array_equal(run.scores, [[0.25, 0.5]])


def test_values_stand_before_log_likelihoods_and_terms_before_both(tmp_path):
    given = {"log_likelihoods": [-9.0, -9.0], "values": [-1.0, -2.0], "raw": [[-9.0, -9.0]]}
    run = run_of(tmp_path / "values", scored(0, **given))
    np.testing.assert_array_equal(run.terms, [[[-1, -2]]])
    terms = [[-1.0, -2.0], [-5.0, -3.0], [0.0, 0.5]]
    run = run_of(tmp_path / "terms", *(scored(n, **{**given, "terms": terms}) for n in range(2)))
    assert run.terms.shape == (3, 2, 2)
    np.testing.assert_array_equal(run.terms[:, 1], terms)
    np.testing.assert_allclose(run.scores[1], join_terms(np.array(terms)))


def test_a_text_with_fewer_options_has_no_chance_for_the_rest(tmp_path):
    def own(number, scores, tokens):
        return row("AGNews", "naive", "world", "world", f"{number}", log_likelihoods=scores, tokens=tokens)

    run = run_of(tmp_path, own(0, [-1.0, -4.0], [1, 2]), own(1, [-3.0, -6.0, -9.0], [3, 3, 3]), reduce="mean")
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
