"""Experiments: strict, and resolved before anything is loaded."""

import re
from pathlib import Path

import pytest

from zicl.exceptions import ConfigError, ZICLError
from zicl.lab.evaluate.experiment import PAPER_SEEDS, Experiment, read_experiment
from zicl.lab.evaluate.plan import batches, cells


def test_the_papers_by_default():
    experiment = Experiment(corpus="c.zicl")
    assert len(experiment.tasks) == 9
    assert experiment.seeds_of("direct") == PAPER_SEEDS
    # a seed-free method once an inference, majority once, five with seeds
    assert len(cells(experiment)) == 9 * (1 + 2 + 5 * 2 * 5)


def test_seeds_by_inference():
    experiment = Experiment(
        corpus="c", tasks=["CR"], methods=["z-icl", "logistic"], seeds={"channel": [1, 2], "direct": [3]}
    )
    found = [(cell.method, cell.inference, cell.seed) for cell in cells(experiment)]
    assert sorted(found) == [
        ("logistic", "none", 1), ("logistic", "none", 2), ("logistic", "none", 3),
        ("z-icl", "channel", 1), ("z-icl", "channel", 2), ("z-icl", "direct", 3),
    ]  # fmt: skip


def test_a_method_of_ones_own(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        'corpus = "c.zicl"\nmethods = ["mine"]\nk = 9\n[define.mine]\nretrieval = {method = "diverse", k = 5}\n'
        '[define.mine.labelling]\nwords = "synonyms"\n'
    )
    experiment = read_experiment(path, {})
    assert experiment.corpus.path == str(tmp_path / "c.zicl")
    assert experiment.method("mine").retrieval.k == 5, "what a definition says stands"
    assert Experiment(corpus="c", k=9).method("z-icl").retrieval.k == 9
    defined = Experiment(corpus="c", k=9, define={"mine": {"retrieval": {"method": "diverse"}}}, methods=["mine"])
    assert defined.method("mine").retrieval.k == 9, "a definition that says nothing gets the experiment's"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seedz = [1]", "did you mean 'seeds'?"),
        ('[define.x.retrieval]\nmetod = "nearest"', "define.x.retrieval.metod: there is no such key; did you"),
        ('[prompt]\nmax_token = 9', "its keys are: template, "),
        ("examples = 0", "examples: it is too small, expected at least 1 (given: 0)"),
        ('methods = ["z-icl", "z-icl"]', "each once"),
        ('tasks = []', "name at least one"),
        ('inferences = ["sideways"]', "inferences.0"),
        ('[scoring]\ninference = "direct"', "scoring.inference is not set here"),
        ('[prompt]\ntemplate = "text"', "prompt.template is not set here"),
        ('[seeds]\ndirect = [1]', "no seeds for channel"),
        ('[define.naive]\nkind = "prompt"', "the experiment defines naive, which zicl has already"),
        ('[define.x]\nlabels = "gold"', "gold labels need demos = 'train'"),
        ('[define.x]\ndemos = "train"', "training examples have no neighbours"),
        ("tasks = [", "is not TOML"),
        ('task_file = ["a.toml", "b.toml"]', "task_file"),
        ('data = "data/"', "data: "),
        ('[data]\nsst2 = "x.csv"', "did you mean 'SST2'?"),
        ("seeds = [13, 13]", "each once"),
        ("seeds = [4294967296]", "from 0 to 2147483647"),
        ('[define."a/b"]\nkind = "prompt"', "a slash, a dot or a blank"),
        ("[scoring]\nexperts = ['cosine']", "scoring.experts is not set here"),
        ('[define.x]\ndemos = "train"\nlabels = "gold"\nretrieval = {method = "random"}\nlabelling = {assignments = 2}',
         "leave out labelling"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, text, message):
    path = tmp_path / "e.toml"
    path.write_text(text)
    with pytest.raises(ZICLError, match=re.escape(message)):
        read_experiment(path, {"corpus": "c", "data": {"SST2": "x.csv"}})


def test_a_wrong_key_of_a_recipe_is_named_alone(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('[corpus]\npath = "c"\ndomain = 1')
    with pytest.raises(ConfigError) as error:
        read_experiment(path, {})
    assert error.value.message == f"{path}: corpus.domain: there is no such key; did you mean 'domains'?"
    assert error.value.hint.startswith("its keys are: path, domains")


def test_a_file_that_is_not_there():
    with pytest.raises(ConfigError, match="there is no file"):
        read_experiment(Path("nowhere.toml"), {})


def test_options_go_over_the_file(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('corpus = "c"\nexamples = 7\n[data]\nCR = "cr.csv"\n')
    experiment = read_experiment(path, {"examples": 9, "data": {"MR": "mr.csv"}})
    assert experiment.examples == 9
    assert experiment.data == {"CR": str(tmp_path / "cr.csv"), "MR": "mr.csv"}


def test_the_shards_of_a_plan_are_all_of_it_and_nothing_twice(context):
    from zicl.lab.evaluate.plan import RunShard

    whole = list(batches(context.experiment, context.examples))
    parts = [list(batches(context.experiment, context.examples, RunShard(i, 3))) for i in (1, 2, 3)]
    assert sorted(b.name for part in parts for b in part) == sorted(b.name for b in whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
