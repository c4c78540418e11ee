"""Every study from its experiments to its figures and findings, on a tiny model; reuse of rows; dry runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from zicl.exceptions import UnknownNameError
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.plan import RunShard
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.evaluate.verify import verify
from zicl.lab.report.collect import collect
from zicl.lab.study.base import StudyPart
from zicl.lab.study.outcome import StudyOutcome
from zicl.lab.study.registry import ALL, NAMES, STUDIES, get_studies
from zicl.lab.study.reuse import same_cells
from zicl.lab.study.run import StudyCosts, run_study
from zicl.lab.study.settings import StudySettings
from zicl.score.pipeline import INPUT_ITSELF

INTERVAL = re.compile(r"\[[+-]?\d+\.\d, [+-]?\d+\.\d\]")
PARTS = {
    "copying": {"icl", "identical"},
    "labels": {"words"},
    "closeness": {"words", "planted"},
    "retrieval": {"methods", "sweep"},
    "heads": {"arms", "random", "sweep"},
    "coverage": {"domains"},
    "corpus-size": {"shares"},
    "format": {"k"},
    "order": {"orders", "variance"},
}


@pytest.fixture
def english(monkeypatch):
    """Replace WordNet's words, which tests do not download, by a few."""
    words = ["anchor", "basket", "candle", "dolphin", "engine"]
    monkeypatch.setattr("zicl.score.factory.random_unigrams", lambda **_: words)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Leave figure files empty: writing them is slow, and tested elsewhere."""
    monkeypatch.setattr("zicl.lab.study.figures.save_figure", touch)
    monkeypatch.setattr(
        "zicl.lab.study.heads.draw_head_map", lambda _, path, top: [touch(None, path.with_suffix(".svg"))]
    )


def touch(_, path):
    path.touch()
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_study_from_experiments_to_findings(name, context, english):
    study = STUDIES.get(name)
    ran = run_study(study, context)
    folder = context.folder / name
    assert ran.complete
    assert ran.computed > 0
    assert {path.parent.name for path in folder.glob("*/manifest.json")} == PARTS[name]
    summary = json.loads((folder / "study.json").read_text())
    assert summary["name"] == name
    assert summary["question"].endswith("?")
    # Two for each inference.
    assert len(summary["findings"]) == {"heads": 4, "closeness": 3, "copying": 3}.get(name, 2)
    for line in summary["findings"]:
        assert INTERVAL.search(line), line
        assert "not known" not in line
    assert summary["figures"]
    for figure in summary["figures"]:
        assert (folder / figure["file"]).is_file()
        assert figure["alt"]
    again = run_study(study, context)
    assert (again.computed, again.kept) == (0, ran.computed)
    assert again.summary == ran.summary


def test_an_impossible_part_is_refused_before_another_is_computed(context):
    possible = StudyPart("possible", {"no-demos": EXPERIMENT_METHODS["no-demos"]})
    without = EXPERIMENT_METHODS["naive"].model_copy(update={"without": ("cinema",)})
    study = replace(STUDIES.get("coverage"), parts=lambda *_: [possible, StudyPart("impossible", {"less": without})])
    with pytest.raises(UnknownNameError, match="cinema"):
        run_study(study, context)
    assert not context.folder.exists()


def test_a_method_is_in_one_part_and_its_name_means_one_configuration(context):
    seen = {}
    for study in get_studies(ALL):
        names = [name for part in context.parts(study) for name in part.methods]
        assert len(names) == len(set(names)), study.name
        if study.name == "format":
            continue
        for part in context.parts(study):
            for name, method in part.methods.items():
                assert seen.setdefault(name, method) == method
                assert EXPERIMENT_METHODS.get(name, method) == method


def test_studies_reuse_equal_rows(context, english):
    first = run_study(STUDIES.get("labels"), context)
    second = run_study(STUDIES.get("order"), context)
    assert (first.reused, second.reused) == (0, 2 * 2 * 4)
    rows = ResultsFolder.open(context.folder / "order" / "orders").table().to_pylist()
    assert len(rows) == len({(row["method"], row["seed"], row["example"]) for row in rows}) == 6 * 2 * 4
    origin = ResultsFolder.open(context.folder / "labels" / "words").table().to_pylist()
    assert [row for row in rows if row["method"] == "naive"] == [row for row in origin if row["method"] == "naive"]
    again = run_study(STUDIES.get("order"), context)
    assert (again.computed, again.reused) == (0, 0)


def test_a_shard_reuses_only_its_rows(context, english):
    run_study(STUDIES.get("labels"), context)
    parts = [run_study(STUDIES.get("order"), context, shard=RunShard(number, 2)) for number in (1, 2)]
    assert [part.reused for part in parts] != [2 * 2 * 4, 0]
    assert sum(part.reused for part in parts) == 2 * 2 * 4


def test_rows_of_another_corpus_are_not_reused(context, index, english):
    run_study(STUDIES.get("labels"), context)
    context.index = index
    assert run_study(STUDIES.get("order"), context).reused == 0


def test_all_methods_silence_the_same_heads_and_their_rows_verify(context):
    study = STUDIES.get("heads")
    run_study(study, context)
    parts = {part.name: part for part in context.parts(study)}
    heads = {method.silenced for name, method in parts["arms"].methods.items() if "-silent-" in name}
    assert len(heads) == 1
    assert len(next(iter(heads))) == 2
    rows = ResultsFolder.open(context.folder / "heads" / "arms").table().to_pylist()
    by_name = {(r["method"], r["inference"], r["seed"], r["example"]): r for r in rows}
    differ = 0
    for (method, *rest), row in by_name.items():
        if "-silent-" not in method:
            other = by_name[f"{method}-silent-2", *rest]
            assert row["prompt_hash"] == other["prompt_hash"]
            differ += row["log_likelihoods"] != other["log_likelihoods"]
    assert differ > 0.9 * len(rows) / 2
    for part in parts.values():
        experiment = context.experiment_context(context.experiment(study, part))
        checked = verify(experiment, ResultsFolder.open(context.results_folder(study, part)), sample=8)
        assert all(item.agrees for item in checked)


def test_training_examples_matter_only_to_cells_that_show_them(context):
    study = STUDIES.get("copying")
    plan = manifest(context.experiment_context(context.experiment(study, context.parts(study)[0])))
    cells = plan["cells"]
    plain = {**cells["Days/icl-gold/task/channel/13"]["method"], "labelled": False}
    both = {**cells, "Days/no-demos/task/channel/-": {**cells["Days/icl-gold/task/channel/13"], "method": plain}}
    first = {**plan, "cells": both}
    assert same_cells(first, first) == list(both)
    other_training = {**first, "tasks": {"Days": {**plan["tasks"]["Days"], "train_hash": "another"}}}
    assert same_cells(first, other_training) == ["Days/no-demos/task/channel/-"]
    other_test = {**first, "tasks": {"Days": {**plan["tasks"]["Days"], "hash": "another"}}}
    assert same_cells(first, other_test) == []


def test_inputs_without_labels_have_their_values_of_k(context, settings):
    options = {"format": {"options": {"k": [1], "inputs_only": [1, 2]}}}
    context.settings = StudySettings(settings.table, options)
    study = STUDIES.get("format")
    run_study(study, context)
    (figure,) = study.figures(
        context.settings.options(study), StudyOutcome(collect([context.folder / "format" / "k"]), context.folder)
    )
    places = {series.title: [point.x for point in series.points] for series in figure.panels[0].series}
    assert places == {"Z-ICL": [1], "Inputs only": [1, 2], "ICL-gold": [1], "No-demos": [1, 2]}


def test_the_copy_rate_is_that_of_the_rows(context):
    ran = run_study(STUDIES.get("copying"), context)
    rows = ResultsFolder.open(context.folder / "copying" / "identical").table().to_pylist()
    assert all(INPUT_ITSELF in row["demos"] for row in rows)
    share = 100 * sum(row["predicted"] == row["identical"] for row in rows) / len(rows)
    assert f"is predicted in {share:.1f} %" in ran.summary.findings[1]
    wrong = [row for row in rows if row["method"].endswith("-incorrect")]
    share = 100 * sum(row["predicted"] == row["identical"] for row in wrong) / len(wrong)
    assert f"{share:.1f} % [" in ran.summary.findings[1].partition("is correct, ")[2]


def costs(names, context):
    estimator = StudyCosts(context)
    return [cost for name in names for cost in estimator.estimate(STUDIES.get(name))]


def test_a_dry_run_counts_reused_rows_once_and_writes_nothing(context, english):
    context.dry_run = True
    both = costs(["labels", "order"], context)
    alone = costs(["order"], context)
    assert not context.folder.exists()
    assert [cost.part for cost in both] == ["words", "orders", "variance"]
    assert both[1].examples == alone[0].examples - 2 * 2 * 4
    assert all(cost.tokens > 0 for cost in both)
    assert costs(["heads"], context)


def test_a_dry_run_reuses_no_more_rows_than_the_smaller_experiment_has(context, settings, english):
    context.dry_run = True
    context.settings = StudySettings(settings.table, {**settings.studies, "labels": {"examples": 3}})
    both = costs(["labels", "order"], context)
    alone = costs(["order"], context)
    assert both[1].examples == alone[0].examples - 2 * 2 * 3


def test_studies_by_name():
    assert [study.name for study in get_studies(ALL)] == list(NAMES)
    with pytest.raises(UnknownNameError, match="unknown study 'copy'"):
        get_studies("copy")
