"""Scoring a labelled sheet: weighted estimates, cautious intervals, thresholds, mistakes."""

import csv
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from zicl.apps.check.predictions import OutputPrediction
from zicl.apps.check.score import estimate_accuracy, score
from zicl.apps.check.sheet import Sheet, SheetRow
from zicl.cli.check import app
from zicl.exceptions import TextError, UsageError, ZICLError

LABELS = ("calm", "stormy")


def row(n, gold, predicted="calm", margin=0.5, stratum="s", weight=1.0):
    return SheetRow(OutputPrediction(f"r{n}", f"Report {n}.", predicted, margin), stratum, weight, gold)


rows_ = st.lists(
    st.tuples(
        st.sampled_from(["calm", "stormy", ""]),
        st.sampled_from(LABELS),
        st.sampled_from([0.1, 0.2, 0.6, 0.9]),
        st.sampled_from(["a", "b", "c"]),
    ),
    min_size=1,
    max_size=60,
)
WEIGHTS = {"a": 1.0, "b": 7.5, "c": 30.0}


def sheet_of(entries, weights=WEIGHTS):
    return Sheet(LABELS, tuple(row(n, g, p, m, s, weights[s]) for n, (g, p, m, s) in enumerate(entries)))


@given(rows_)
def test_estimates_are_sound(entries):
    if not any(gold for gold, *_ in entries):
        return
    sheet = sheet_of(entries)
    result = score(sheet, 0.8)
    estimates = [result.accuracy, *(e for one in result.labels for e in (one.precision, one.recall) if e is not None)]
    for estimate in estimates:
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.high - estimate.low > 0.01
    total = sum(row.weight for row in sheet.rows)
    assert result.accuracy.rows + result.unspoken == pytest.approx(total)
    assert sum(cell.rows for cell in result.confusion) == pytest.approx(result.accuracy.rows)
    assert sum(cell.labelled for cell in result.confusion) == result.accuracy.labelled
    assert result.accuracy.labelled + result.empty == len(entries)
    right = sum(cell.rows for cell in result.confusion if cell.gold == cell.predicted)
    assert result.accuracy.value == pytest.approx(right / result.accuracy.rows)


@given(rows_)
def test_with_equal_weights_the_accuracy_is_the_mean(entries):
    entries = [(gold or "calm", *rest) for gold, *rest in entries]
    result = score(sheet_of(entries, dict.fromkeys(WEIGHTS, 4.0)))
    assert result.accuracy.value == pytest.approx(sum(e[0] == e[1] for e in entries) / len(entries))
    assert (result.empty, result.unspoken) == (0, 0)


@given(rows_, st.floats(0.01, 1))
def test_the_threshold_is_the_smallest_that_holds(entries, wanted):
    entries = [(gold or "calm", *rest) for gold, *rest in entries]
    result = score(sheet_of(entries), wanted)

    def precision(margin):
        kept = [(g == p, WEIGHTS[s]) for g, p, m, s in entries if m >= margin]
        return sum(w for ok, w in kept if ok) / sum(w for _, w in kept)

    holding = [margin for margin in sorted({e[2] for e in entries}) if precision(margin) >= wanted - 1e-9]
    assert (result.threshold.margin if result.threshold else None) == (holding[0] if holding else None)


def test_one_stratum_gives_wilsons_interval():
    rows = [row(n, "calm" if n < 80 else "stormy") for n in range(100)]
    found = estimate_accuracy(rows)
    # Eighty of a hundred: a textbook value.
    assert (found.value, round(found.low, 4), round(found.high, 4)) == (0.8, 0.7112, 0.8666)
    assert estimate_accuracy(rows[:80]).value == 1.0
    assert 0.94 < estimate_accuracy(rows[:80]).low < 0.96


def test_small_strata_that_are_all_correct_leave_doubt():
    rows = [row(n, "calm", stratum=str(n % 6), weight=50.0) for n in range(12)]
    found = estimate_accuracy(rows)
    assert found.value == found.high == 1.0
    assert found.low < 0.85


def test_labelled_rows_represent_the_empty_rows_of_their_stratum():
    rows = (
        row(1, "calm", stratum="a", weight=10.0),
        row(2, "", stratum="a", weight=10.0),
        row(3, "stormy", stratum="b", weight=5.0),
        row(4, "", stratum="c", weight=2.0),
    )
    result = score(Sheet(LABELS, rows))
    assert (result.empty, result.unspoken) == (2, 2.0)
    assert result.accuracy.value == pytest.approx(20 / 25)
    assert result.accuracy.rows == 25


def test_a_sheet_without_labels_and_an_impossible_precision_are_errors():
    with pytest.raises(TextError, match="no row of the sheet is labelled"):
        score(Sheet(LABELS, (row(1, ""),)))
    with pytest.raises(UsageError, match="the wanted precision is 0"):
        score(Sheet(LABELS, (row(1, "calm"),)), 0)


def test_labels_and_mistakes():
    rows = [row(n, "calm", margin=n / 20) for n in range(10)]
    rows += [row(n, "calm", "stormy", margin=n / 20) for n in range(10, 18)]
    result = score(Sheet((*LABELS, "foggy"), tuple(rows)))
    calm, stormy, foggy = result.labels
    assert calm.precision.value == 1.0
    assert calm.recall.value == pytest.approx(10 / 18)
    assert stormy.precision.value == 0
    assert (stormy.recall, foggy.precision, foggy.recall) == (None, None, None)
    assert [wrong.id for wrong in result.mistakes] == ["r17", "r16", "r15", "r14", "r13"]
    assert result.threshold is None
    assert not math.isnan(result.accuracy.value)


def write_output(path):
    """Write an output whose predictions are correct where the margin is large; the text holds the gold label."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text", "predicted", "probability", "margin", "p:calm", "p:stormy"])
        for n in range(300):
            predicted, margin = LABELS[n % 2], n / 300
            gold = predicted if n > 100 or n % 3 else LABELS[1 - n % 2]
            writer.writerow([n, f"A {gold} day, number {n}.", predicted, 0.5 + margin / 2, margin, 0.5, 0.5])


def test_the_commands(tmp_path):
    output, sheet = tmp_path / "labelled.csv", tmp_path / "to_label.csv"
    write_output(output)
    run = CliRunner()
    drawn = run.invoke(app, ["sample", str(output), "-o", str(sheet), "--rows", "60"])
    assert (drawn.exit_code, drawn.stdout) == (0, "")
    assert "60 of 300 rows" in drawn.stderr
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["id", "text", "gold"]
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "gold": row["text"].split()[1] if number else ""} for number, row in enumerate(rows))
    found = json.loads(run.invoke(app, ["score", str(sheet), "--precision", "0.95", "--json"]).stdout)
    assert found["empty"] == 1
    assert 0.8 < found["accuracy"]["value"] < 0.97
    assert found["accuracy"]["rows"] == pytest.approx(300)
    assert 0 < found["threshold"]["margin"] < 0.5
    assert 0.5 < found["threshold"]["kept"] < 1
    shown = run.invoke(app, ["score", str(sheet)], env={"COLUMNS": "200"})
    assert "without a label yet: 1 of 60 rows" in shown.stderr
    for part in ("accuracy", "from a margin of", "the most confident mistakes:", "stormy"):
        assert part in shown.stdout
    kept = run.invoke(app, ["sample", str(output), "-o", str(sheet)])
    assert isinstance(kept.exception, ZICLError)
    same = run.invoke(app, ["sample", str(output), "-o", str(output)])
    assert isinstance(same.exception, UsageError)


def test_the_interval_of_recall_covers_it():
    """Rows of a rare label may be among those predicted as another: the interval has to allow for that."""
    covered, draws = 0, 200
    generator = np.random.default_rng(0)
    for _ in range(draws):
        rows = []
        # 1,900 rows predicted calm, of which 60 are stormy; 100 predicted stormy, of which 80 are: recall 80 / 140.
        for predicted, size, share in (("calm", 1900, 60 / 1900), ("stormy", 100, 0.8)):
            gold = generator.random(50) < share
            rows += [
                row(n, "stormy" if hit else "calm", predicted, stratum=predicted, weight=size / 50)
                for n, hit in enumerate(gold)
            ]
        stormy = score(Sheet(LABELS, tuple(rows))).labels[LABELS.index("stormy")]
        covered += stormy.recall is not None and stormy.recall.low <= 80 / 140 <= stormy.recall.high
    assert covered / draws > 0.9


def test_the_interval_of_recall_covers_it_with_many_labels():
    """Ten labels in three bands each, with three labelled rows per band."""
    generator, covered, draws = np.random.default_rng(1), 0, 300
    names = tuple(f"label {n}" for n in range(10))
    # Of the first label 90 are predicted as such, and 16 are among 900 predicted as another.
    true = 90 / 106
    for _ in range(draws):
        rows = []
        for name in names:
            share = 0.9 if name == names[0] else 16 / 900
            for band in range(3):
                for n, hit in enumerate(generator.random(3) < share):
                    gold = names[0] if hit else names[1] if name == names[0] else name
                    rows.append(row(n, gold, name, stratum=f"{name} {band}", weight=100 / 9))
        recall = score(Sheet(names, tuple(rows))).labels[0].recall
        covered += recall is not None and recall.low <= true <= recall.high
    assert covered / draws > 0.9
