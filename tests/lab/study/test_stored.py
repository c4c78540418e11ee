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
# Stored studies and their settings: on the small corpus, and on the large one of the claims.
FOLDERS = {"studies": "studies.toml", "claims": "claims-studies.toml"}
STORED = [(folder, name) for folder in FOLDERS for name in NAMES if (ROOT / "results" / folder / name).is_dir()]


@pytest.fixture(autouse=True)
def keep_stored_map(monkeypatch):
    """Do not draw over the stored map."""
    monkeypatch.setattr("zicl.lab.study.heads.draw_head_map", lambda *_, **__: [])


def test_all_studies_of_the_small_corpus_are_stored():
    assert {name for folder, name in STORED if folder == "studies"} == set(NAMES) - {"closeness"}


@pytest.mark.parametrize(("where", "name"), STORED)
def test_findings_and_figures_are_those_of_the_rows(where, name):
    """``python docs/make_studies.py`` writes them."""
    folder, study = ROOT / "results" / where / name, STUDIES.get(name)
    parts = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    options = read_settings(ROOT / FOLDERS[where], {}).options(study)
    summary = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    outcome = StudyOutcome(collect(parts), folder)
    assert study.all_findings(options, outcome) == summary["findings"]
    figures = [each for each in study.figures(options, outcome) if isinstance(each, SummaryFigure) or each.panels]
    assert [(each.title, each.alt) for each in figures] == [(each["title"], each["alt"]) for each in summary["figures"]]
    for each in summary["figures"]:
        assert (folder / each["file"]).is_file()
        assert (folder / each["file"]).with_suffix(".png").is_file()
