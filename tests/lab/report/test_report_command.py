"""zicl report: standard output, files written, and errors."""

import json

import pytest
import typer
from typer.testing import CliRunner

from tests.lab.report.folder import make_rows, write_folder
from zicl.cli.report import report
from zicl.exceptions import UsageError, ZICLError

app = typer.Typer()
app.command()(report)


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "results", make_rows({"no-demos": 0.5, "z-icl": 0.8, "icl-gold": 0.9}, examples=20))


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def test_markdown_is_printed(folder):
    done = run(folder)
    assert done.exit_code == 0
    places = [done.stdout.index(title) for title in ("**Accuracy", "**Difference in accuracy to no-demos", "**Share")]
    assert places == sorted(places)


def test_formats(folder):
    assert json.loads(run(folder, "--json").stdout) == json.loads(run(folder, "--format", "json").stdout)
    assert run(folder, "--format", "csv").stdout.startswith("section,method,")
    assert r"\toprule" in run(folder, "--format", "latex", "--compare", "paper").stdout
    assert "**Macro-F1" in run(folder, "--metric", "macro-f1").stdout
    assert run(folder, "--format", "word").exit_code == 2


def test_a_folder_gets_all_four_formats_and_a_file_that_of_its_suffix(folder, tmp_path):
    done = run(folder, "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "report.csv",
        "report.json",
        "report.md",
        "report.tex",
    ]
    run(folder, "-o", tmp_path / "one.tex")
    assert (tmp_path / "one.tex").read_text() == (tmp_path / "out" / "report.tex").read_text()
    run(folder, "-o", tmp_path / "table.txt", "--format", "csv")
    assert (tmp_path / "table.txt").read_text() == (tmp_path / "out" / "report.csv").read_text()


@pytest.mark.parametrize("more", [[], ["--html", "page.html"]])
def test_a_labelled_table_is_no_results_folder(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.csv").write_text("id,text,predicted\n")
    done = run("out.csv", *more)
    assert isinstance(done.exception, ZICLError)
    assert "out.csv is a file, not a results folder" in str(done.exception)
    assert "zicl check sample" in done.exception.hint


def test_differences_to_chosen_methods(folder):
    chosen = json.loads(run(folder, "--against", "z-icl, no-demos", "--json").stdout)["differences"]
    assert {each["baseline"] for each in chosen} == {"z-icl", "no-demos"}
    usual = json.loads(run(folder, "--json").stdout)["differences"]
    forward, back = (
        next(e for e in found if (e["method"], e["baseline"], e["task"]) == (method, baseline, "CR"))
        for found, method, baseline in ((chosen, "no-demos", "z-icl"), (usual, "z-icl", "no-demos"))
    )
    assert forward["estimate"] == -back["estimate"]
    assert "**Difference in accuracy to z-icl" in run(folder, "--against", "z-icl").stdout
    twice = json.loads(run(folder, "--against", "z-icl,no-demos,z-icl", "--json").stdout)["differences"]
    assert twice == chosen
    assert "did you mean 'z-icl'" in str(run(folder, "--against", "z-icll").exception)


def test_a_method_without_a_prompt_can_be_the_baseline(tmp_path):
    rows = make_rows({"majority": 0.5, "z-icl": 0.8}, examples=20)
    found = json.loads(run(write_folder(tmp_path / "r", rows), "--against", "majority", "--json").stdout)["differences"]
    assert {(each["method"], each["baseline"], each["inference"]) for each in found} == {
        ("z-icl", "majority", "channel")
    }


def test_impossible_options_are_errors(folder, tmp_path):
    assert isinstance(run(folder, "-o", tmp_path / "one.docx").exception, UsageError)
    assert isinstance(run(folder, "--json", "--format", "csv").exception, UsageError)
    assert isinstance(run(tmp_path / "nothing").exception, ZICLError)
    assert isinstance(run(folder, "--compare", "paper", "--metric", "macro-f1").exception, UsageError)


def test_a_file_is_no_results_folder(tmp_path):
    (tmp_path / "out.csv").write_text("id,text\n")
    assert f"{tmp_path / 'out.csv'} is a file, not a results folder" in str(run(tmp_path / "out.csv").exception)


def test_the_error_for_a_folder_of_studies_says_what_to_give_instead(folder, tmp_path):
    part = tmp_path / "studies" / "labels" / "words"
    part.parent.mkdir(parents=True)
    folder.rename(part)
    message = str(run(tmp_path / "studies").exception)
    assert "not a results folder" in message
    assert str(part) in message
    assert f"zicl report {tmp_path / 'studies'} --html" in message


def test_calibration_shares_and_figures(folder, tmp_path):
    done = run(folder, "--calibrate", "batch", "--shares", "--figures", tmp_path / "figures")
    assert done.exit_code == 0
    assert "(batch-calibrated)" in done.stdout
    assert "where one label has 90 %" in done.stdout
    assert len(list((tmp_path / "figures").iterdir())) == 4
    assert f"4 figures written to {tmp_path / 'figures'}" in done.stderr
    assert "calibrated" not in run(folder).stdout
    assert run(folder, "--calibrate", "domain").exit_code == 2
    (tmp_path / "file").write_text("")
    assert isinstance(run(folder, "--figures", tmp_path / "file").exception, UsageError)
