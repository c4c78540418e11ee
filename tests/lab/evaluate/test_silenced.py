"""Methods that differ in silenced heads alone: run one after the other, with the lower layers run once for all."""

from __future__ import annotations

import pytest

from tests.conftest import tiny_lm
from tests.lab.evaluate.conftest import make_experiment
from tests.lab.evaluate.test_run import rows_of
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.plan import RunShard, batches, group_by_prompts
from zicl.lab.evaluate.run import evaluate
from zicl.lm.heads import head_layout

NEAREST = {"retrieval": {"method": "nearest"}}
DEFINED = {
    "far": {"retrieval": {"method": "diverse", "pool": 8}},
    "near": NEAREST,
    "near-silent-1": {**NEAREST, "title": "without one", "silenced": [[2, 1]]},
    "near-silent-2": {**NEAREST, "title": "without two", "silenced": [[1, 0], [2, 3]]},
    "far-silent-1": {"retrieval": {"method": "diverse", "pool": 8}, "silenced": [[2, 1]]},
}


def made(tasks, index, names, **changes):
    define = {name: DEFINED[name] for name in names}
    settings = {"methods": names, "define": define, "inferences": ["channel", "direct"], **changes}
    return ExperimentContext(make_experiment(tasks, **settings), lm=tiny_lm(), index=index)


def test_rows_are_those_of_each_method_run_by_itself(tasks, index, tmp_path):
    evaluate(made(tasks, index, list(DEFINED)), tmp_path / "together")
    together = rows_of(tmp_path / "together")
    for name in DEFINED:
        evaluate(made(tasks, index, [name]), tmp_path / name)
        assert [row for row in together if row["method"] == name] == rows_of(tmp_path / name)
    near = {m: [r["log_likelihoods"] for r in together if r["method"] == m] for m in DEFINED if m.startswith("near")}
    assert near["near"] != near["near-silent-1"] != near["near-silent-2"]


def test_a_shard_at_a_time_gives_the_same_rows(tasks, index, tmp_path):
    context = made(tasks, index, list(DEFINED))
    evaluate(context, tmp_path / "whole")
    evaluate(context, tmp_path / "parts", shard=RunShard(2, 3))
    evaluate(context, tmp_path / "parts")
    assert rows_of(tmp_path / "parts") == rows_of(tmp_path / "whole")


def test_batches_that_differ_in_heads_alone_follow_each_other(tasks, index):
    context = made(tasks, index, list(DEFINED), seeds=[100])
    todo = list(batches(context.experiment, context.examples))
    order = group_by_prompts(todo, context.methods)
    assert sorted(batch.name for batch in order) == sorted(batch.name for batch in todo)
    told = [(batch.number, batch.cell.inference, batch.cell.method) for batch in order]
    assert told[:6] == [
        (0, "channel", "far"), (0, "channel", "far-silent-1"),
        (1, "channel", "far"), (1, "channel", "far-silent-1"),
        (2, "channel", "far"), (2, "channel", "far-silent-1"),
    ]  # fmt: skip
    near = [name for number, inference, name in told if number == 1 and inference == "direct" and "near" in name]
    start = told.index((1, "direct", "near"))
    assert [name for _, _, name in told[start : start + 3]] == near == ["near", "near-silent-1", "near-silent-2"]


def test_without_silenced_heads_the_order_is_the_plans(tasks, index):
    context = made(tasks, index, ["near", "far"])
    todo = list(batches(context.experiment, context.examples))
    assert group_by_prompts(todo, context.methods) == todo


@pytest.mark.parametrize(("names", "lowest"), [(["near", "near-silent-1"], 2), (list(DEFINED), 1)])
def test_layers_below_all_silenced_heads_run_once(tasks, index, tmp_path, names, lowest):
    context = made(tasks, index, names, seeds=[100])
    runs = [0] * head_layout(context.lm).layers
    for number, projection in enumerate(head_layout(context.lm).projections):
        projection.register_forward_hook(lambda *_, own=number: runs.__setitem__(own, runs[own] + 1))
    evaluate(context, tmp_path / "r")
    groups = len({name.partition("-")[0] for name in names})
    assert runs[0] > 0
    assert [run * len(names) for run in runs[:lowest]] == [run * groups for run in runs[lowest:][:1]] * lowest
    assert len(set(runs[lowest:])) == 1


def test_a_head_in_the_lowest_layer_leaves_nothing_to_share(tasks, index, tmp_path):
    define = {"near": NEAREST, "low": {**NEAREST, "silenced": [[0, 0]]}}
    experiment = make_experiment(tasks, methods=list(define), define=define, inferences=["channel"])
    assert evaluate(ExperimentContext(experiment, lm=tiny_lm(), index=index), tmp_path / "r").complete


def test_synonyms_are_found_once_a_task_and_by_the_whole_model(tasks, index, tmp_path, monkeypatch):
    tasks.write_text(tasks.read_text().replace('synonyms = ["bad"], ', "").replace('synonyms = ["good"], ', ""))
    words = {**NEAREST, "labelling": {"words": "synonyms"}}
    define = {"near": words, "near-silent": {**words, "silenced": [[0, 0], [1, 1]]}}
    experiment = make_experiment(tasks, methods=list(define), define=define, inferences=["channel"])
    context, asked = ExperimentContext(experiment, lm=tiny_lm(), index=index), []

    def found(labels, **_):
        if not all(label.synonyms for label in labels):
            asked.append(any(projection._forward_pre_hooks for projection in head_layout(context.lm).projections))
        return labels.with_synonyms({"terrible": ["bad"], "great": ["good"]})

    monkeypatch.setattr("zicl.score.factory.complete_synonyms", found)
    evaluate(context, tmp_path / "r")
    assert asked == [False]
    hashes = {name: [r["prompt_hash"] for r in rows_of(tmp_path / "r") if r["method"] == name] for name in define}
    assert hashes["near"] == hashes["near-silent"]
