"""Every study from its experiments to its figures and findings, on a tiny model."""

from __future__ import annotations

import json
import re

import pytest

from tests.lab.study.conftest import make_settings
from zicl.exceptions import ConfigError, UnknownNameError
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.plan import RunShard
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.evaluate.verify import verify
from zicl.lab.report.collect import collect
from zicl.lab.study.context import LoadedSetup, StudyContext
from zicl.lab.study.outcome import StudyOutcome
from zicl.lab.study.reuse import same_cells
from zicl.lab.study.run import StudyCosts, run_study
from zicl.lab.study.settings import ALL, NAMES, STUDIES, StudySettings, get_studies
from zicl.score.pipeline import INPUT_ITSELF

INTERVAL = re.compile(r"\[[+-]?\d+\.\d, [+-]?\d+\.\d\]")
PARTS = {
    "copying": {"icl", "identical"},
    "labels": {"words"},
    "retrieval": {"methods", "sweep"},
    "heads": {"arms", "random", "sweep"},
    "coverage": {"domains"},
    "corpus-size": {"shares"},
    "format": {"k"},
    "order": {"orders", "variance"},
}


@pytest.fixture
def english(monkeypatch):
    """A few words in the place of WordNet's, which tests do not fetch."""
    words = ["anchor", "basket", "candle", "dolphin", "engine"]
    monkeypatch.setattr("zicl.score.factory.random_unigrams", lambda **_: words)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Figures are made, and their files left empty: writing them is slow, and tested elsewhere."""
    monkeypatch.setattr("zicl.lab.study.figures.save_figure", touch)
    monkeypatch.setattr(
        "zicl.lab.study.heads.draw_head_map", lambda _, path, top: [touch(None, path.with_suffix(".svg"))]
    )


def touch(_, path):
    path.touch()
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_study_from_experiments_to_findings(name, bench, english):
    study = STUDIES.get(name)
    ran = run_study(study, bench)
    folder = bench.folder / name
    assert ran.complete
    assert ran.computed > 0
    assert {path.parent.name for path in folder.glob("*/manifest.json")} == PARTS[name]
    told = json.loads((folder / "study.json").read_text())
    assert told["name"] == name
    assert told["question"].endswith("?")
    # Two for each inference.
    assert len(told["findings"]) == (4 if name == "heads" else 2)
    for line in told["findings"]:
        assert INTERVAL.search(line), line
        assert "not known" not in line
    assert told["figures"]
    for figure in told["figures"]:
        assert (folder / figure["file"]).is_file()
        assert figure["alt"]
    again = run_study(study, bench)
    assert (again.computed, again.kept) == (0, ran.computed)
    assert again.told == ran.told


def test_no_method_stands_in_two_parts_and_names_are_of_one_configuration(bench):
    seen = {}
    for study in get_studies(ALL):
        own = [name for part in bench.parts(study) for name in part.arms]
        assert len(own) == len(set(own)), study.name
        if study.name == "format":
            continue
        for part in bench.parts(study):
            for name, method in part.arms.items():
                assert seen.setdefault(name, method) == method
                assert EXPERIMENT_METHODS.get(name, method) == method


def test_studies_share_the_rows_that_are_the_same(bench, english):
    first = run_study(STUDIES.get("labels"), bench)
    second = run_study(STUDIES.get("order"), bench)
    assert (first.borrowed, second.borrowed) == (0, 2 * 2 * 4)
    rows = ResultsFolder.open(bench.folder / "order" / "orders").table().to_pylist()
    assert len(rows) == len({(row["method"], row["seed"], row["example"]) for row in rows}) == 6 * 2 * 4
    origin = ResultsFolder.open(bench.folder / "labels" / "words").table().to_pylist()
    assert [row for row in rows if row["method"] == "naive"] == [row for row in origin if row["method"] == "naive"]
    again = run_study(STUDIES.get("order"), bench)
    assert (again.computed, again.borrowed) == (0, 0)


def test_a_shard_takes_only_its_own_rows_from_other_studies(bench, english):
    run_study(STUDIES.get("labels"), bench)
    parts = [run_study(STUDIES.get("order"), bench, shard=RunShard(number, 2)) for number in (1, 2)]
    assert [part.borrowed for part in parts] != [2 * 2 * 4, 0]
    assert sum(part.borrowed for part in parts) == 2 * 2 * 4


def test_tasks_with_options_of_their_own_are_no_matter_of_studies(bench, tmp_path):
    (tmp_path / "choice.jsonl").write_text('{"id": "1", "text": "a", "label": "1", "choices": ["b", "c"]}\n' * 1)
    (tmp_path / "choice.toml").write_text(
        '[T]\ntest = "choice.jsonl"\nlabels = 2\ntemplate = "choice"\noptions_column = "choices"\n'
    )
    bench.settings = make_settings(tmp_path / "choice.toml")
    with pytest.raises(ConfigError, match="examples of T have options of their own"):
        run_study(STUDIES.get("labels"), bench)


def test_rows_of_another_corpus_are_not_shared(bench, index, english):
    run_study(STUDIES.get("labels"), bench)
    bench.index = index
    assert run_study(STUDIES.get("order"), bench).borrowed == 0


def test_the_same_heads_are_silent_in_every_arm_and_rows_can_be_scored_again(bench):
    study = STUDIES.get("heads")
    run_study(study, bench)
    parts = {part.name: part for part in bench.parts(study)}
    heads = {arm.silenced for name, arm in parts["arms"].arms.items() if "-silent-" in name}
    assert len(heads) == 1
    assert len(next(iter(heads))) == 2
    rows = ResultsFolder.open(bench.folder / "heads" / "arms").table().to_pylist()
    by_name = {(r["method"], r["inference"], r["seed"], r["example"]): r for r in rows}
    differ = 0
    for (method, *rest), row in by_name.items():
        if "-silent-" not in method:
            other = by_name[f"{method}-silent-2", *rest]
            assert row["prompt_hash"] == other["prompt_hash"]
            differ += row["log_likelihoods"] != other["log_likelihoods"]
    assert differ > 0.9 * len(rows) / 2
    for part in parts.values():
        world = bench.world(bench.experiment(study, part))
        checked = verify(world, ResultsFolder.open(bench.results(study, part)), sample=8)
        assert all(item.agrees for item in checked)


def test_heads_that_were_found_are_found_no_more_and_are_those_asked_for(bench):
    setup = LoadedSetup(bench, STUDIES.get("heads"))
    first = setup.heads(None, 3, "training")
    assert (first.task, first.prompts, first.found_on) == ("Days", 3, "training")
    assert setup.heads("Days", 3, "training") == first
    for task, examples, found_on in (("Nights", 3, "training"), (None, 2, "training"), (None, 3, "corpus")):
        asked = rf"not on {examples} of {task or 'Days'} \(found_on: {found_on}\)"
        with pytest.raises(ConfigError, match=rf"found on 3 examples of Days \(found_on: training\), {asked}"):
            setup.heads(task, examples, found_on)
    with pytest.raises(ConfigError, match="not on 99 of Days"):
        setup.heads(None, 99, "training")


def test_heads_can_be_found_on_sentences_of_the_corpus(bench):
    """Other prompts give other scores; the file says which they were."""
    found = {}
    for where in ("training", "corpus"):
        found[where] = LoadedSetup(bench, STUDIES.get("heads")).heads(None, 3, where)
        (bench.folder / "heads" / "heads.json").unlink()
    assert {name: each.found_on for name, each in found.items()} == {"training": "training", "corpus": "corpus"}
    assert (found["training"].values != found["corpus"].values).any()


def test_a_task_with_fewer_examples_than_asked_for_gives_all_it_has(bench):
    setup = LoadedSetup(bench, STUDIES.get("heads"))
    first = setup.heads(None, 999, "training")
    assert first.prompts < 999
    assert setup.heads(None, 999, "training") == first


def test_cells_are_the_same_only_with_the_same_training_examples_if_they_show_any(bench):
    study = STUDIES.get("copying")
    plan = manifest(bench.world(bench.experiment(study, bench.parts(study)[0])))
    cells = plan["cells"]
    plain = {**cells["Days/icl-gold/task/channel/13"]["method"], "labelled": False}
    both = {**cells, "Days/no-demos/task/channel/-": {**cells["Days/icl-gold/task/channel/13"], "method": plain}}
    first = {**plan, "cells": both}
    assert same_cells(first, first) == list(both)
    other = {**first, "tasks": {"Days": {**plan["tasks"]["Days"], "train_hash": "another"}}}
    assert same_cells(first, other) == ["Days/no-demos/task/channel/-"]
    elsewhere = {**first, "tasks": {"Days": {**plan["tasks"]["Days"], "hash": "another"}}}
    assert same_cells(first, elsewhere) == []


def test_inputs_alone_are_drawn_for_numbers_of_their_own(bench, settings):
    options = {"format": {"options": {"k": [1], "inputs_only": [1, 2]}}}
    bench.settings = StudySettings(settings.table, options)
    study = STUDIES.get("format")
    run_study(study, bench)
    (figure,) = study.figures(
        bench.settings.options(study), StudyOutcome(collect([bench.folder / "format" / "k"]), bench.folder)
    )
    places = {series.title: [point.at for point in series.points] for series in figure.panels[0].series}
    assert places == {"Z-ICL": [1], "Inputs only": [1, 2], "ICL-gold": [1], "No-demos": [1, 2]}


def test_the_copied_label_is_counted(bench):
    ran = run_study(STUDIES.get("copying"), bench)
    rows = ResultsFolder.open(bench.folder / "copying" / "identical").table().to_pylist()
    assert all(INPUT_ITSELF in row["demos"] for row in rows)
    share = 100 * sum(row["predicted"] == row["identical"] for row in rows) / len(rows)
    assert f"is predicted in {share:.1f} %" in ran.told.findings[1]
    wrong = [row for row in rows if row["method"].endswith("-incorrect")]
    share = 100 * sum(row["predicted"] == row["identical"] for row in wrong) / len(wrong)
    assert f"{share:.1f} % [" in ran.told.findings[1].partition("is correct, ")[2]


def test_shares_without_enough_neighbours_or_alike_are_left_out(bench, two_domains):
    def shares(*given, k=6):
        table = {**bench.settings.table, "k": k}
        bench.settings = StudySettings(table, {"corpus-size": {"options": {"shares": given}}})
        (part,) = bench.parts(STUDIES.get("corpus-size"))
        return set(part.arms) - {"no-demos"}

    assert shares(1, 0.8, 0.01) == {"z-icl", "z-icl-share-0_8"}
    assert shares(1, 0.8, 0.01, k=1) == {"z-icl", "z-icl-share-0_8", "z-icl-share-0_01"}
    # Each of five paragraphs a domain: 0.8 and 0.79 of them are the same four.
    assert shares(1, 0.79, 0.8) == {"z-icl", "z-icl-share-0_8"}
    everyone = [row for row in range(len(two_domains.corpus)) if two_domains.neighbour(row) is not None]
    assert two_domains.corpus.accompanied == len(everyone) > 0


def test_a_corpus_that_heads_are_found_in_is_missed_before_anything_is_loaded(settings, tmp_path):
    table = {name: value for name, value in settings.table.items() if name != "corpus"}
    study = STUDIES.get("heads")
    StudyContext(StudySettings(table, settings.studies), tmp_path / "studies").check([study], finding=True)
    options = {"heads": {"options": {"found_on": "corpus"}}}
    with pytest.raises(ConfigError, match="corpus"):
        StudyContext(StudySettings(table, options), tmp_path / "studies").check([study], finding=True)


def costs(names, bench):
    counted = StudyCosts(bench)
    return [cost for name in names for cost in counted.of(STUDIES.get(name))]


def test_a_dry_run_counts_shared_rows_once_and_writes_nothing(bench, english):
    bench.dry = True
    both = costs(["labels", "order"], bench)
    alone = costs(["order"], bench)
    assert not bench.folder.exists()
    assert [cost.part for cost in both] == ["words", "orders", "variance"]
    assert both[1].examples == alone[0].examples - 2 * 2 * 4
    assert all(cost.tokens > 0 for cost in both)
    assert costs(["heads"], bench)


def test_a_dry_run_counts_no_more_shared_rows_than_the_smaller_experiment_has(bench, settings, english):
    bench.dry = True
    bench.settings = StudySettings(settings.table, {**settings.studies, "labels": {"examples": 3}})
    both = costs(["labels", "order"], bench)
    alone = costs(["order"], bench)
    assert both[1].examples == alone[0].examples - 2 * 2 * 3


def test_all_studies_by_name():
    assert [study.name for study in get_studies(ALL)] == list(NAMES)
    with pytest.raises(UnknownNameError, match="unknown study 'copy'"):
        get_studies("copy")
