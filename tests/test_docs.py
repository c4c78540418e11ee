"""The README's code runs, the command line's help is what the docs say, and examples in docstrings hold."""

import doctest
import importlib
import json
import pkgutil
import re
import runpy
import sys
from pathlib import Path

import pytest

import zicl
from tests.readme import README, ROOT, blocks, make_place, run_in
from zicl.inputs.excel import write_workbook
from zicl.inputs.tables import read_records

DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
# What the code of a page prints, besides running without an error.
SAID = {
    "how-to/decide.md": "'other'",
    "how-to/labels.md": "refund",
    "how-to/paper-method.md": "great",
    "how-to/python.md": "terrible -",
    "tutorials/first.md": "complaint",
}
# Pages between whose blocks a person does something.
BY_HAND = ("how-to/files.md",)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return make_place(tmp_path_factory.mktemp("readme"))


def run_python(page, place):
    return run_in(place, [sys.executable, "-c", "\n".join(blocks("python", page))])


def run_shell(page, place):
    return "".join(run_in(place, ["bash", "-euc", block]) for block in blocks("sh", page))


@pytest.mark.real
def test_the_readmes_python(place):
    assert "encoder" in run_python(README, place)


@pytest.mark.real
@pytest.mark.parametrize(
    "name", [name for name, page in PAGES.items() if blocks("(?:sh|python)", page) and name not in BY_HAND]
)
def test_the_code_of_a_page_runs(name, tmp_path):
    place = make_place(tmp_path)
    said = run_shell(PAGES[name], place) + run_python(PAGES[name], place)
    assert SAID.get(name, "") in said


def test_what_pages_print_is_checked_on_pages_that_run():
    assert all(blocks("(?:sh|python)", PAGES[name]) for name in SAID)


def test_commands_are_in_blocks_that_say_whether_they_run():
    """Run blocks are sh and python, others console and pycon; an indented command would be neither."""
    languages = {word for page in PAGES.values() for word in re.findall(r"^```(\w*)", page, re.MULTILINE) if word}
    assert languages <= {"sh", "python", "console", "pycon", "toml", "json", "text", "jsonc", "http", "yaml"}
    for name, page in PAGES.items():
        assert not re.search(r"^\n    (zicl|python|make) ", page, re.MULTILINE), name


def test_the_page_of_settings_has_every_setting_with_its_default():
    from zicl.config import GROUPS

    told = dict(re.findall(r"^\| `(\w+\.\w+)`(?: †)? \| `(.*?)` \|", PAGES["reference/settings.md"], re.MULTILINE))
    fields = {f"{group}.{name}": field for group, kind in GROUPS.items() for name, field in kind.model_fields.items()}
    assert told == {name: str(field.default) for name, field in fields.items()}


@pytest.mark.real
def test_the_page_on_files(tmp_path):
    page, place = (ROOT / "docs/how-to/files.md").read_text(encoding="utf-8"), make_place(tmp_path)
    write_workbook(place / "tickets.xlsx", ["id", "text"], read_records(str(place / "tickets.csv")))
    excel, tasks, finished = blocks("sh", page)
    run_in(place, ["bash", "-euc", excel])
    assert len(read_records(str(place / "labelled.xlsx"))) == 24
    assert list(read_records(str(place / "to_label.xlsx"))[0]) == ["id", "text", "gold"]
    run_in(place, ["bash", "-euc", tasks])
    made = json.loads((place / "tasks.json").read_text())
    for task in made:
        value = {"choices": ["complaint" if "cold" in task["data"]["text"] else "praise"]}
        task["annotations"] = [{"result": [{"from_name": "gold", "type": "choices", "value": value}]}]
    (place / "export.json").write_text(json.dumps(made))
    assert "from 10 labelled rows that stand for 24" in run_in(place, ["bash", "-euc", finished])
    assert len(read_records(str(place / "taught.parquet"))) == 24


@pytest.mark.real
def test_the_readmes_shell(place):
    said = run_shell(README, place)
    assert '"predicted": "complaint"' in said
    assert len((place / "labelled.csv").read_text().splitlines()) == 25


def test_the_readme_names_only_files_that_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).is_file(), target


@pytest.mark.parametrize("name", PAGES)
def test_links_between_pages_lead_somewhere(name):
    page = DOCS / name
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", PAGES[name]):
        goal = (page.parent / target) if target else page
        assert goal.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", goal.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


def test_how_to_pages_are_short():
    words = {name: len(page.split()) for name, page in PAGES.items() if name.startswith(("how-to/", "tutorials/"))}
    assert {name: count for name, count in words.items() if count > 800} == {}


def options(page):
    """The options each section names: how they are laid out is the terminal library's business."""
    sections = re.findall(r"## (zicl[ a-z]*)\n(.*?)(?=\n## |\Z)", page, re.DOTALL)
    return {title: sorted(set(re.findall(r"--[a-z][a-z-]+", text))) for title, text in sections}


def test_the_help_in_the_docs_is_the_programs():
    """``python docs/make_cli.py`` writes the page anew."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        page = importlib.import_module("make_cli").page()
    finally:
        sys.path.pop(0)
    written = options(PAGES["reference/cli.md"])
    assert written == options(page)
    assert "--labels" in written["zicl classify"]


def test_the_task_and_the_experiment_of_the_docs_are_read(tmp_path):
    from zicl.lab.evaluate.experiment import read_experiment
    from zicl.lab.evaluate.tasks import read_tasks

    task, experiment = re.findall(r"```toml\n(.*?)```", PAGES["how-to/evaluate.md"], re.DOTALL)[:2]
    (tmp_path / "tasks.toml").write_text(task, encoding="utf-8")
    (tmp_path / "experiment.toml").write_text(experiment, encoding="utf-8")
    assert read_tasks(tmp_path / "tasks.toml")["Tickets"].covered
    assert read_experiment(tmp_path / "experiment.toml", {}).tasks == ("Tickets",)


SOURCES = {m.name: m.module_finder.find_spec(m.name) for m in pkgutil.walk_packages(zicl.__path__, "zicl.")}
MODULES = {name: Path(spec.origin).read_text(encoding="utf-8") for name, spec in SOURCES.items()}
# Imported by the tests of the cluster alone, which install Ray (make test-cluster).
WITH_RAY = {name for name, text in MODULES.items() if re.search(r"^(import|from) ray", text, re.MULTILINE)}


@pytest.mark.parametrize("name", sorted(MODULES.keys() - WITH_RAY))
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_no_example_needs_ray():
    assert WITH_RAY
    assert not [name for name in WITH_RAY if ">>>" in MODULES[name]]


@pytest.mark.parametrize(
    "name", ["make_results", "make_beyond", "make_claims", "make_labels", "make_options", "make_studies"]
)
def test_pages_with_results_are_those_of_the_stored_rows(name, monkeypatch):
    """``python docs/make_….py`` writes them anew."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    made = importlib.import_module(name)
    for page in getattr(made, "PAGES", None) or [made.PAGE]:
        text = page.read_text(encoding="utf-8")
        assert made.page(text) == text


def test_every_study_has_its_page():
    from zicl.lab.study.registry import NAMES

    assert all(f"<!-- {name}: begin -->" in PAGES[f"results/studies/{name}.md"] for name in NAMES)


def test_the_tree_of_the_architecture_is_that_of_the_modules():
    page = ROOT / "docs/explanation/architecture.md"
    namespace = runpy.run_path(str(ROOT / "docs/make_architecture.py"))
    folders = {str(path.parent.relative_to(ROOT / "src/zicl")) for path in (ROOT / "src/zicl").rglob("__init__.py")}
    assert {folder or "." for folder in namespace["FOLDERS"]} == folders
    assert page.read_text(encoding="utf-8") == namespace["page"](page.read_text(encoding="utf-8"))
