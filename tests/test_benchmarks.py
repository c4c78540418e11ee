"""What the scripts of benchmarks and docs import from zicl is there, and a measurement does what the command does."""

import ast
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import BagEncoder
from tests.readme import ROOT
from zicl import ZICLClassifier
from zicl.inputs.tables import InputRow

SCRIPTS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("docs/*.py")])


def imported(script):
    """Yield module and name of every import from zicl, also of those inside functions."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "zicl":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.split(".")[0] == "zicl")


def is_there(module, name):
    spec = find_spec(module)
    if spec is None:
        return False
    source = Path(spec.origin).read_text(encoding="utf-8")
    if re.search(r"^(import|from) ray", source, re.MULTILINE):
        # Only the tests of the cluster install Ray.
        return re.search(rf"^(def|class) {name}\b", source, re.MULTILINE)
    return name is None or hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.stem}")
def test_what_a_script_imports_from_zicl_is_there(script):
    assert not [f"{module}.{name}" for module, name in imported(script) if not is_there(module, name)]


def test_the_scripts_import_from_zicl():
    assert sum(len(list(imported(script))) for script in SCRIPTS) > 50


def test_rows_are_labelled_and_written_as_by_the_command(tmp_path, monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spread = importlib.import_module("spread")
    monkeypatch.setattr(spread, "LABELLED", 2)
    rows = [InputRow(str(n), f"the soup is hot {n}", {"id": str(n), "text": f"the soup is hot {n}"}) for n in range(5)]
    fitted = ZICLClassifier(labels=["soup", "train"], encoder=BagEncoder(), method="encoder").fit()
    pool = spread.ReadyPredictions(fitted.classify([row.text for row in rows[:2]]))
    chunks = list(spread.label_and_write(fitted, rows, tmp_path / "labels.csv", pool))
    assert [[line.id for line in chunk] for chunk in chunks] == [["0", "1"], ["2", "3"], ["4"]]
    header, *lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert header == "id,text,predicted,probability,margin"
    assert len(lines) == 5
