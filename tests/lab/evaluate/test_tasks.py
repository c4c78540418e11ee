"""The shipped tasks are the paper's; a file of one's own adds to them or changes where they come from."""

import json

import pytest
import typer
from typer.testing import CliRunner

from zicl.cli.evaluate import tasks
from zicl.exceptions import ConfigError, UnknownNameError
from zicl.lab.evaluate.tasks import Task, get_task, read_tasks
from zicl.prompt.synonyms import paper_table

FIVE = {"terrible": "horrible", "bad": "negative", "okay": "neutral", "good": "positive", "great": "excellent"}
TWO = {"terrible": "bad", "great": "good"}
POLAR = {"negative": "bad", "positive": "good"}
PAPER = {
    "CR": (TWO, True),
    "Amz": (POLAR, True),
    "Amz5": (FIVE, True),
    "Yelp": (POLAR, True),
    "Yelp5": (FIVE, True),
    "Tweet": ({"negative": "bad", "neutral": "normal", "positive": "good"}, True),
    "MR": (TWO, False),
    "SST2": (TWO, False),
    "SST5": (FIVE, False),
}


def test_the_nine_tasks_in_the_papers_order():
    shipped = read_tasks()
    assert list(shipped) == list(PAPER)
    for name, task in shipped.items():
        synonyms, covered = PAPER[name]
        assert {label.name: label.synonyms for label in task.labels} == {k: (v,) for k, v in synonyms.items()}
        assert task.labels.names == tuple(synonyms) == task.labels.words
        assert task.covered is covered
        assert (task.template, task.sample, task.sample_seed) == ("review", 2000, 100)
        assert task.title
        assert task.origin
        assert task.hub is not None
        descriptions = [label.description for label in task.labels]
        assert all(descriptions)
        assert len(set(descriptions)) == len(descriptions)
        assert paper_table(task.labels.words) == {k: (v,) for k, v in synonyms.items()}


def test_tasks_go_to_json_and_back():
    for task in read_tasks().values():
        assert Task.model_validate(json.loads(task.model_dump_json())) == task


def write(tmp_path, text):
    path = tmp_path / "tasks.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_ones_own(tmp_path):
    path = write(
        tmp_path,
        """
        [SST2]
        test = "data/sst2.csv"
        note = "stand-in: a small part"

        [Mail]
        labels = ["spam", { name = "ham", words = "a wanted letter", synonyms = "fine" }]
        template = ["Mail: {input}", "Kind: {label}"]
        values = { 1 = "spam", 0 = "ham" }
        """,
    )
    own = read_tasks(path)
    assert list(own) == ["SST2", "Mail"]
    assert own["SST2"].test == tmp_path / "data" / "sst2.csv"
    assert own["SST2"].labels == get_task("SST2").labels
    assert (own["SST2"].note, own["SST2"].covered) == ("stand-in: a small part", False)
    mail = get_task("Mail", own)
    assert mail.labels.words == ("spam", "a wanted letter")
    assert mail.labels["ham"].synonyms == ("fine",)
    assert mail.template == ("Mail: {input}", "Kind: {label}")
    assert (mail.covered, mail.test, mail.hub) == (None, None, None)
    assert get_task("SST2", own).test is not None
    assert get_task("MR", own).name == "MR"


def test_a_shipped_name_with_other_labels_is_another_task(tmp_path):
    task = read_tasks(write(tmp_path, '[Tweet]\nlabels = ["angry", "calm"]'))["Tweet"]
    assert (task.labels.names, task.hub, task.origin, task.template) == (("angry", "calm"), None, "", "text")


def test_unknown_tasks_are_offered_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'SST2'"):
        get_task("SST-2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no task"),
        ("[A", "is not TOML"),
        ("A = 1", "task A: expected a table"),
        ("[A]\ntitle = 'x'", "task A: labels: it is missing"),
        ("[A]\nlabels = ['x']", "task A: labels: 1 label given"),
        ("[A]\nlabels = 3.5", "task A: labels: expected names"),
        ("[A]\nlabels = ['x', {name = 'y', word = 'z'}]", "task A: labels: label 2: unknown keys word"),
        ("[A]\nlabels = ['x', 'y']\nmood = 1", "task A: mood: there is no such key"),
        ("[A]\nlabels = ['x', 'y']\ntemplate = 'reviw'", "unknown template 'reviw'"),
        ("[A]\nlabels = ['x', 'y']\ntemplate = ['{input}', 'none']", "must contain {label}"),
        ("[A]\nlabels = ['x', 'y']\nvalues = {0 = 'z'}", "values name no label of the task: z"),
        ("[A]\nlabels = ['x', 'y']\nhub = {id = 'o/d', values = [0]}", "1 values do not fit 2 labels"),
        ("[A]\nlabels = ['x', 'y']\nsample = 0", "task A: sample: "),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message.replace("{", r"\{")):
        read_tasks(write(tmp_path, text))
    with pytest.raises(ConfigError, match="there is no file"):
        read_tasks(tmp_path / "none.toml")


@pytest.fixture
def app():
    """The command alone; a second one makes the first a command with a name, as in the whole program."""
    app = typer.Typer()
    app.command("tasks")(tasks)
    app.command("other")(lambda: None)
    return app


def test_the_command_lists_them(app, tmp_path):
    path = write(tmp_path, '[MR]\ntest = "mr.csv"\n[Mail]\nlabels = ["spam", "ham"]')
    found = json.loads(CliRunner().invoke(app, ["tasks", "--task-file", str(path), "--json"]).stdout)
    assert [task["name"] for task in found] == [*PAPER, "Mail"]
    assert found[0]["labels"][0]["synonyms"] == ["bad"]
    assert found[6]["test"] == str(tmp_path / "mr.csv")
    shown = CliRunner().invoke(app, ["tasks"], env={"COLUMNS": "300"}).stdout
    assert "negative (bad), neutral (normal), positive (good)" in shown
    assert "hf:cardiffnlp/tweet_eval (sentiment)" in shown
    assert "Socher et al." in shown
    narrow = CliRunner().invoke(app, ["tasks"], env={"COLUMNS": "80"})
    assert all(f"hf:{task.hub.id}" in narrow.stdout for task in read_tasks().values())
    assert max(map(len, narrow.stdout.splitlines())) <= 80
    assert "template and origin; --json has everything" in narrow.stderr
    own = CliRunner().invoke(app, ["tasks", "--task-file", str(path)], env={"COLUMNS": "300"}).stdout
    assert "none given" in own
    assert "spam, ham" in own
