"""zicl report --html, as a user types it."""

import json
import re

import pytest

from tests.lab.evaluate.conftest import examples


def data(path):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    return json.loads(found[1])


@pytest.fixture
def page(tmp_path):
    return tmp_path / "report.html"


def test_ids_without_texts_and_nothing_on_the_screen(run, evaluated, page):
    code, out, err = run("report", evaluated.results, evaluated.study.parent, "--html", page)
    assert (code, out) == (0, ""), err
    assert "go by their ids" in err
    assert not any("text" in each for each in data(page)["examples"])
    assert {cell["from"] for cell in data(page)["cells"]} == {"results", "copying"}


def test_texts_from_the_files_of_the_evaluation(run, evaluated, page):
    folder = evaluated.results.parent
    chosen = ["--task-file", folder / "tasks.toml", "--corpus", evaluated.index.corpus.path]
    code, _, err = run("report", evaluated.results, "--html", page, *chosen)
    assert code == 0, err
    found = data(page)
    assert all("text" in each for each in (*found["examples"], *found["sentences"]))
    experiment = folder / "experiment.toml"
    experiment.write_text('task_file = "tasks.toml"\ncorpus = "raw.zicl"\n')
    code, _, err = run("report", evaluated.results, "--html", page, "--experiment", experiment, "--predictions", 2)
    assert code == 0, err
    assert len(data(page)["predictions"]) == 2 * 6
    code, _, err = run("report", evaluated.results, "--html", page, *chosen, "--no-texts")
    assert code == 0, err
    assert "soup" not in json.dumps(data(page))


def test_a_user_task_without_its_file_is_named(run, evaluated, page):
    folder = evaluated.results.parent
    code, _, err = run("report", evaluated.results, "--html", page, "--data", f"Days={folder / 'test.jsonl'}")
    assert code == 2
    assert "unknown task 'Days'" in err
    assert "--task-file tasks.toml" in err
    code, _, err = run("report", evaluated.results, "--html", page, "--corpus", evaluated.index.corpus.path)
    assert code == 0, err
    assert "Days: a task of your own is known by --task-file" in err
    code, _, err = run("report", evaluated.results, "--html", page, "--task-file", folder / "tasks.toml")
    assert code == 0, err
    assert "task of your own" not in err


def test_texts_of_other_data_are_refused(run, evaluated, page, tmp_path):
    (tmp_path / "Days").mkdir()
    (tmp_path / "Days" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in examples(9)))
    tasks = evaluated.results.parent / "tasks.toml"
    code, _, err = run("report", evaluated.results, "--html", page, "--task-file", tasks, "--data-dir", tmp_path)
    assert code == 2
    assert "other test examples" in err
    assert not page.exists()


def test_tables_are_still_printed_if_a_format_is_given(run, evaluated, page):
    code, out, err = run("report", evaluated.results, "--html", page, "--json")
    assert code == 0, err
    assert json.loads(out)["metric"] == "accuracy"


@pytest.mark.parametrize("option", [["--no-texts"], ["--corpus", "c.zicl"], ["--predictions", "3"]])
def test_options_of_the_page_need_a_page(run, evaluated, option):
    code, _, err = run("report", evaluated.results, *option)
    assert code == 2
    assert option[0] in err


def test_options_that_do_not_apply_to_studies_are_refused(run, evaluated, page):
    code, _, err = run("report", evaluated.study, "--html", page, "--metric", "macro-f1")
    assert code == 2
    assert "--metric is for results" in err
    assert not page.exists()


def test_a_folder_is_no_page(run, evaluated, tmp_path):
    assert run("report", evaluated.results, "--html", tmp_path)[0] == 2
