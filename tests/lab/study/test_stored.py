"""The studies that the documentation shows: what they tell is what their stored rows say."""

import json
from pathlib import Path

import pytest

from zicl.lab.evaluate.store import MANIFEST
from zicl.lab.report.collect import collect
from zicl.lab.report.study_summary import DrawnFigure
from zicl.lab.study.outcome import StudyOutcome
from zicl.lab.study.settings import NAMES, STUDIES, read_settings

ROOT = Path(__file__).parents[3] / "benchmarks"
STORED = ROOT / "results" / "studies"


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """The stored map stays as it is."""
    monkeypatch.setattr("zicl.lab.study.heads.draw_head_map", lambda *_, **__: [])


@pytest.mark.parametrize("name", NAMES)
def test_findings_and_figures_are_those_of_the_rows(name):
    """``zicl study NAME`` with benchmarks/studies.toml tells them anew."""
    folder, study = STORED / name, STUDIES.get(name)
    parts = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    options = read_settings(ROOT / "studies.toml", {}).options(study)
    told = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    outcome = StudyOutcome(collect(parts), folder)
    assert list(study.findings(options, outcome)) == told["findings"]
    figures = [each for each in study.figures(options, outcome) if isinstance(each, DrawnFigure) or each.panels]
    assert [(each.title, each.alt) for each in figures] == [(each["title"], each["alt"]) for each in told["figures"]]
    for each in told["figures"]:
        assert (folder / each["file"]).is_file()
        assert (folder / each["file"]).with_suffix(".png").is_file()
