"""The studies that the documentation shows: what they tell is what their stored rows say."""

import json
from pathlib import Path

import pytest

from zicl.evaluate.store import MANIFEST
from zicl.report.collect import collect
from zicl.study.outcome import Outcome
from zicl.study.settings import read_settings
from zicl.study.studies import NAMES, STUDIES

ROOT = Path(__file__).parents[2] / "benchmarks"
STORED = ROOT / "results" / "studies"


@pytest.mark.parametrize("name", [name for name in NAMES if (STORED / name / "study.json").is_file()])
def test_findings_are_those_of_the_rows(name):
    """``zicl study NAME`` with benchmarks/studies.toml tells them anew."""
    folder, study = STORED / name, STUDIES.get(name)
    parts = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    options = read_settings(ROOT / "studies.toml", {}).options(study)
    told = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert list(study.findings(options, Outcome(collect(parts), folder))) == told["findings"]
