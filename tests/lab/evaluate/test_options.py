"""The options of the studies: what each changes, what nonsense is refused, and that by default nothing changes."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from tests.lab.evaluate.conftest import make_experiment, write_task
from tests.lab.evaluate.test_run import rows_of
from zicl.config import Labelling, Retrieval
from zicl.exceptions import ConfigError, PromptError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.estimate import estimate, forward_tokens
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS, ExperimentMethod
from zicl.lab.evaluate.plan import PlanCell
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.store import ResultsFolder, check_same
from zicl.lab.evaluate.verify import verify
from zicl.lab.study.reuse import same_cells
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.diverse import Diverse
from zicl.score.pipeline import INPUT_ITSELF

ICL = {"demos": "train", "labels": "gold", "retrieval": {"method": "random"}}
NEAREST = {"retrieval": {"method": "nearest"}}


def rows(tasks, lm, index, folder, define, **changes):
    """All rows of methods defined here, by method."""
    settings = {"methods": list(define), "define": define, "inferences": ["channel"], **changes}
    context = ExperimentContext(make_experiment(tasks, **settings), lm=lm, index=index)
    evaluate(context, folder)
    found = {name: [] for name in define}
    for row in rows_of(folder):
        found[row["method"]].append(row)
    return context, found


def test_a_manifest_has_every_setting_of_a_method(context):
    stored = json.loads(json.dumps(manifest(context)))["cells"]["Days/z-icl/task/channel/13"]["method"]
    assert set(stored) == {*ExperimentMethod.model_fields, "labelled", "control"}
    assert stored["corpus_share"] == 1
    assert stored["retrieval"]["order"] == "nearest-last"


def test_what_is_set_is_written_down_and_read_again():
    method = ExperimentMethod(retrieval=Retrieval(order="shuffled"), labelling=Labelling(seed=3), without=("imdb",))
    written = json.loads(method.model_dump_json())
    assert written["retrieval"]["order"] == "shuffled"
    assert ExperimentMethod(**written) == method


@pytest.mark.parametrize("before", [{}, {"order": "nearest-first"}])
def test_another_option_of_a_cell_is_refused(tasks, lm, index, before):
    def made(options):
        define = {"far": {"retrieval": {"method": "nearest", **options}}}
        return manifest(ExperimentContext(make_experiment(tasks, methods=["far"], define=define), lm=lm, index=index))

    check_same(made(before), made(before), "r")
    with pytest.raises(ConfigError, match="order was "):
        check_same(made(before), made({"order": "shuffled"}), "r")


def test_another_title_of_a_method_changes_no_row(tasks, lm, index):
    def made(title):
        define = {"far": {"title": title, **NEAREST}}
        return manifest(ExperimentContext(make_experiment(tasks, methods=["far"], define=define), lm=lm, index=index))

    check_same(made("Far away"), made("Far"), "r")


@pytest.mark.parametrize("inference", ["channel", "direct"])
def test_the_same_demonstrations_in_three_orders(tasks, lm, index, tmp_path, inference):
    define = {
        order: {"retrieval": {"method": "nearest", "order": order}}
        for order in ("nearest-last", "nearest-first", "shuffled")
    }
    _, found = rows(tasks, lm, index, tmp_path / "r", define, inferences=[inference])
    moved = 0
    for last, first, mixed in zip(*found.values(), strict=True):
        parts = ("demos", "demo_labels", "similarities")
        shown = [list(zip(*(row[part] for part in parts), strict=True)) for row in (last, first, mixed)]
        assert shown[1] == shown[0][::-1]
        assert sorted(shown[2]) == sorted(shown[0])
        assert last["similarities"] == sorted(last["similarities"])
        assert last["prompt_hash"] != first["prompt_hash"]
        moved += shown[2] not in shown[:2]
    assert moved


def test_the_farthest_are_dropped_in_every_order(tasks, lm, index, tmp_path):
    define = {
        order: {"retrieval": {"method": "nearest", "order": order}}
        for order in ("nearest-last", "nearest-first", "shuffled")
    }
    limits = {"tokens_all_demos": 60}
    _, found = rows(tasks, lm, index, tmp_path / "r", define, prompt=limits)
    for trio in zip(*found.values(), strict=True):
        kept = [sorted(row["similarities"][len(row["demos"]) - row["kept"] :]) for row in trio]
        assert 0 < len(kept[0]) < 4
        for similarities, row in zip(kept, trio, strict=True):
            # The separator of the first one may make room for one more.
            assert similarities == sorted(row["similarities"])[-len(similarities) :]


@pytest.mark.parametrize("correct", [True, False])
def test_the_input_stands_among_its_own_demonstrations(tasks, lm, index, tmp_path, correct):
    define = {"plain": ICL, "same": {**ICL, "identical": "correct" if correct else "incorrect"}}
    context, found = rows(tasks, lm, index, tmp_path / "r", define)
    places = set()
    for plain, row in zip(found["plain"], found["same"], strict=True):
        assert plain["identical"] is None
        place = row["demos"].index(INPUT_ITSELF)
        places.add(place)
        assert row["demo_labels"][place] == row["identical"]
        assert (row["identical"] == row["gold"]) == correct
        others = [[name for n, name in enumerate(each["demos"]) if n != place] for each in (plain, row)]
        assert others[0] == others[1]
    assert len(places) > 1
    assert all(item.agrees for item in verify(context, ResultsFolder.open(tmp_path / "r"), sample=20))


def test_the_prompt_shows_the_input_twice_and_its_label(tasks, lm, index):
    define = {"same": {**ICL, "identical": "incorrect"}}
    context = ExperimentContext(make_experiment(tasks, methods=["same"], define=define), lm=lm, index=index)
    examples = context.examples["Days"]
    (prompts,) = Runner(context).prompts(PlanCell("Days", "same", "task", "channel", 100), examples)
    for example, prompt in zip(examples, prompts, strict=True):
        other = "great" if example.label == "terrible" else "terrible"
        assert prompt.text(0).count(example.text) == 2
        assert f"Sentiment: {other}\nReview: {example.text}" in prompt.prefix.text


def test_the_input_stays_where_the_prompt_is_cut(tasks, lm, index, tmp_path):
    define = {"same": {**ICL, "identical": "correct"}}
    _, found = rows(tasks, lm, index, tmp_path / "r", define, prompt={"tokens_all_demos": 70})
    for row in found["same"]:
        assert 0 < row["kept"] < 4
        assert INPUT_ITSELF in row["demos"][-row["kept"] :]


def test_a_prompt_without_room_for_the_input_is_an_error(tasks, lm, index):
    define = {"same": {**ICL, "identical": "correct"}}
    experiment = make_experiment(tasks, methods=["same"], define=define, prompt={"tokens_all_demos": 5})
    with pytest.raises(PromptError, match="no room"):
        Runner(ExperimentContext(experiment, lm=lm, index=index)).prompts(
            PlanCell("Days", "same", "task", "channel", 100),
            ExperimentContext(experiment, lm=lm, index=index).examples["Days"][:1],
        )


def test_inputs_alone_have_no_labels_and_need_no_seed(tasks, lm, index, tmp_path):
    define = {"inputs": {"retrieval": {"method": "physical"}, "labelling": {"words": "none"}}}
    context, found = rows(tasks, lm, index, tmp_path / "r", define)
    assert len(found["inputs"]) == 10
    for row in found["inputs"]:
        assert row["seed"] is None
        assert row["demo_words"] == row["demo_labels"] == [""] * 4
    cell = PlanCell("Days", "inputs", "task", "channel", None)
    (prompts,) = Runner(context).prompts(cell, context.examples["Days"][:1])
    assert prompts[0].kept == 4
    assert prompts[0].prefix.text.count("Review: ") == 4
    assert "Sentiment" not in prompts[0].prefix.text
    assert estimate(Runner(context), set()).examples == {"Days/inputs/task/channel/-": 10}


def test_labels_have_a_seed_of_their_own(tasks, lm, index, tmp_path):
    define = {
        f"draw-{n}": {"retrieval": {"method": "diverse", "pool": 12}, "labelling": {"words": "synonyms", "seed": n}}
        for n in (1, 2)
    }
    _, found = rows(tasks, lm, index, tmp_path / "r", define)
    one, two = found.values()
    assert [row["demos"] for row in one] == [row["demos"] for row in two]
    assert [row["demo_labels"] for row in one] != [row["demo_labels"] for row in two]
    by_seed = [{row["example"]: row for row in one if row["seed"] == seed} for seed in (100, 13)]
    assert any(by_seed[0][name]["demos"] != by_seed[1][name]["demos"] for name in by_seed[0])
    assert all(by_seed[0][name]["demo_labels"] == by_seed[1][name]["demo_labels"] for name in by_seed[0])


def test_a_pool_may_be_a_share_of_the_corpus(index):
    count = len(index.indexed())
    query = Query("The soup was cold.", seed=3)
    assert Diverse(pool=0.5).retrieve(index, query, 4) == Diverse(pool=round(count / 2)).retrieve(index, query, 4)
    assert Diverse(pool=1e-6).retrieve(index, query, 4) == Diverse(pool=8).retrieve(index, query, 4)


@pytest.mark.parametrize("pool", [0, -3, 1.0, 2.5, 0.0, "many"])
def test_impossible_pools(pool):
    with pytest.raises(ValidationError):
        Retrieval(pool=pool)


def test_a_pool_keeps_its_kind():
    assert isinstance(Retrieval(pool=512).pool, int)
    assert isinstance(Retrieval(pool="512").pool, int)
    assert Retrieval(pool=0.1).pool == 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"identical": "correct"}, "identical is for"),
        ({**ICL, "labels": "random", "identical": "correct"}, "identical is for"),
        ({**ICL, "retrieval": {"k": 0, "method": "random"}, "identical": "correct"}, "identical is for"),
        ({**ICL, "corpus_share": 0.5}, "raw corpus"),
        ({**ICL, "without": ["imdb"]}, "raw corpus"),
        ({"kind": "majority", "corpus_share": 0.5}, "raw corpus"),
        ({"corpus_share": 0.0}, "greater than 0"),
        ({"retrieval": {"method": "random", "order": "shuffled"}}, "by nearness"),
        ({"retrieval": {"k": 0, "order": "nearest-first"}}, "by nearness"),
        ({"labelling": {"words": "none", "balanced": True}}, "shows no labels"),
        ({"labelling": {"words": "none", "seed": 1}}, "shows no labels"),
        ({"labelling": {"source": "self", "seed": 1}}, "draws no labels"),
        ({**ICL, "labelling": {"words": "none"}}, "neither drawn nor shown"),
        ({"kind": "instruction", "silenced": [[0, 1]]}, "prompt's scoring"),
        ({"silenced": [[0, 1], [0, 1]]}, "each once"),
        ({"silenced": [[0, -1]]}, "counted from 0"),
    ],
)
def test_nonsense_is_refused_before_anything_is_loaded(settings, message):
    with pytest.raises(ValidationError, match=message):
        ExperimentMethod(**settings)


def test_which_methods_draw_anything():
    fixed = {"labelling": {"words": "none"}}
    assert not ExperimentMethod(**NEAREST, **fixed).seeded
    assert not ExperimentMethod(**NEAREST, labelling={"seed": 4}).seeded
    assert ExperimentMethod(retrieval={"method": "nearest", "order": "shuffled"}, **fixed).seeded
    assert ExperimentMethod(**NEAREST, **fixed, corpus_share=0.5).seeded
    assert ExperimentMethod(retrieval={"method": "diverse"}, **fixed).seeded
    assert [name for name, method in EXPERIMENT_METHODS.items() if method.seeded] == [
        "random-inputs", "naive", "z-icl", "z-icl+cosine", "icl-gold", "icl-random", "nearest-icl-random", "logistic",
    ]  # fmt: skip


@pytest.mark.parametrize("method", ["icl-random", "nearest-icl-gold", "logistic"])
def test_fewer_training_examples_than_k_are_found_before_a_model_is_loaded(tmp_path, index, monkeypatch, method):
    monkeypatch.setattr("zicl.lm.load.load_lm", lambda *_, **__: pytest.fail("a model was loaded"))
    tasks = write_task(tmp_path, train=6)
    with pytest.raises(ConfigError, match="the task Days has 6 training examples, and k = 7") as raised:
        ExperimentContext(make_experiment(tasks, methods=["z-icl", method], k=7), index=index)
    assert "--train Days=FILE" in raised.value.hint
    assert "--k" in raised.value.hint
    ExperimentContext(make_experiment(tasks, methods=["z-icl", method], k=6), index=index)
    ExperimentContext(make_experiment(tasks, methods=["z-icl"], k=7), index=index)


def test_training_examples_with_the_same_text_count_once(tmp_path, index):
    tasks = write_task(tmp_path, train=4)
    rows = (tmp_path / "train.jsonl").read_text().splitlines()
    again = [json.dumps({**json.loads(row), "id": f"again {number}"}) for number, row in enumerate(rows)]
    (tmp_path / "train.jsonl").write_text("\n".join([*rows, *again]))
    with pytest.raises(ConfigError, match="8 training examples, 4 of them with different texts, and k = 5"):
        ExperimentContext(make_experiment(tasks, methods=["icl-gold"], k=5), index=index)


def test_a_dry_run_of_controls_loads_no_model(tasks, index, monkeypatch):
    monkeypatch.setattr("zicl.lm.load.load_lm", lambda *_, **__: pytest.fail("a model was loaded"))
    context = ExperimentContext(make_experiment(tasks, methods=["majority", "cosine-words"]), index=index)
    assert estimate(Runner(context), set()).seconds == 0


def test_a_model_that_reads_no_trees_is_fed_every_label_whole(context, monkeypatch):
    cell = PlanCell("Days", "icl-gold", "task", "channel", 100)
    (prompts,) = Runner(context).prompts(cell, context.examples["Days"])
    each = sum(len(prompt.tokens(branch)) for prompt in prompts for branch in range(2)) / len(prompts)
    assert forward_tokens(prompts, 50, trees=False) == pytest.approx(50 * each, abs=1)
    assert forward_tokens(prompts, 50) < forward_tokens(prompts, 50, trees=False) / 4


def test_devices_of_one_kind_are_alike(context):
    def made(device):
        found = manifest(context)
        return {**found, "fingerprint": {**found["fingerprint"], "device": device}}

    check_same(made("cuda:0"), made("cuda:1"), "r")
    assert same_cells(made("cuda:0"), made("cuda"))
    with pytest.raises(ConfigError, match="device was cuda, is cpu"):
        check_same(made("cuda:0"), made("cpu"), "r")
