"""The report: all numbers as JSON, independent of the order of rows, and without any rows."""

import json

import pytest

from tests.lab.report.folder import CHANCES, make_rows, write_folder
from zicl.lab.report.build import make_report


def test_json_has_everything(folder):
    found = json.loads(make_report([folder]).render("json"))
    cell = next(
        c for c in found["cells"] if c["method"] == "z-icl" and c["task"] == "CR" and c["inference"] == "channel"
    )
    assert cell["accuracy"]["seeds"].keys() == {"13", "21"}
    assert cell["examples"] == {"13": 60, "21": 60}
    assert sum(cell["shares"].values()) == pytest.approx(100)
    assert cell["macro-f1"]["mean"] > 50
    difference = next(d for d in found["differences"] if d["task"] is None)
    assert {"model", "template", "inference", "method", "baseline", "estimate", "low", "high", "p", "p_holm"} <= set(
        difference
    )
    assert found["missing"] == 0


def test_the_same_folder_gives_the_same_report_whatever_the_order_of_its_rows(tmp_path):
    rows = make_rows(CHANCES, examples=20)
    first = make_report([write_folder(tmp_path / "a", rows)])
    second = make_report([write_folder(tmp_path / "b", rows[::-1], files=3)])
    assert first.render("markdown") == second.render("markdown")
    assert sorted(map(repr, first.differences)) == sorted(map(repr, second.differences))


def test_empty_results_make_an_empty_report(tmp_path):
    folder = write_folder(tmp_path / "r", make_rows({"no-demos": 0.5, "z-icl": 0.8}, examples=5))
    for file in (folder / "rows").iterdir():
        file.unlink()
    report = make_report([folder])
    assert "| Z-icl | – | – | – |" in report.render("markdown")
    for kind in ("csv", "latex", "json"):
        assert report.render(kind)
