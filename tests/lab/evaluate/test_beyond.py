"""Evaluations of what goes beyond the paper: calibrated, shared and joined methods, pairs and options."""

import json

import pytest

from tests.lab.evaluate.conftest import examples, make_experiment
from zicl.exceptions import ConfigError, PileWarning, TextError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.estimate import TokenCounter
from zicl.lab.evaluate.experiment import Experiment
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS, ExperimentMethod
from zicl.lab.evaluate.plan import PlanCell
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.evaluate.verify import verify
from zicl.lab.report.batch_calibration import calibrate_results
from zicl.lab.report.collect import collect
from zicl.lab.report.label_shares import resample_results

_PHYSICAL = {"method": "physical", "k": 4}
_SYNONYMS = {"words": "synonyms"}
BEYOND = {
    "balanced": {"retrieval": _PHYSICAL, "labelling": {**_SYNONYMS, "balanced": True}},
    "draws": {"retrieval": _PHYSICAL, "labelling": {**_SYNONYMS, "assignments": 3}},
    "own": {"retrieval": _PHYSICAL, "labelling": {**_SYNONYMS, "source": "self"}},
    "shared": {"retrieval": {**_PHYSICAL, "share": 4}, "labelling": _SYNONYMS},
    "contextual": {"retrieval": _PHYSICAL, "labelling": _SYNONYMS, "calibration": {"method": "contextual"}},
    "batch": {"retrieval": _PHYSICAL, "labelling": _SYNONYMS, "calibration": {"method": "batch"}},
    "opinion": {"retrieval": _PHYSICAL, "labelling": _SYNONYMS, "experts": ["prompt", "cosine"]},
    "direct": {"retrieval": _PHYSICAL, "inferences": ["direct"]},
}


@pytest.fixture
def beyond(tasks, lm, index):
    changes = {"methods": ["z-icl", *BEYOND], "define": BEYOND, "inferences": ["channel", "both"], "seeds": [100]}
    return ExperimentContext(make_experiment(tasks, **changes), lm=lm, index=index)


def test_every_raw_score_is_stored(beyond, tmp_path):
    evaluate(beyond, tmp_path / "r")
    rows = ResultsFolder.open(tmp_path / "r").table().to_pylist()
    assert len(rows) == (2 * 8 + 1) * 10
    assert {row["inference"] for row in rows if row["method"] == "direct"} == {"direct"}
    for row in rows:
        ways = (2 if row["inference"] == "both" else 1) * (3 if row["method"] == "draws" else 1)
        probes = 3 if row["method"] == "contextual" else 0
        joined = ways > 1 or probes or row["method"] == "opinion"
        assert (row["raw"] is None) == (not joined)
        if not joined:
            continue
        assert len(row["raw"]) == ways * (1 + probes)
        assert row["raw"][0] == row["log_likelihoods"]
        names = ("terrible", "great")
        assert row["predicted"] == names[row["values"].index(max(row["values"]))]
        terms = (2 if row["inference"] == "both" else 1) + (row["method"] == "opinion")
        assert (row["terms"] is None) == (probes > 0 and ways == 1)
        assert row["terms"] is None or len(row["terms"]) == terms
    assert all(check.agrees for check in verify(beyond, ResultsFolder.open(tmp_path / "r"), sample=30))


def test_z_icl_with_the_cosine_as_one_more_term(tasks, lm, index, tmp_path):
    changes = {"methods": ["z-icl", "z-icl+cosine"], "seeds": [100], "inferences": ["channel"]}
    evaluate(ExperimentContext(make_experiment(tasks, **changes), lm=lm, index=index), tmp_path / "r")
    rows = ResultsFolder.open(tmp_path / "r").table().to_pylist()
    plain = {row["example"]: row for row in rows if row["method"] == "z-icl"}
    plus = [row for row in rows if row["method"] == "z-icl+cosine"]
    assert len(plain) == len(plus) > 0
    for row in plus:
        own = plain[row["example"]]
        assert row["log_likelihoods"] == pytest.approx(own["log_likelihoods"], abs=1e-4)
        assert (row["demos"], row["prompt_hash"]) == (own["demos"], own["prompt_hash"])
        assert len(row["terms"]) == 2


def test_methods_without_a_language_model_load_none(tasks, index, tmp_path, monkeypatch):
    monkeypatch.setattr("zicl.lm.load.load_lm", lambda *_, **__: pytest.fail("a model was loaded"))
    context = ExperimentContext(make_experiment(tasks, methods=["encoder", "z-icl+"]), index=index)
    with pytest.warns(PileWarning, match="too few to learn from"):
        evaluate(context, tmp_path / "r")
    rows = ResultsFolder.open(tmp_path / "r").table().to_pylist()
    alone = {row["example"]: row for row in rows if row["method"] == "encoder"}
    assert len(rows) == 2 * len(alone) > 0
    for row in rows:
        # A pile that is too small leaves the encoder's answer.
        assert row["values"] == pytest.approx(alone[row["example"]]["values"])
        assert len(row["terms"]) == 1


def test_a_second_run_computes_nothing_and_other_examples_make_other_clusters(beyond, tasks, lm, index, tmp_path):
    evaluate(beyond, tmp_path / "r")
    assert evaluate(beyond, tmp_path / "r").computed == 0
    fewer = make_experiment(tasks, methods=["shared"], define=BEYOND, seeds=[100], examples=6)
    with pytest.raises(ConfigError, match="clustered"):
        evaluate(ExperimentContext(fewer, lm=lm, index=index), tmp_path / "r")


def test_tokens_are_counted_without_running_a_model(beyond, lm, monkeypatch):
    texts = [example.text for example in beyond.examples["Days"]]
    counter = TokenCounter(lm)
    counted = {}
    for name in ("z-icl", "shared", "draws", "own"):
        beyond.lm = counter
        counter.tokens = 0
        Runner(beyond).ensemble(PlanCell("Days", name, "task", "channel", 100)).run(texts)
        counted[name] = counter.tokens
    fed = []
    original = lm.forward.body.forward
    monkeypatch.setattr(
        lm.forward.body, "forward", lambda *a, **k: fed.append(k["input_ids"].shape[1]) or original(*a, **k)
    )
    lm.batch_size, before = 1, lm.batch_size
    beyond.lm = lm
    Runner(beyond).ensemble(PlanCell("Days", "z-icl", "task", "channel", 100)).run(texts)
    lm.batch_size = before
    assert sum(fed) == counted["z-icl"]
    assert counted["shared"] < counted["z-icl"] < counted["own"]
    assert counted["z-icl"] < counted["draws"] <= 3 * counted["z-icl"]


def test_tokens_are_counted_for_every_way_to_ask(beyond):
    runner = Runner(beyond)
    asked = runner.prompts(PlanCell("Days", "draws", "task", "both", 100), beyond.examples["Days"][:2])
    assert [len(prompts) for prompts in asked] == [2] * 6


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"demos": "train", "retrieval": {"method": "random", "share": 4}}, "are for raw text"),
        ({"calibration": {"method": "batch", "priors": {"a": 0.5}}}, "fits its priors"),
    ],
)
def test_impossible_methods_are_refused(method, message):
    with pytest.raises(ValueError, match=message):
        ExperimentMethod(**method)


def _context(tmp_path, lm, index, task, rows, **define):
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "tasks.toml").write_text(task)
    experiment = Experiment(
        tasks=["T"], methods=["no-demos", *define], define=define, seeds=[1], corpus="given",
        task_file=str(tmp_path / "tasks.toml"),
    )  # fmt: skip
    return ExperimentContext(experiment, lm=lm, index=index)


def test_pairs(tmp_path, lm, index):
    rows = [{**row, "other": "It rained.", "label": ("yes", "no")[n % 2]} for n, row in enumerate(examples(6))]
    lines = '["Premise: {first} Then: {second}", "Follows: {label}"]'
    task = f'[T]\ntest = "test.jsonl"\nlabels = ["yes", "no"]\ntemplate = {lines}\npair_column = "other"\n'
    context = _context(tmp_path, lm, index, task, rows, paired={"retrieval": _PHYSICAL})
    evaluate(context, tmp_path / "r")
    assert evaluate(context, tmp_path / "r").computed == 0
    found = ResultsFolder.open(tmp_path / "r").table().to_pylist()
    assert len(found) == 2 * 2 * 6
    assert all(row["predicted"] in ("yes", "no") for row in found)


@pytest.mark.parametrize("labelling", [{"labelling": {"words": "neighbours"}}, {}])
def test_options(tmp_path, lm, index, labelling):
    rows = [
        {**row, "choices": [f"It was day {n}.", "Nobody came.", "A pear fell."], "label": str(n % 3 + 1)}
        for n, row in enumerate(examples(6))
    ]
    task = '[T]\ntest = "test.jsonl"\nlabels = 3\ntemplate = "choice"\noptions_column = "choices"\n'
    context = _context(tmp_path, lm, index, task, rows, chosen={"retrieval": _PHYSICAL, **labelling})
    evaluate(context, tmp_path / "r")
    found = ResultsFolder.open(tmp_path / "r").table().to_pylist()
    assert {row["predicted"] for row in found} <= {"1", "2", "3"}
    words = [word for row in found for word in row["demo_words"] + row["demo_labels"]]
    assert words
    assert all(word.startswith("sentence ") for word in words), "rows hold no text"
    # The first option is another sentence for every text: what it gets on average says nothing.
    results = collect([tmp_path / "r"])
    assert results.tasks["T"].counted
    assert not any(cell.kind.batch for cell in calibrate_results(results, every=True).cells.values())
    assert resample_results(results) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"label": "3", "choices": ["a", "b"]}, "row 1: 2 options, of which the label is number 3"),
        ({"label": "1", "choices": ["a", "a"]}, "row 1: 2 options"),
        ({"label": "1", "choices": ["a", "b", "c", "d"]}, "row 1: 4 options"),
    ],
)
def test_wrong_options_of_an_example_name_its_row(tmp_path, lm, index, row, message):
    task = '[T]\ntest = "test.jsonl"\nlabels = 3\ntemplate = "choice"\noptions_column = "choices"\n'
    with pytest.raises(TextError, match=message):
        _context(tmp_path, lm, index, task, [{"id": "a", "text": "x", **row}])


def test_labels_of_options_may_be_named_otherwise(tmp_path, lm, index):
    task = '[T]\ntest = "test.jsonl"\nlabels = 3\ntemplate = "choice"\noptions_column = "choices"\n'
    task += 'values = { A = "1", B = "2", C = "3" }\n'
    rows = [{"id": "a", "text": "x", "label": "B", "choices": ["a", "b"]}]
    assert _context(tmp_path, lm, index, task, rows).examples["T"][0].label == "2"
    with pytest.raises(TextError, match="2 options, of which the label is number 3"):
        _context(tmp_path, lm, index, task, [{**rows[0], "label": "C"}])


def test_most_controls_cannot_compare_options_of_each_examples_own(tmp_path, lm, index):
    task = '[T]\ntest = "test.jsonl"\nlabels = 3\ntemplate = "choice"\noptions_column = "choices"\n'
    context = _context(tmp_path, lm, index, task, [{"id": "a", "text": "x", "label": "1", "choices": ["a", "b"]}])
    context.methods["logistic"] = EXPERIMENT_METHODS["logistic"]
    with pytest.raises(ConfigError, match="each example of T has its options, which logistic cannot compare"):
        context.check()


def test_the_cosine_to_options_is_that_to_each_examples_own(tmp_path, lm, index):
    task = '[T]\ntest = "test.jsonl"\nlabels = 3\ntemplate = "choice"\noptions_column = "choices"\n'
    rows = [
        {"id": "a", "text": "The soup was cold.", "label": "2", "choices": ["A pear fell.", "The soup was cold."]},
        {"id": "b", "text": "A pear fell.", "label": "1", "choices": ["A pear fell.", "The soup was cold.", "Snow."]},
    ]
    context = _context(tmp_path, lm, index, task, rows)
    context.methods["cosine-words"] = EXPERIMENT_METHODS["cosine-words"]
    found = Runner(context).rows(PlanCell("T", "cosine-words", "task", "none", None), context.examples["T"])
    by_id = {row["example"]: row for row in found}
    assert [by_id["a"]["predicted"], by_id["b"]["predicted"]] == ["2", "1"]
    assert [len(by_id[name]["log_likelihoods"]) for name in "ab"] == [2, 3]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ('labels = ["a", "b"]\ntemplate = "pair"', "pair_column goes with a template of two fields"),
        ('labels = ["a", "b"]\npair_column = "x"', "pair_column goes with a template of two fields"),
        ('labels = ["a", "b"]\noptions_column = "x"', "options_column goes with a number of labels"),
    ],
)
def test_wrong_pairs_and_options_are_named(tmp_path, lm, index, task, message):
    with pytest.raises(ValueError, match=message):
        _context(tmp_path, lm, index, f'[T]\ntest = "test.jsonl"\n{task}\n', examples(2))


def test_a_missing_column_is_named(tmp_path, lm, index):
    task = '[T]\ntest = "test.jsonl"\nlabels = ["terrible", "great"]\ntemplate = "pair"\npair_column = "other"\n'
    with pytest.raises(TextError, match="there is no column 'other'"):
        _context(tmp_path, lm, index, task, examples(2))
