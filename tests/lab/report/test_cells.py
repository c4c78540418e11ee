"""Cells: scores by seed, means over tasks, macro-F1."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tests.lab.report.folder import row, write_folder
from zicl.lab.report.cells import CellKey, macro_f1, mean_and_deviation
from zicl.lab.report.collect import collect


def key(method, task="CR", inference="channel", template="task", model="tiny"):
    return CellKey(model, template, inference, method, task)


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


def test_deviations_of_averages_are_over_seeds(tmp_path):
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
