"""The studies in the documentation: their summaries are those of the stored rows."""

import json
from pathlib import Path

import pytest

from zicl.lab.evaluate.store import MANIFEST
from zicl.lab.report.collect import collect
from zicl.lab.report.study_summary import SummaryFigure
from zicl.lab.study.outcome import StudyOutcome
from zicl.lab.study.registry import NAMES, STUDIES
from zicl.lab.study.settings import read_settings

ROOT = Path(__file__).parents[3] / "benchmarks"
STORED = ROOT / "results" / "studies"


@pytest.fixture(autouse=True)
def keep_stored_map(monkeypatch):
    """Do not draw over the stored map."""
    monkeypatch.setattr("zicl.lab.study.heads.draw_head_map", lambda *_, **__: [])


@pytest.mark.parametrize("name", NAMES)
def test_findings_and_figures_are_those_of_the_rows(name):
    """``python docs/make_studies.py`` writes them."""
    folder, study = STORED / name, STUDIES.get(name)
    parts = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    options = read_settings(ROOT / "studies.toml", {}).options(study)
    summary = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    outcome = StudyOutcome(collect(parts), folder)
    assert study.all_findings(options, outcome) == summary["findings"]
    figures = [each for each in study.figures(options, outcome) if isinstance(each, SummaryFigure) or each.panels]
    assert [(each.title, each.alt) for each in figures] == [(each["title"], each["alt"]) for each in summary["figures"]]
    for each in summary["figures"]:
        assert (folder / each["file"]).is_file()
        assert (folder / each["file"]).with_suffix(".png").is_file()
