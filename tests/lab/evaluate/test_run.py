"""A whole evaluation of every method on a tiny model: rows, resuming, shards, verification."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
import torch

from tests.conftest import tiny_lm
from tests.lab.evaluate.conftest import make_experiment, write_task
from zicl.exceptions import ConfigError, ZICLError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.plan import RunShard, batches, cells
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.store import KEY, ROWS, SCHEMA, ResultsFolder, cell_key, is_results, merge, write_rows
from zicl.lab.evaluate.verify import verify


def rows_of(folder):
    return ResultsFolder.open(folder).table().to_pylist()


def test_every_method_gives_every_row(context, tmp_path) -> None:
    summary = evaluate(context, tmp_path / "r")
    rows = rows_of(tmp_path / "r")
    assert summary.complete
    assert summary.computed == len(rows) == sum(len(b.examples) for b in batches(context.experiment, context.examples))
    assert {row["method"] for row in rows} == set(EXPERIMENT_METHODS) - {"instruction", "z-icl+"}
    assert ResultsFolder.open(tmp_path / "r").manifest["complete"]
    for row in rows:
        scores, labels = row["log_likelihoods"], context.tasks["Days"].labels.names
        assert len(scores) == 2
        assert row["predicted"] == labels[scores.index(max(scores))]
        method = context.methods[row["method"]]
        shown = 4 if method.kind == "prompt" and method.retrieval.k else 0
        assert len(row["demos"]) == len(row["demo_words"]) == len(row["demo_labels"]) == shown
        assert row["kept"] == shown
        assert (row["seed"] is None) == (not method.seeded)
        assert bool(row["prompt_hash"]) == bool(row["tokens"]) == (method.kind == "prompt")
        assert row["overlap"] >= 1


def test_gold_labels_are_the_training_examples_own(context, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    gold = {example.id: example.label for example in context.training["Days"]}
    chosen = [row for row in rows_of(tmp_path / "r") if row["method"] in ("icl-gold", "nearest-icl-gold")]
    assert chosen
    for row in chosen:
        assert row["demo_labels"] == [gold[name] for name in row["demos"]]
    randoms = [row for row in rows_of(tmp_path / "r") if row["method"] == "icl-random"]
    assert any(row["demo_labels"] != [gold[name] for name in row["demos"]] for row in randoms)


def test_icl_shows_one_set_a_seed_and_random_labels_the_same_inputs(context, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    by_seed = {}
    for row in rows_of(tmp_path / "r"):
        if row["method"] in ("icl-gold", "icl-random"):
            by_seed.setdefault(row["seed"], set()).add(tuple(row["demos"]))
    assert {len(sets) for sets in by_seed.values()} == {1}
    assert by_seed[100] != by_seed[13]


def test_random_labels_are_drawn_for_each_input_unless_they_are_shared(tasks, lm, index, tmp_path) -> None:
    own = EXPERIMENT_METHODS["icl-random"]
    define = {"shared": own.model_copy(update={"labelling": own.labelling.model_copy(update={"shared": True})})}
    experiment = make_experiment(tasks, methods=["icl-random", "shared"], define=define)
    evaluate(ExperimentContext(experiment, lm=lm, index=index), tmp_path / "r")
    labels = {"icl-random": set(), "shared": set()}
    for row in rows_of(tmp_path / "r"):
        if row["seed"] == 100:
            labels[row["method"]].add(tuple(row["demo_labels"]))
    assert len(labels["shared"]) == 1 < len(labels["icl-random"])


def test_a_second_run_computes_nothing(context, tmp_path, monkeypatch) -> None:
    evaluate(context, tmp_path / "r")
    monkeypatch.setattr(Runner, "rows", lambda *_: pytest.fail("computed again"))
    summary = evaluate(context, tmp_path / "r")
    assert summary.computed == 0
    assert summary.kept == len(rows_of(tmp_path / "r"))


def test_more_examples_keep_the_rows_that_are_there(context, lm, index, tmp_path) -> None:
    task_file = context.experiment.task_file
    methods = ["majority", "no-demos", "z-icl", "logistic"]
    few = ExperimentContext(make_experiment(task_file, examples=5, methods=methods), lm=lm, index=index)
    evaluate(few, tmp_path / "r")
    before = {(r["method"], r["inference"], r["seed"], r["example"]): r for r in rows_of(tmp_path / "r")}
    more = ExperimentContext(make_experiment(task_file, examples=10, methods=methods), lm=lm, index=index)
    summary = evaluate(more, tmp_path / "r")
    after = {(r["method"], r["inference"], r["seed"], r["example"]): r for r in rows_of(tmp_path / "r")}
    assert summary.kept == len(before) < len(after)
    assert {key: after[key] for key in before} == before
    evaluate(more, tmp_path / "fresh")
    for extended, fresh in zip(rows_of(tmp_path / "r"), rows_of(tmp_path / "fresh"), strict=True):
        # Other batches, so scores may differ by rounding; nothing else may.
        assert extended.pop("log_likelihoods") == pytest.approx(fresh.pop("log_likelihoods"), abs=1e-4)
        assert extended == fresh


def test_methods_with_other_needs_may_join_later(context, lm, index, tmp_path) -> None:
    """No model, no corpus, no training examples needed at first: that is not another configuration."""
    task_file = context.experiment.task_file
    for methods in (["majority"], ["icl-gold", "majority"], ["z-icl"]):
        evaluate(ExperimentContext(make_experiment(task_file, methods=methods), lm=lm, index=index), tmp_path / "r")
    manifest = ResultsFolder.open(tmp_path / "r").manifest
    assert {row["method"] for row in rows_of(tmp_path / "r")} == {"majority", "icl-gold", "z-icl"}
    assert manifest["fingerprint"]["lm"]["name"] == "tiny-llama"
    assert manifest["tasks"]["Days"]["train_hash"]


def test_shards_make_the_whole(context, tmp_path) -> None:
    evaluate(context, tmp_path / "whole")
    for part in (1, 2, 3):
        evaluate(context, tmp_path / f"part{part}", shard=RunShard(part, 3))
        assert not ResultsFolder.open(tmp_path / f"part{part}").manifest["complete"]
    merged = merge([tmp_path / f"part{part}" for part in (1, 2, 3)], tmp_path / "merged")
    assert merged.manifest["complete"]
    assert rows_of(tmp_path / "merged") == rows_of(tmp_path / "whole")
    assert merged.table().schema.equals(SCHEMA)


def test_rows_that_contradict_each_other_are_not_merged(context, tmp_path) -> None:
    evaluate(context, tmp_path / "a")
    evaluate(context, tmp_path / "b")
    change_rows(tmp_path / "b", lambda row: {"log_likelihoods": [0.0, 1.0]} if row["method"] == "z-icl" else {})
    with pytest.raises(ConfigError, match="two different rows of Days/z-icl"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def change_rows(folder, change):
    rows = [{**row, **change(row)} for row in rows_of(folder)]
    write_rows(folder / ROWS, pa.Table.from_pylist(rows, SCHEMA))


def test_another_fingerprint_is_refused(context, index, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    other = ExperimentContext(context.experiment, lm=tiny_lm("gpt2"), index=index)
    with pytest.raises(ConfigError, match=r"another configuration: lm identity was tiny-llama, is tiny-gpt2"):
        evaluate(other, tmp_path / "r")


def test_another_configuration_of_a_cell_is_refused(context, lm, index, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    other = ExperimentContext(make_experiment(context.experiment.task_file, k=3), lm=lm, index=index)
    with pytest.raises(ConfigError, match="k was 4, is 3"):
        evaluate(other, tmp_path / "r")


def test_another_seed_under_another_configuration_is_refused(context, lm, index, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    other = make_experiment(context.experiment.task_file, k=3, seeds=[7])
    assert not set(other.seeds) & set(context.experiment.seeds)
    with pytest.raises(ConfigError, match="k was 4, is 3"):
        evaluate(ExperimentContext(other, lm=lm, index=index), tmp_path / "r")
    more = make_experiment(context.experiment.task_file, seeds=[7])
    assert evaluate(ExperimentContext(more, lm=lm, index=index), tmp_path / "r").computed


def test_what_a_failed_run_only_planned_binds_nobody(context, lm, index, tmp_path) -> None:
    folder, tasks = tmp_path / "r", context.experiment.task_file
    impossible = make_experiment(tasks, methods=["z-icl"], k=400)
    with pytest.raises(ZICLError, match="of k = 400"):
        evaluate(ExperimentContext(impossible, lm=lm, index=index), folder)
    first = make_experiment(tasks, methods=["no-demos", "naive"], seeds=[13])
    # What was planned is still missing.
    assert not evaluate(ExperimentContext(first, lm=lm, index=index), folder).complete
    with pytest.raises(ZICLError, match="of k = 400"):
        evaluate(ExperimentContext(impossible, lm=lm, index=index), folder)
    possible = make_experiment(tasks, methods=["z-icl"], k=3)
    assert evaluate(ExperimentContext(possible, lm=lm, index=index), folder).complete
    assert {row["method"] for row in rows_of(folder)} == {"no-demos", "naive", "z-icl"}
    other = make_experiment(tasks, methods=["naive"], seeds=[7], k=3)
    with pytest.raises(ConfigError, match="k was 4, is 3"):
        evaluate(ExperimentContext(other, lm=lm, index=index), folder)


def test_other_data_is_refused(context, lm, index, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    (tmp_path / "other").mkdir()
    task_file = write_task(tmp_path / "other", test=12)
    with pytest.raises(ConfigError, match="hash was"):
        evaluate(ExperimentContext(make_experiment(task_file), lm=lm, index=index), tmp_path / "r")


def test_batch_size_and_threads_change_next_to_nothing(context, index, tmp_path) -> None:
    found = {}
    for size, threads in ((1, 1), (8, 1), (8, 2)):
        torch.set_num_threads(threads)
        folder = tmp_path / f"{size}-{threads}"
        evaluate(ExperimentContext(context.experiment, lm=tiny_lm(batch_size=size), index=index), folder)
        found[size, threads] = rows_of(folder)
    first = found.pop((1, 1))
    for rows in found.values():
        for row, other in zip(first, rows, strict=True):
            assert row["prompt_hash"] == other["prompt_hash"]
            for a, b in zip(row["log_likelihoods"], other["log_likelihoods"], strict=True):
                assert a == b or math.isclose(a, b, abs_tol=1e-4, rel_tol=0)
            ordered = sorted(row["log_likelihoods"])
            if ordered[-1] - ordered[-2] > 2e-4:
                assert row["predicted"] == other["predicted"]


def test_verify_finds_what_was_changed(context, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    results = ResultsFolder.open(tmp_path / "r")
    assert all(item.agrees for item in verify(context, results, sample=30))
    chosen, turned = cell_key("Days", "z-icl", "task", "channel", 13), {"terrible": "great", "great": "terrible"}

    def shift(row, by, **changes):
        if cell_key(*(row[name] for name in KEY[:-1])) != chosen:
            return {}
        return {"log_likelihoods": [x + by for x in row["log_likelihoods"]], **changes}

    change_rows(tmp_path / "r", lambda row: shift(row, 1))
    everything = verify(context, results, sample=10_000)
    assert {item.key for item in everything if not item.agrees} == {chosen}
    change_rows(tmp_path / "r", lambda row: shift(row, -1, predicted=turned[row["predicted"]], kept=1))
    wrong = [item for item in verify(context, results, sample=10_000) if not item.agrees]
    assert {item.other for item in wrong} == {("kept", "predicted")}


def test_what_a_manifest_only_tells_may_change(context, lm, index, tmp_path) -> None:
    task_file = context.experiment.task_file
    for covered in (True, False):
        told = {"covered": {"Days": covered}, "notes": {"Days": f"covered: {covered}"}}
        evaluate(
            ExperimentContext(make_experiment(task_file, methods=["no-demos"], **told), lm=lm, index=index),
            tmp_path / "r",
        )
    assert ResultsFolder.open(tmp_path / "r").manifest["tasks"]["Days"]["covered"] is False


def test_what_cannot_be_written_is_found_before_the_first_row(tasks, lm, index, tmp_path) -> None:
    define = {"far": {"demos": "train", "retrieval": {"method": "random", "k": 99}}}
    experiment = make_experiment(tasks, methods=["majority", "no-demos", "far"], define=define)
    with pytest.raises(ZICLError, match="99"):
        evaluate(ExperimentContext(experiment, lm=lm, index=index), tmp_path / "r")
    assert not is_results(tmp_path / "r")


def test_seed_free_cells_come_first_and_run_once(experiment) -> None:
    plan = cells(experiment)
    assert [cell.seed is None for cell in plan] == sorted((cell.seed is None for cell in plan), reverse=True)
    assert sum(cell.method == "no-demos" for cell in plan) == 2
    assert sum(cell.method == "z-icl" for cell in plan) == 4


def test_the_manifest_names_no_path(context, tmp_path) -> None:
    evaluate(context, tmp_path / "r")
    assert str(tmp_path) not in json.dumps(ResultsFolder.open(tmp_path / "r").manifest)
