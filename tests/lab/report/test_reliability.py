"""Probabilities: metrics worked by hand and as properties, their table, and the diagrams."""

import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import log_loss

from tests.lab.report.folder import LABELS, row, write_folder
from zicl.lab.report.build import make_report
from zicl.lab.report.plotting import styles
from zicl.lab.report.reliability import (
    PLOTS,
    brier,
    confidence,
    draw_figures,
    ece,
    equal_mass,
    make_figure,
    nll,
    plotted_rows,
    probabilities,
    probability_metrics,
    risk_coverage,
)

# Whole numbers: adding one to another is exact, so that nothing but the measure is tested.
scored = st.tuples(st.integers(1, 40), st.integers(2, 5)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, shape, elements=st.integers(-20, 20).map(float)),
        arrays(np.int64, shape[0], elements=st.integers(0, shape[1] - 1)),
    )
)
forecasts = st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.75, 0.9, 1.0]), st.booleans()), min_size=1, max_size=60)


def split(pairs):
    return np.array([c for c, _ in pairs]), np.array([r for _, r in pairs], dtype=bool)


def test_two_texts_by_hand():
    scores, gold = np.log([[0.8, 0.2], [0.4, 0.6]]), np.array([0, 0])
    assert nll(scores, gold) == pytest.approx(-(math.log(0.8) + math.log(0.4)) / 2)
    assert brier(scores, gold) == pytest.approx((2 * 0.2**2 + 2 * 0.6**2) / 2)
    # Two bins: confidence 0.8 and correct, confidence 0.6 and wrong.
    assert ece(confidence(scores), np.array([True, False])) == pytest.approx((0.2 + 0.6) / 2)


def test_certain_and_correct_is_perfect():
    scores, gold = np.array([[50.0, 0.0], [0.0, 50.0]]), np.array([0, 1])
    assert nll(scores, gold) == pytest.approx(0)
    assert brier(scores, gold) == pytest.approx(0)
    assert ece(confidence(scores), np.array([True, True])) == pytest.approx(0)


@pytest.mark.parametrize("bins", [1, 2, 15])
def test_accuracy_that_equals_confidence_has_no_error(bins):
    """Nine of ten correct at 0.9, three of four at 0.75, in any order of rows."""
    confident = np.repeat([0.9, 0.75], [20, 20])
    right = np.concatenate([np.arange(20) < 18, np.arange(20) < 15])
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(40)
        assert ece(confident[order], right[order], bins) == pytest.approx(0)


def test_uniform_probabilities():
    scores, gold = np.zeros((6, 3)), np.array([0, 1, 2, 0, 1, 2])
    assert nll(scores, gold) == pytest.approx(math.log(3))
    assert brier(scores, gold) == pytest.approx(2 / 3)
    assert ece(confidence(scores), gold == 0) == pytest.approx(0)


def test_ruling_out_the_gold_label_has_infinite_loss():
    assert nll(np.array([[0.0, -np.inf]]), np.array([1])) == math.inf
    assert brier(np.array([[0.0, -np.inf]]), np.array([1])) == 2


@given(scored)
def test_probabilities_sum_to_one_and_the_likelihood_is_scikit_learns(both):
    scores, gold = both
    np.testing.assert_allclose(probabilities(scores).sum(axis=1), 1)
    # Closer together: scikit-learn cuts off probabilities below the smallest step of a float.
    close = scores / 4
    expected = log_loss(gold, probabilities(close), labels=np.arange(scores.shape[1]))
    assert nll(close, gold) == pytest.approx(expected)


@given(scored, st.integers(-1000, 1000))
def test_a_constant_added_to_a_row_changes_nothing(both, constant):
    scores, gold = both
    moved = scores.copy()
    moved[0] += constant
    right = scores.argmax(axis=1) == gold
    assert nll(moved, gold) == nll(scores, gold)
    assert brier(moved, gold) == brier(scores, gold)
    assert ece(confidence(moved), right) == ece(confidence(scores), right)


@given(scored)
def test_metrics_stay_in_their_bounds(both):
    scores, gold = both
    assert nll(scores, gold) >= 0
    assert 0 <= brier(scores, gold) <= 2 + 1e-9
    assert 0 <= ece(confidence(scores), scores.argmax(axis=1) == gold) <= 1


@given(st.integers(1, 200), st.integers(1, 20))
def test_bins_hold_equally_many_texts(size, bins):
    counts = equal_mass(np.linspace(0.5, 1, size), np.ones(size, bool), bins).counts
    assert counts.sum() == size
    assert len(counts) == min(bins, size)
    assert counts.max() - counts.min() <= 1


@given(forecasts, st.randoms())
def test_the_order_of_rows_does_not_matter(pairs, random):
    confident, right = split(pairs)
    mixed = list(pairs)
    random.shuffle(mixed)
    assert ece(*split(mixed)) == pytest.approx(ece(confident, right))
    for one, other in zip(risk_coverage(*split(mixed)), risk_coverage(confident, right), strict=True):
        np.testing.assert_allclose(one, other)


@given(forecasts)
def test_texts_of_one_confidence_share_a_bin(pairs):
    found = equal_mass(*split(pairs))
    assert found.counts.sum() == len(pairs)
    assert (np.diff(found.confidence) > 0).all()


@given(forecasts)
def test_full_coverage_has_the_error_rate_as_risk(pairs):
    confident, right = split(pairs)
    coverage, risk = risk_coverage(confident, right)
    assert coverage[-1] == 1
    assert risk[-1] == pytest.approx(1 - right.mean())
    assert (np.diff(coverage) > 0).all()


def test_the_table_and_the_json_of_a_report(tmp_path):
    rows = [row("CR", "naive", "good", "good", f"{n}", log_likelihoods=[math.log(0.2), math.log(0.8)]) for n in "ab"]
    rows += [
        row("CR", "logistic", "good", "bad", n, log_likelihoods=[0.0, -math.inf], inference="none", seed=13)
        for n in "ab"
    ]
    rows += [row("CR", "cosine-words", "good", "good", n, log_likelihoods=[0.1, 0.2], inference="none") for n in "ab"]
    report = make_report([write_folder(tmp_path / "r", rows)])
    table = report.render("markdown").split("**What the probabilities claim")[1]
    assert "| Naive | 0.22 / 0.08 / 20 |" in table
    assert "| Logistic (control, oracle) | ∞ / 2.00 / 100 |" in table
    assert "Cosine-words" not in table
    assert "15 adaptive bins" in table
    assert r"$\infty$ / 2.00 / 100" in report.render("latex")
    found = {cell["method"]: cell["probabilities"] for cell in json.loads(report.render("json"))["cells"]}
    assert found["naive"] == {"nll": pytest.approx(-math.log(0.8)), "brier": pytest.approx(0.08),
                              "ece": pytest.approx(20)}  # fmt: skip
    assert found["logistic"]["nll"] is None
    assert found["cosine-words"] is None


def test_seeds_are_averaged_and_a_cell_without_rows_has_no_metrics(tmp_path):
    rows = [
        row("CR", "z-icl", "good", "good", "a", log_likelihoods=[math.log(1 - p), math.log(p)], seed=seed)
        for seed, p in ((13, 0.8), (21, 0.6))
    ]
    (cell,) = make_report([write_folder(tmp_path / "r", rows)]).results.cells.values()
    assert probability_metrics(cell).nll == pytest.approx(-(math.log(0.8) + math.log(0.6)) / 2)
    assert probability_metrics(cell).ece == pytest.approx(30)
    for file in (tmp_path / "r" / "rows").iterdir():
        file.unlink()
    (empty,) = make_report([tmp_path / "r"]).results.cells.values()
    assert probability_metrics(empty) is None


METHODS = ("no-demos", "z-icl", "mine-batch", "majority", "cosine-words", "logistic")


@pytest.fixture
def results(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for task in ("CR", "AGNews"):
        for method in METHODS:
            inference = "none" if method in ("majority", "cosine-words", "logistic") else "channel"
            for number in range(60):
                gold = number % len(LABELS[task])
                scores = rng.normal(0, 1, len(LABELS[task])) + np.eye(len(LABELS[task]))[gold]
                said = LABELS[task][int(scores.argmax())]
                rows.append(row(task, method, LABELS[task][gold], said, f"{number}", inference=inference,
                                log_likelihoods=scores.tolist()))  # fmt: skip
    return make_report([write_folder(tmp_path / "r", rows)]).results


def test_both_figures_in_both_formats_and_the_same_to_the_byte(results, tmp_path):
    written = list(draw_figures(results, tmp_path / "new" / "folder"))
    assert [path.name for path in written] == [
        "reliability-channel-tiny-task.svg", "reliability-channel-tiny-task.png",
        "risk-coverage-channel-tiny-task.svg", "risk-coverage-channel-tiny-task.png",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(p.name for p in written)
    again = draw_figures(results, tmp_path / "again")
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert written[1].read_bytes().startswith(b"\x89PNG")
    assert ET.parse(written[0]).getroot().tag.endswith("svg")


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_one_panel_per_task_and_one_line_per_method(results, plot):
    (section,) = [section for section in results.sections if section.inference == "channel"]
    rows = plotted_rows(results, section)
    # Cosines are no probabilities, and the majority is no line.
    assert list(rows) == ["no-demos", "z-icl", "mine-batch", "logistic"]
    looks = styles(METHODS)
    figure = make_figure(results, "A title", rows, plot, looks)
    assert [panel.get_title() for panel in figure.axes] == ["CR", "AGNews"]
    for panel in figure.axes:
        lines = [line for line in panel.lines if line.get_marker() != "None"]
        assert [line.get_color() for line in lines] == [looks[name].colour for name in rows]
        assert [line.get_marker() for line in lines] == [looks[name].marker for name in rows]
        assert all(len(line.get_xdata()) for line in lines)
    (legend,) = figure.legends
    titles = [text.get_text() for text in legend.get_texts()]
    assert titles == ["No-demos", "Z-icl", "Mine-batch (batch-calibrated)", "Logistic (control, oracle)"]


def test_rows_that_are_few_or_none(tmp_path):
    folder = write_folder(tmp_path / "r", [row("CR", "naive", "good", "good", "a")])
    assert len(draw_figures(make_report([folder]).results, tmp_path / "few")) == 4
    for file in (folder / "rows").iterdir():
        file.unlink()
    assert draw_figures(make_report([folder]).results, tmp_path / "none") == {}
