"""The command line on tiny models: what it prints where, what it writes, how it ends."""

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import LABELS
from tests.conftest import DOCUMENTS
from zicl.cli.options import ClassifierOptions
from zicl.corpus.builder import BuildOptions, build_corpus
from zicl.corpus.sources import find_sources
from zicl.prompt.labels import Labels


def test_corpus_info_and_show(run, corpus):
    code, out, _ = run("corpus", "info", corpus, "--verify")
    assert code == 0
    assert "flat, 30 vectors" in out
    assert json.loads(run("corpus", "info", corpus, "--json")[1])["corpus"]["sentences"] == 30
    code, out, _ = run("corpus", "show", corpus, 4)
    assert "▶ 4  It stopped at every village." in out
    assert run("corpus", "show", corpus, 99)[0] == 2
    assert len(json.loads(run("corpus", "show", corpus, 4, "--json")[1])["paragraph"]) == 3


def test_corpus_info_of_a_sample_and_of_a_corpus_from_before_kept_documents_were_counted(run, jsonl, tmp_path):
    folder = build_corpus(find_sources([jsonl]), tmp_path / "c.zicl", BuildOptions(max_paragraphs=4)).path
    said = run("corpus", "info", folder)[1]
    assert "12 sentences in 4 paragraphs from 4 documents; 10 documents were read" in said
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["documents_kept"], manifest["domains"][0]["documents_kept"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "12 sentences in 4 paragraphs; 10 documents were read" in run("corpus", "info", folder)[1]


def test_corpus_add_remove_and_compact(run, corpus, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text("review\nThe tram was late again. We walked home in the rain.\nThe soup was cold and thin.\n")
    new = tmp_path / "new.zicl"
    given = ["corpus", "add", corpus, "--domain", f"tram={more}", "--text-column", "review", "-o", new, "--offline"]
    code, out, err = run(*given, "--json")
    assert code == 0, err
    assert "embedding" in err
    assert json.loads(out)["index"]["vectors"] == 32
    assert "tram #" in run("retrieve", "a tram in the rain", "-c", new, "--k", 32, "--retrieval", "nearest")[1]
    code, _, err = run("corpus", "remove", new, "--domain", "text")
    assert code == 0
    assert "text: removed" in err
    assert "3 sentences" in run("corpus", "info", new)[1]
    # The soup is told of in both domains: its second telling is indexed now.
    rows = run("retrieve", "soup", "-c", new, "--k", 3, "--retrieval", "nearest", "--json")[1].splitlines()
    assert {json.loads(row)["domain"] for row in rows} == {"tram"}
    assert json.loads(run("corpus", "compact", new, "--json")[1])["corpus"]["sentences"] == 3
    code, _, err = run("corpus", "compact", new)
    assert code == 0
    assert "nothing to free" in err
    assert "30 sentences" in run("corpus", "info", corpus)[1]


def test_progress_without_a_terminal_is_one_line_a_stage(run, jsonl, tmp_path, encoder_folder):
    _, _, err = run("corpus", "build", "-o", tmp_path / "c.zicl", jsonl, "--encoder", encoder_folder)
    for stage in ("reading", "storing", "loading the encoder", "embedding", "indexing"):
        assert sum(line.strip("✓ ").startswith(stage) for line in err.splitlines()) == 1, err


def test_index_build_replaces_the_index(run, corpus, encoder_folder):
    code, _, err = run("index", "build", corpus, "--encoder", encoder_folder, "--kind", "ivf-pq")
    assert code == 0
    assert "30 vectors" in err
    assert "ivf-pq" in run("corpus", "info", corpus)[1]


def test_index_tune_shows_what_it_measured_and_keeps_the_pick(run, corpus, encoder_folder):
    assert run("index", "build", corpus, "--encoder", encoder_folder, "--kind", "ivf-sq8")[0] == 0
    code, out, _ = run("index", "tune", corpus, "--queries", "5", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["pick"] in found["measured"]
    assert json.loads(run("corpus", "info", corpus, "--json")[1])["index"]["search"] == found["pick"]["search"]
    code, out, _ = run("index", "tune", corpus, "--queries", "5")
    assert code == 0
    assert "recall at 16" in out
    assert "kept: ivf-sq8 nprobe=1" in out
    assert ", nprobe=1, refine=" in run("corpus", "info", corpus)[1]
    code, _, err = run("index", "build", corpus, "--kind", "ivf-pq", "--keep-vectors")
    assert code == 0
    assert "30 vectors" in err
    assert "ivf-pq" in err
    code, _, err = run("index", "build", corpus, "--keep-vectors")
    assert code == 2
    assert "half precision" in err


def test_a_build_interrupted_before_its_index_goes_on_with_it(run, jsonl, tmp_path, encoder_folder):
    assert run("corpus", "build", "-o", tmp_path / "c.zicl", jsonl, "--index", "none")[0] == 0
    code, _, err = run("corpus", "build", "-o", tmp_path / "c.zicl", jsonl, "--encoder", encoder_folder)
    assert code == 0
    assert "building its index" in err
    code, _, err = run("corpus", "build", "-o", tmp_path / "c.zicl", jsonl, "--encoder", encoder_folder)
    assert code == 1
    assert "exists already: it is a folder" in err
    assert "replace it: --overwrite" in err


def test_explain_prompt_and_retrieve(run, options, corpus):
    code, out, _ = run("explain", "The soup was cold.", *options)
    assert code == 0
    assert "3 demonstrations in the prompt" in out
    assert json.loads(run("explain", "The soup was cold.", "--json", *options)[1])["label"] in LABELS.split(",")
    code, out, _ = run("prompt", "The soup was cold.", "--inference", "direct", *options)
    assert out.count("Review: ") == 4
    assert "[\nSentiment: great]" in out
    built = json.loads(run("prompt", "The soup was cold.", "--json", *options)[1])
    assert len(built["branches"]) == 2
    code, out, _ = run("retrieve", "The soup was cold.", "--corpus", corpus, "--k", 2, "--json")
    assert len(out.splitlines()) == 2
    code, out, _ = run("retrieve", "The soup was cold.", "--corpus", corpus, "--k", 2)
    assert "nearest sentence" in out


def test_explain_and_prompt_take_pairs(run, options):
    pair = ["It rained.", "--pair", "The street is wet.", "--template", "pair", *options]
    code, out, err = run("explain", *pair)
    assert code == 0, err
    assert "It rained. The street is wet." in out
    told = json.loads(run("explain", "--json", *pair)[1])
    assert (told["text"], told["pair"]) == ("It rained.", "The street is wet.")
    built = json.loads(run("prompt", "--json", *pair)[1])
    assert all("It rained." in branch["scored"] and "street is wet" in branch["scored"] for branch in built["branches"])
    code, _, err = run("prompt", "It rained.", "--pair", " ", *options)
    assert code == 2
    assert "the pair, second text, is empty" in err
    code, _, err = run("explain", "It rained.", "--pair", "The street is wet.", *options)
    assert code == 2
    assert "a pair of texts needs a template with {first} and {second}" in err


def test_explain_fits_on_the_columns_that_are_named(run, options, tmp_path):
    rows = "".join(f'"{text}",The street is wet.\n' for text in DOCUMENTS[:6])
    (tmp_path / "pairs.csv").write_text("premise,then\n" + rows)
    given = [
        "--set",
        "retrieval.share=2",
        "--fit",
        tmp_path / "pairs.csv",
        "--template",
        "pair",
        "--text-column",
        "premise",
        *options,
    ]
    asked = ["It rained.", "--pair", "The street is wet."]
    code, out, err = run("explain", *asked, "--pair-column", "then", *given)
    assert code == 0, err
    assert "demonstrations in the prompt" in out
    code, _, err = run("explain", *asked, *given)
    assert code == 2
    assert "a pair of texts needs a template" in err
    code, _, err = run("explain", "It rained.", "--pair-column", "The street is wet.", *options)
    assert code == 2
    assert "given with --pair" in err


def test_a_template_of_ones_own(run, options):
    out = run("prompt", "In.", "--template", "Q: {input}|A: {label}", *options)[1]
    assert "A: great[\nQ: In.]" in out


def test_the_name_of_a_file_is_no_text_to_explain(run, options, jsonl):
    for command in ("explain", "prompt"):
        code, out, err = run(command, jsonl, *options)
        assert (code, out) == (2, "")
        assert "is a file, and a text was expected" in err


def test_a_closed_pipe_ends_a_command_without_a_traceback(tmp_path):
    for arguments in (["models", "list"], ["tasks"], ["classify", "--help"]):
        command = subprocess.Popen(
            [sys.executable, "-m", "zicl", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
        )
        command.stdout.close()
        said = command.stderr.read()
        command.stderr.close()
        assert command.wait() != 0
        assert said == b""


def test_labels_suggest_writes_the_papers_synonyms(run, tmp_path):
    target = tmp_path / "labels.toml"
    code, _, err = run("labels", "suggest", LABELS, "-o", target)
    assert code == 0, err
    assert "great: good" in err
    assert 'synonyms = ["good"]' in target.read_text()
    assert target.read_text().startswith("# A draft: edit")
    assert Labels.of(target).names == ("terrible", "great")
    assert run("labels", "suggest", LABELS, "-o", target)[0] == 1
    code, out, _ = run("labels", "suggest", LABELS, "-o", tmp_path / "again.toml", "--json")
    assert code == 0
    assert json.loads(out)["labels"][1]["synonyms"] == ["good"]
    assert (tmp_path / "again.toml").read_text() == target.read_text()


def test_what_a_changed_choice_opens_is_closed_with_the_first():
    choice = ClassifierOptions(labels=LABELS)
    choice.but(labels="good,bad").opened.append("a model")
    assert choice.opened == ["a model"]


def test_models_list(run):
    assert "smollm2-135m" in run("models", "list")[1]
    assert {"name", "licence", "is_fetched"} <= set(json.loads(run("models", "list", "--json")[1])[0])
    code, _, err = run("models", "pull", "nothing")
    assert code == 2
    assert "unknown catalog entry" in err


def test_models_info(run, lm_folder):
    facts = json.loads(run("models", "info", lm_folder, "--json", "--offline")[1])
    assert facts["architecture"] == "LlamaForCausalLM"
    assert facts["scoring"] == "packed trees"
    assert "licence" in run("models", "info", "gemma-3-270m")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["classify", "x"], 2, "no labels were given"),
        (["classify", "x", "--labels", "great"], 2, "at least two"),
        (["classify", "x", "--labels", "a,b", "--method", "z-icl"], 2, "needs a corpus"),
        (["classify", "x", "--labels", "a,b", "--synonyms", "a"], 2, "LABEL=SYNONYM"),
        (["classify", "x", "--labels", "a,b", "--inference", "sideways"], 2, "inference: "),
        (["classify", "x", "--labels", "a,b", "--k", "-1"], 2, "k: "),
        (["classify", "x", "--labels", "a,b", "--template", "{input}"], 2, "separated by |"),
        (["classify", "x", "--labels", "a,b", "--set", "k=3"], 2, "GROUP.NAME=VALUE"),
        (["classify", "x", "--labels", "a,b", "--set", "scoring.kk=3"], 2, "kk: "),
        (["classify", " ", "--labels", "a,b"], 2, "text 1 is empty"),
        (["classify", "-f", "none.csv", "--labels", "a,b"], 2, "there is no file"),
        (["explain", "x"], 2, "no labels were given"),
        (["classify", "x", "--with", "c", "--labels", "a,b"], 2, "brings its own settings"),
        (["corpus", "build"], 2, "no input"),
        (["corpus", "build", "--domain", "x"], 2, "NAME=PATH"),
        (["corpus", "info", "none.zicl"], 1, "there is no corpus"),
        (["corpus", "add", "none.zicl"], 2, "no domain was named"),
        (["corpus", "add", "none.zicl", "x/imdb.jsonl.gz"], 2, "corpus add none.zicl --domain imdb=x/imdb.jsonl.gz"),
        (["corpus", "add", "none.zicl", "--domain", "x"], 1, "there is no corpus"),
        (["corpus", "remove", "none.zicl"], 2, "no domain was named"),
        (["corpus", "remove", "none.zicl", "--domain", "x"], 1, "there is no corpus"),
        (["corpus", "compact", "none.zicl"], 1, "there is no corpus"),
        (["retrieve", "x"], 2, "no corpus"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_errors_say_what_to_do(run, arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--method", "zicl"], "did you mean 'z-icl'?"),
        (["--set", "retrieval.method=nearst"], "did you mean 'nearest'?"),
        (["--template", "revue"], "did you mean 'review'?"),
        (["--template", "Q: {input}|A:"], "must contain {label} exactly once"),
        (["--set", "scoring.reduce=max"], "reduce: "),
    ],
)
def test_wrong_names_are_found_before_anything_is_read_or_loaded(run, options, given, message):
    code, _, err = run("classify", "--file", "not-there.csv", *options, *given)
    assert code == 2
    assert message in err
    assert "loading" not in err
