"""What the authors published, in files of the same form written for this test: prompts show what the files list."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.lab.evaluate.test_run import rows_of
from zicl.cli.report import report
from zicl.exceptions import ConfigError, TextError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.experiment import Experiment, read_experiment
from zicl.lab.evaluate.plan import cells
from zicl.lab.evaluate.released import ReleasedData, downsize
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.tasks import get_task
from zicl.lab.report.build import make_report

TEXTS = [f"The {thing} of the {number}th day." for number, thing in enumerate(["soup", "train", "lamp", "film"] * 3)]
WORDS = ("terrible", "great")
K, SEEDS = 4, (100, 13)
METHODS = ["random-inputs", "naive", "z-icl", "icl-gold", "icl-random"]


def lines(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def sentences(way, seed, line):
    """Sentences that say where they stand, farthest first."""
    return [f"Sentence {place} of {line} by {way}, {seed}." for place in range(K)]


@pytest.fixture
def released(tmp_path):
    """MR as a .csv of Channel LM Prompting, SST2 as its .tsv; sentences for both."""
    folder = tmp_path / "published"
    for name, kind in (("mr", "csv"), ("SST-2", "tsv")):
        for seed in SEEDS:
            place = folder / "data" / "k-shot" / name / f"{K}-{seed}"
            place.mkdir(parents=True)
            for split, texts in (("test", TEXTS), ("train", [f"Taught, {text} {seed}" for text in TEXTS[:K]])):
                rows = [(text, number % 2) for number, text in enumerate(texts)]
                csv = "".join(f'{label},"{text}"\n' for text, label in rows)
                tsv = "sentence\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
                (place / f"{split}.{kind}").write_text(csv if kind == "csv" else tsv)
            for way in ("pn", "nearest", "ri", "dn"):
                found = [sentences(way, seed, 0 if way == "ri" else line) for line in range(len(TEXTS))]
                lines(folder / "retrieved" / f"{name}_{way}" / f"{name}_{way}_{K}_{seed}.jsonl", found)
    return folder


def context_of(released, lm, **changes):
    settings = {
        "tasks": ["MR", "SST2"],
        "methods": METHODS,
        "seeds": SEEDS,
        "k": K,
        "batch": 5,
        "demonstrations": str(released),
        **changes,
    }
    return ExperimentContext(Experiment(**settings), lm=lm, offline=True)


def test_prompts_show_what_the_files_list_nearest_last(released, lm, tmp_path):
    context = context_of(released, lm)
    summary = evaluate(context, tmp_path / "r")
    assert summary.complete
    assert summary.computed == len(rows_of(tmp_path / "r")) == 2 * 5 * 2 * 2 * len(context.examples["MR"])
    runner = Runner(context)
    ways = {"random-inputs": "ri", "naive": "nearest", "z-icl": "pn"}
    for cell in {(each.task, each.method, each.seed): each for each in cells(context.experiment)}.values():
        for example in context.examples[cell.task][:3]:
            shown = runner.ensemble(cell).pipelines[0].prepare(example.text).demos
            if cell.method in ways:
                line = 0 if cell.method == "random-inputs" else int(example.id) - 1
                assert [demo.sentence.text for demo in shown] == sentences(ways[cell.method], cell.seed, line)
                words = {"good", "bad"} if cell.method == "z-icl" else set(WORDS)
                assert {demo.words for demo in shown} <= words
            else:
                # All k training examples of the seed, and no others.
                texts = {f"Taught, {text} {cell.seed}" for text in TEXTS[:K]}
                assert {demo.sentence.text for demo in shown} == texts
            if cell.method == "icl-gold":
                of = {f"Taught, {text} {cell.seed}": WORDS[number % 2] for number, text in enumerate(TEXTS)}
                assert all(demo.words == of[demo.sentence.text] for demo in shown)
    # Rows name lines and places; no encoder was used.
    row = next(row for row in rows_of(tmp_path / "r") if row["method"] == "z-icl")
    assert row["demos"] == [f"{int(row['example'])}.{place}" for place in (1, 2, 3, 4)]
    assert make_report([tmp_path / "r"]).main.sections


def test_another_file_is_another_configuration(released, lm, tmp_path):
    one = {"methods": ["z-icl"], "tasks": ["MR"], "inferences": ["direct"], "seeds": [100]}
    evaluate(context_of(released, lm, **one), tmp_path / "r")
    # Another seed has a file of its own, and is added.
    evaluate(context_of(released, lm, **{**one, "seeds": [100, 13]}), tmp_path / "r")
    path = released / "retrieved" / "mr_pn" / f"mr_pn_{K}_100.jsonl"
    path.write_text(path.read_text().replace("Sentence 2 of 5", "Another of 5"))
    with pytest.raises(ConfigError, match="computed under another configuration"):
        evaluate(context_of(released, lm, **one), tmp_path / "r")


def test_a_seed_of_taught_examples_is_added_and_a_missing_one_is_named(released, lm, tmp_path):
    one = {"methods": ["icl-gold"], "tasks": ["MR"], "inferences": ["direct"], "seeds": [100]}
    evaluate(context_of(released, lm, **one), tmp_path / "r")
    assert evaluate(context_of(released, lm, **{**one, "seeds": [100, 13]}), tmp_path / "r").computed == len(TEXTS)
    with pytest.raises(ConfigError, match="has training examples of MR, but none of seed 7"):
        context_of(released, lm, **{**one, "seeds": [100, 7]})


def test_an_input_that_was_taught_is_shown_as_in_the_file(released, lm):
    """The authors show all k examples, the input itself if it is one of them."""
    path = released / "data" / "k-shot" / "mr" / f"{K}-100" / "train.csv"
    path.write_text("".join(f'{n % 2},"{text}"\n' for n, text in enumerate(TEXTS[:K])))
    context = context_of(released, lm, methods=["icl-gold"], tasks=["MR"], seeds=[100])
    (cell,) = [each for each in cells(context.experiment) if each.inference == "direct"]
    shown = Runner(context).ensemble(cell).pipelines[0].prepare(TEXTS[1]).demos
    assert [demo.sentence.text for demo in shown] == TEXTS[:K]


def test_what_does_not_fit_is_an_error_before_a_model_is_loaded(released, tmp_path):
    task, naive = get_task("MR"), context_of(released, None).methods["naive"]
    data = ReleasedData(released, K)
    examples = data.test(task, None)
    with pytest.raises(ConfigError, match="has no sentences for MR, retrieval 'nearest', seed 7") as error:
        data.demonstrations(task, naive, 7, examples, None)
    assert "retrieved/mr-n=2000_nearest" in error.value.hint
    with pytest.raises(TextError, match="sentences for 12 test inputs, and there are 11"):
        data.demonstrations(task, naive, 100, examples[1:], None)
    path = released / "retrieved" / "mr_nearest" / f"mr_nearest_{K}_100.jsonl"
    path.write_text('["one", "two"]\n')
    with pytest.raises(TextError, match="line 1: expected a list of 4 sentences"):
        data.demonstrations(task, naive, 100, examples, None)
    with pytest.raises(ConfigError, match="corpus_share, which does not go with demonstrations"):
        data.check("small", naive.model_copy(update={"corpus_share": 0.5}))
    with pytest.raises(ConfigError, match=r"retrieval\.k = 2, which does not go"):
        data.check("few", naive.model_copy(update={"retrieval": naive.retrieval.model_copy(update={"k": 2})}))
    with pytest.raises(ConfigError, match="nearest-icl-gold draws nothing"):
        context_of(released, None, methods=["nearest-icl-gold"])
    with pytest.raises(ConfigError, match="there is no folder"):
        context_of(tmp_path / "nowhere", None)
    broken = released / "data" / "k-shot" / "mr" / f"{K}-100" / "test.csv"
    broken.write_text("7,A text.\n")
    with pytest.raises(TextError, match="row 1: expected a text and a label from 0 to 1"):
        data.test(task, None)
    broken.write_text('0,"Never closed\n')
    with pytest.raises(TextError, match="unexpected end of data"):
        data.test(task, None)
    # Lines without anything are none; other ends of lines than the newline are part of a text.
    broken.write_text("0,One.\n\n1,Two.\n")
    assert [example.text for example in data.test(task, None)] == ["One.", "Two."]
    tabs = released / "data" / "k-shot" / "SST-2" / f"{K}-100" / "test.tsv"
    tabs.write_text("sentence\tlabel\nOne\u2028line.\t1\n\n")
    assert [example.text for example in data.test(get_task("SST2"), None)] == ["One\u2028line."]


def test_a_page_with_the_published_texts(released, lm, tmp_path):
    evaluate(context_of(released, lm, methods=["z-icl"], seeds=[100]), tmp_path / "r")
    app = typer.Typer()
    app.command()(report)
    options = ["--html", tmp_path / "p.html", "--demonstrations", released]
    result = CliRunner().invoke(app, [str(each) for each in (tmp_path / "r", *options)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "p.html").read_text()
    assert all(text in page for text in TEXTS)


def test_examples_as_the_authors_scripts_write_them_come_first(released):
    made = [{"task": "mr", "input": f"Made, {text}", "output": WORDS[n % 2]} for n, text in enumerate(TEXTS)]
    lines(released / "datasets" / "mr" / f"mr_{K}_100_test.jsonl", made)
    lines(released / "datasets" / "mr" / f"mr_{K}_13_train.jsonl", made[:K])
    data, task = ReleasedData(released, K), get_task("MR")
    assert data.test(task, None)[1] == Example("2", "Made, " + TEXTS[1], "great")
    assert data.train(task, 13)[0] == Example("13.1", "Made, " + TEXTS[0], "terrible")
    assert data.train(task, 5) is None


@given(st.lists(st.sampled_from("abc"), min_size=5, max_size=60), st.integers(1, 5))
def test_a_smaller_test_set_keeps_the_shares(labels, count):
    """Rounded down, and what is left to the labels that come first: at most one more than their share."""
    rows = [Example(str(n), f"text {n}", label) for n, label in enumerate(labels)]
    chosen = downsize(rows, count)
    assert len(chosen) == len(set(chosen)) == count
    for label in set(labels):
        share = count * labels.count(label) / len(labels)
        assert np.floor(share) - 1e-9 <= sum(row.label == label for row in chosen) <= np.floor(share) + 1
    assert downsize(rows, count) == chosen


def test_the_papers_settings_run_on_a_tiny_model(released, lm, tmp_path):
    """The experiment as it is committed, on files of the same form: only the model, the tasks and k are others."""
    path = Path(__file__).parents[3] / "benchmarks" / "paper.toml"
    options = {"demonstrations": str(released), "tasks": ["MR", "SST2"], "k": K, "seeds": SEEDS}
    experiment = read_experiment(path, options)
    assert experiment.examples == 2000
    assert experiment.method("z-icl").retrieval.neighbours == "domain"
    context = ExperimentContext(experiment, lm=lm, offline=True)
    evaluate(context, tmp_path / "r")
    rows = rows_of(tmp_path / "r")
    assert {row["method"] for row in rows} == set(experiment.methods)
    # Diverse nearest are shown in another order than the file's, which is as random.
    shown = [row["demos"] for row in rows if row["method"] == "diverse-synonyms"]
    assert any(demos != sorted(demos) for demos in shown)
    assert all(sorted(demos) == [f"{demos[0].split('.')[0]}.{n}" for n in (1, 2, 3, 4)] for demos in shown)
