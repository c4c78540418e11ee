"""The settings of studies: the more specific wins, and errors name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.evaluate.conftest import write_task
from zicl.exceptions import ConfigError, UnknownNameError
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.study.base import PAPER_SIX, StudyPart
from zicl.lab.study.registry import NAMES, STUDIES
from zicl.lab.study.settings import StudySettings, read_settings

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "studies.toml"

PART = StudyPart("k", {"no-demos": EXPERIMENT_METHODS["no-demos"]}, {"prompt": {"tokens_all_demos": 99}})


def written(tmp_path, text):
    path = tmp_path / "studies.toml"
    path.write_text(text)
    return path


def test_the_more_specific_setting_wins_and_options_win_over_all(tmp_path):
    path = written(
        tmp_path,
        'examples = 50\nseeds = [1]\nk = 8\ncorpus = { path = "c.zicl", domains = { a = "a.jsonl" } }\n'
        '[study.format]\nseeds = [2]\ntasks = ["CR"]\ncorpus = { domains = { b = "b.jsonl" } }\n'
        "[study.format.parts.k]\nexamples = 7\nprompt = { tokens_input = 5 }\n",
    )
    experiment = read_settings(path, {"k": 4}).experiment(STUDIES.get("format"), PART)
    assert (experiment.examples, experiment.seeds, experiment.k, experiment.tasks) == (7, (2,), 4, ("CR",))
    assert experiment.corpus.path == str(tmp_path / "c.zicl")
    paths = {name: domain.paths for name, domain in experiment.corpus.domains.items()}
    assert paths == {"a": ("a.jsonl",), "b": ("b.jsonl",)}
    assert (experiment.prompt.tokens_all_demos, experiment.prompt.tokens_input) == (99, 5)
    other = read_settings(path, {}).experiment(STUDIES.get("labels"), StudyPart("words", PART.methods))
    assert (other.examples, other.seeds, other.k, other.tasks) == (50, (1,), 8, PAPER_SIX)


def test_a_parts_settings_win_over_general_ones_and_lose_to_its_tables(tmp_path):
    def limit(text):
        experiment = read_settings(written(tmp_path, text), {}).experiment(STUDIES.get("format"), PART)
        return experiment.prompt.tokens_all_demos

    assert limit("prompt = { tokens_all_demos = 50 }\n") == 99
    assert limit("[study.format]\nprompt = { tokens_all_demos = 50 }\n") == 50
    assert limit("[study.format.parts.k]\nprompt = { tokens_all_demos = 50 }\n") == 50


def test_the_defaults_are_the_papers():
    experiment = read_settings(None, {}).experiment(STUDIES.get("coverage"), PART)
    assert experiment.tasks == ("MR", "SST2", "SST5")
    assert experiment.inferences == ("channel",)
    assert STUDIES.get("heads").inferences == ("channel", "direct")


def test_tasks_of_a_task_file_replace_the_studys(tmp_path):
    tasks = str(write_task(tmp_path))
    assert read_settings(None, {"task_file": tasks}).experiment(STUDIES.get("labels"), PART).tasks == ("Days",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[study.formt]\nexamples = 3\n", "unknown study 'formt'"),
        ("study = 3\n", "study is not a table"),
        ("[study]\nformat = 3\n", r"study\.format is not a table"),
        ("[study.format]\noptions = 3\n", r"study\.format\.options is not a table"),
        ("[study.format]\nparts = 3\n", r"study\.format\.parts is not a table"),
        ("[study.format.parts]\nk = 3\n", r"study\.format\.parts\.k is not a table"),
        ('methods = ["naive"]\n', "each study defines its methods"),
        ("[study.format.parts.k]\ndefine = {}\n", "each study defines its methods"),
        ("not toml", "is not TOML"),
    ],
)
def test_invalid_files_are_refused(tmp_path, text, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        read_settings(written(tmp_path, text), {})


def test_wrong_keys_and_options_are_named(tmp_path):
    settings = read_settings(written(tmp_path, "[study.format]\nexmples = 3\noptions = { ks = [1] }\n"), {})
    with pytest.raises(ConfigError, match=r"format: exmples: there is no such key; did you mean 'examples'"):
        settings.experiment(STUDIES.get("format"), PART)
    with pytest.raises(ConfigError, match=r"options of format: ks: there is no such key"):
        settings.options(STUDIES.get("format"))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("retrieval", {"pools": [64, 0]}, "pools"),
        ("heads", {"controls": ["nave"]}, "unknown method of the study of heads 'nave'"),
        ("heads", {"swept": ["no-demos"]}, "unknown method of the study of heads"),
        ("corpus-size", {"shares": [1, 2]}, "shares"),
        ("corpus-size", {"shares": [1, 0.1, 0.1]}, "shares names something twice"),
        ("format", {"k": [1, 4, 4]}, "k names something twice"),
    ],
)
def test_invalid_options_are_refused(name, options, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        StudySettings(studies={name: {"options": options}}).options(STUDIES.get(name))


def test_an_unknown_part_is_named(tmp_path):
    settings = read_settings(written(tmp_path, "[study.format.parts.words]\nexamples = 3\n"), {})
    with pytest.raises(UnknownNameError, match="unknown part of the study format: 'words'"):
        settings.check_parts(STUDIES.get("format"), ["k"])


@pytest.mark.parametrize("name", NAMES)
def test_the_benchmarks_settings_are_valid(name):
    study, settings = STUDIES.get(name), read_settings(BENCHMARK, {})
    settings.options(study)
    experiment = settings.experiment(study, PART)
    assert experiment.examples == 50
    assert ("imdb_reviews" in experiment.corpus.domains) == (name == "coverage")
    assert len(experiment.corpus.domains) == (19 if name == "coverage" else 18)
