"""Findings for methods of known accuracy: every number and its sign."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from zicl.lab.report.cells import CellKey, MethodTraits, ReportCell, ReportTask, ResultSet, SeedRun
from zicl.lab.report.statistics import Bootstrap
from zicl.lab.study.outcome import StudyOutcome, copy_rate, minus
from zicl.lab.study.registry import STUDIES

EXAMPLES = 100
NUMBER = re.compile(r"([+-]?\d+\.\d) (?:points|%)(?: \[)")


def run(seed, accuracy, identical=None):
    """Correct on the first examples; ``identical`` says whether the label shown with the input is the gold one."""
    gold = np.arange(EXAMPLES) % 2
    predicted = np.where(np.arange(EXAMPLES) < accuracy, gold, 1 - gold)
    nothing = np.zeros((EXAMPLES, 2))
    shown = None if identical is None else (gold if identical else 1 - gold)
    return SeedRun(seed, np.arange(EXAMPLES), gold, predicted, gold - 2, gold - 2, nothing[None], nothing, shown)


def make_outcome(accuracies, folder, *, seeds=(100, 13), tasks=("CR",), identical=None):
    """Methods with their accuracies; on every further task they are ten points lower."""
    cells = {}
    for number, task in enumerate(tasks):
        for method, accuracy in accuracies.items():
            key = CellKey("tiny", "task", "channel", method, task)
            runs = [run(seed, accuracy - 10 * number, (identical or {}).get(method)) for seed in seeds]
            cells[key] = ReportCell(key, MethodTraits(method), ("bad", "good"), tuple(runs))
    tasks_by_name = {task: ReportTask(task, ("bad", "good"), examples=EXAMPLES) for task in tasks}
    return StudyOutcome(ResultSet(("tiny",), tasks_by_name, cells), folder, Bootstrap(200))


def numbers(name, accuracies, folder, options=None, **given):
    study = STUDIES.get(name)
    chosen = study.options.model_validate(options or {})
    findings = study.all_findings(chosen, make_outcome(accuracies, folder, **given))
    assert all(line.startswith("channel: ") for line in findings)
    return [[float(number) for number in NUMBER.findall(line)] for line in findings]


def test_copying(tmp_path):
    same = {"icl-gold-same-correct": True, "icl-gold-same-incorrect": False}
    accuracies = {"icl-gold": 80, "icl-random": 70, "nearest-icl-gold": 90, "nearest-icl-random": 55}
    # Where the label shown with the input is wrong, correct answers are those that do not copy it.
    shown = {"icl-gold-same-correct": 95, "icl-gold-same-incorrect": 40}
    result = numbers("copying", {**accuracies, **shown}, tmp_path, identical=same)
    assert result == [[10, 35, 25], [77.5, 95, 60, 80], []]


def test_copying_by_closeness(tmp_path):
    """The first texts are right and far: of the 33 nearest, 23 are right with gold labels and none with random ones."""
    outcome = make_outcome({"nearest-icl-gold": 90, "nearest-icl-random": 55}, tmp_path)
    outcome, study = with_nearest(outcome, lambda _: np.arange(EXAMPLES) / 100), STUDIES.get("copying")
    assert [float(each) for each in NUMBER.findall(study.all_findings(study.options(), outcome)[2])] == [0, 69.7]
    figures = {figure.name: figure for figure in study.figures(study.options(), outcome)}
    gold, random = figures["labels-by-closeness"].panels[0].series
    assert [round(point.value.estimate, 1) for point in gold.points] == [100, 69.7]
    assert [round(point.value.estimate, 1) for point in random.points] == [100, 0]


def test_what_is_near_may_differ_from_seed_to_seed(tmp_path):
    """With other training examples for every seed, the texts that are far with one are near with the other."""
    outcome = make_outcome({"nearest-icl-gold": 90, "nearest-icl-random": 55}, tmp_path)
    rising = np.arange(EXAMPLES) / 100
    for key, cell in outcome.results.cells.items():
        first, second = cell.runs
        runs = replace(first, similarity=rising), replace(second, similarity=rising[::-1])
        outcome.results.cells[key] = replace(cell, runs=runs)
    far, near = outcome.sections[0].thirds("nearest-icl-gold")
    for third in (far, near):
        # The 33 first texts with one seed, of which all are right, and the 33 last with the other: 23 and none.
        values = {name: third.compare({name: 1}).estimate for name in ("nearest-icl-gold", "nearest-icl-random")}
        assert {name: round(value, 1) for name, value in values.items()} == {
            "nearest-icl-gold": 84.8,
            "nearest-icl-random": 50,
        }
    assert far.median_similarity("nearest-icl-gold") == "median similarity 0.16"


GRID = {
    "naive": 50, "nearest-random-words": 55, "nearest-synonyms": 58,
    "diverse-original": 52, "diverse-random-words": 54, "diverse-synonyms": 59,
    "physical-original": 60, "physical-random-words": 62, "z-icl": 63,
}  # fmt: skip


def test_labels(tmp_path):
    assert numbers("labels", GRID, tmp_path) == [[8, 7, 3], [3, 3, 5]]


def with_nearest(outcome, similarity):
    """All methods show the gold label with the nearest sentence, which is as similar as the method's name says."""
    for key, cell in outcome.results.cells.items():
        runs = [replace(one, nearest=one.gold, similarity=similarity(key.method)) for one in cell.runs]
        outcome.results.cells[key] = replace(cell, runs=tuple(runs))
    return outcome


def test_closeness(tmp_path):
    """The first texts are right and far: with the gold label beside the nearest, what is right is what is copied."""
    study, planted = STUDIES.get("closeness"), {"naive-planted": 74, "z-icl-planted": 60}
    more = {"nearest-synonyms-planted": 1, "physical-original-planted": 1}
    outcome = make_outcome({**GRID, **planted, **more}, tmp_path)
    outcome = with_nearest(
        outcome, lambda name: np.arange(EXAMPLES) / 100 if "planted" not in name else 0.95 + np.zeros(EXAMPLES)
    )
    options = study.options(bins=(0.4, 0.95))
    found = study.all_findings(options, outcome)
    assert [[float(number) for number in NUMBER.findall(line)] for line in found] == [
        [10, 5, 8, 3, 13],
        # Of 33 far texts all are right, of 33 near ones (from number 67 on) none.
        [100, 0, 100, 0],
        [24, -3, 24, -3, -27],
    ]
    assert "farthest (median similarity 0.16)" in found[1]
    assert "planted in the corpus (median similarity 0.95)" in found[2]
    figures = {figure.name: figure for figure in study.figures(options, outcome)}
    by_bin = {series.title: series.points for series in figures["accuracy-by-closeness"].panels[0].series}
    shown = [(point.x, round(point.value.estimate)) for point in by_bin["Nearest, original labels"]]
    # The last bin has five texts, too few to say anything.
    assert shown == [("under 0.4 (40)", 100), ("0.4 to 0.95 (55)", 18)]


def test_closeness_without_some_rows(tmp_path):
    """Of a shard there may be rows of one part alone: what is not known is said so."""
    outcome = make_outcome({"z-icl": 60}, tmp_path)
    found = STUDIES.get("closeness").all_findings(STUDIES.get("closeness").options(), outcome)
    assert all("not known yet" in line for line in found)
    assert not any(
        figure.panels for figure in STUDIES.get("closeness").figures(STUDIES.get("closeness").options(), outcome)[:1]
    )


def test_retrieval(tmp_path):
    more = {"no-demos": 40, "domain-random-synonyms": 61, "diverse-synonyms-share": 66}
    assert numbers("retrieval", {**GRID, **more}, tmp_path) == [[5, 1, 4], [2, 7]]


def test_heads(tmp_path):
    gains = {
        "naive": 12, "nearest-synonyms": 4, "diverse-original": 9, "diverse-synonyms": 3, "physical-original": 6,
        "z-icl": -2,
    }  # fmt: skip
    silent = {f"{name}-silent-5": GRID[name] + gain for name, gain in gains.items()}
    random = {f"naive-random-{draw}": 50 + gain for draw, gain in enumerate((0, 3, 6), start=1)}
    result = numbers("heads", {**GRID, **silent, **random}, tmp_path, {"controls": ["naive"]})
    # Nearest (12 and 4) minus physical (6 and -2); original (12, 9, 6) minus synonyms (4, 3, -2); 12 minus 3.
    assert result == [[12, 4, 9, 3, 6, -2], [6, 7.3, 9]]
    # Of some methods, what compares all six is left out.
    some = {"methods": ["naive", "z-icl"], "controls": ["naive"]}
    assert numbers("heads", {**GRID, **silent, **random}, tmp_path, some) == [[12, -2, 9]]


def test_heads_of_some_methods_are_swept_and_compared_with_random_ones_alike():
    options = STUDIES.get("heads").options(methods=["naive", "z-icl"])
    assert options.swept == options.controls == ("naive", "z-icl")
    with pytest.raises(ValidationError, match="diverse-original"):
        STUDIES.get("heads").options(methods=["naive"], swept=["diverse-original"])


def test_coverage(tmp_path):
    assert numbers("coverage", {"no-demos": 50, "z-icl": 64, "z-icl-without": 60}, tmp_path) == [[4], [10, 14]]


def test_corpus_size(tmp_path):
    accuracies = {"no-demos": 50, "z-icl": 64, "z-icl-share-0_1": 99, "z-icl-share-0_01": 57}
    assert numbers("corpus-size", accuracies, tmp_path) == [[7], [14, 7]]


def test_format(tmp_path):
    ours, alone, gold = ({f"{name}-k{k}": value for k, value in values.items()} for name, values in (
        ("z-icl", {1: 50, 4: 70}), ("inputs-only", {1: 44, 4: 48}), ("icl-gold", {1: 64, 4: 66})
    ))  # fmt: skip
    accuracies = {"no-demos": 45, **ours, **alone, **gold}
    result = numbers("format", accuracies, tmp_path, {"k": [1, 4], "inputs_only": [1, 4]})
    assert result == [[14, 1], [20, 15, -5]]


def test_order(tmp_path):
    first, mixed = {"naive": 53, "z-icl": 60}, {"naive": 49, "z-icl": 70}
    accuracies = {"naive": 50, "z-icl": 63}
    accuracies |= {f"{name}-nearest-first": value for name, value in first.items()}
    accuracies |= {f"{name}-shuffled": value for name, value in mixed.items()}
    accuracies |= {f"diverse-synonyms-labels-{draw}": 50 + draw for draw in (1, 2, 3)}
    orders, _ = numbers("order", accuracies, tmp_path)
    assert orders == [3, -1, -3, 7]


def test_comparisons_average_over_the_tasks_that_all_methods_have(tmp_path):
    outcome = make_outcome({"a": 80, "b": 60}, tmp_path, tasks=("CR", "SST2"))
    (section,) = outcome.sections
    assert section.compare({"a": 1}).estimate == pytest.approx(75)
    assert section.compare({"a": 1}, tasks=["SST2"]).estimate == pytest.approx(70)
    assert section.compare({"a": 1, "b": -0.5}).estimate == pytest.approx(75 - 27.5)
    del outcome.results.cells[CellKey("tiny", "task", "channel", "b", "SST2")]
    assert section.compare({"a": 1, "b": -1}).estimate == pytest.approx(20)
    assert section.compare({"a": 1, "c": -1}) is None


def test_a_line_is_over_the_seeds_that_all_its_points_have(tmp_path):
    outcome = make_outcome({"a": 80, "b": 60}, tmp_path)
    key = CellKey("tiny", "task", "channel", "b", "CR")
    outcome.results.cells[key] = ReportCell(key, MethodTraits("b"), ("bad", "good"), (run(13, 60),))
    other = CellKey("tiny", "task", "channel", "a", "CR")
    outcome.results.cells[other] = ReportCell(other, MethodTraits("a"), ("bad", "good"), (run(100, 0), run(13, 80)))
    (section,) = outcome.sections
    points = section.line("x", None, {1.0: "a", 2.0: "b"}).points
    assert [(point.x, point.value.estimate) for point in points] == [(1.0, 80), (2.0, 60)]


def test_another_measure_than_accuracy(tmp_path):
    (section,) = make_outcome({"a": 30}, tmp_path, identical={"a": False}).sections
    assert section.compare({"a": 1}, measure=copy_rate).estimate == pytest.approx(70)
    assert minus({"a": 1.0}, {"a": 0.5, "b": 1.0}) == {"a": 0.5, "b": -1.0}
