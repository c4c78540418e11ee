"""What the scripts of benchmarks and docs import from zicl is there; measurements measure, and checks check."""

import ast
import importlib
import json
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


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of benchmarks."""
    pytest.importorskip("psutil")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


def test_rows_are_labelled_and_written_as_by_the_command(script, tmp_path, monkeypatch):
    spread = script("spread")
    monkeypatch.setattr(spread, "LABELLED", 2)
    rows = [InputRow(str(n), f"the soup is hot {n}", {"id": str(n), "text": f"the soup is hot {n}"}) for n in range(5)]
    fitted = ZICLClassifier(labels=["soup", "train"], encoder=BagEncoder(), method="encoder").fit()
    pool = spread.ReadyPredictions(fitted.classify([row.text for row in rows[:2]]))
    chunks = list(spread.label_and_write(fitted, rows, tmp_path / "labels.csv", pool))
    assert [[line.id for line in chunk] for chunk in chunks] == [["0", "1"], ["2", "3"], ["4"]]
    header, *lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert header == "id,text,predicted,probability,margin"
    assert len(lines) == 5


RIGHT = {"soup": {"a": 0.7, "b": 0.2, "c": 0.1}}


def test_the_plan_counts_the_groups_that_are_encoded_and_asked_about(script):
    from zicl.score import fit

    plan = script("plan")
    assert (plan.ENCODED, plan.ASKED) == (fit._ENCODED, fit._ASKED)


@pytest.mark.parametrize(
    ("probabilities", "top", "said"),
    [
        ({"a": 0.7, "b": 0.2, "c": 0.1}, None, None),
        ({"a": 0.7}, 1, None),
        ({}, None, "instead of"),
        ({"a": 0.7, "b": 0.2}, None, "instead of"),
        ({"a": 0.7, "b": 0.2}, 1, "instead of"),
        ({"a": 0.7, "b": 0.2, "d": 0.1}, None, "KeyError"),
        ({"a": 0.6, "b": 0.2, "c": 0.2}, None, "instead of"),
        ({"a": float("nan"), "b": 0.2, "c": 0.1}, None, "instead of"),
        ({"b": 0.2}, 1, "instead of"),
        (None, None, "TypeError"),
    ],
)
def test_the_soak_compares_every_label(script, probabilities, top, said):
    results = [{"index": 0, "probabilities": probabilities}]
    found = script("soak_visitor").compare(lambda: results, ["soup"], RIGHT, top)
    assert found is None if said is None else said in found


@pytest.mark.parametrize("results", [[], [{"index": 0}] * 2, [{}], [[]], None])
def test_the_soak_notices_what_is_lost_or_no_result(script, results):
    assert script("soak_visitor").compare(lambda: results, ["soup"], RIGHT)


@pytest.mark.parametrize(
    "change", [{"wrong": 1}, {"left_in_queue": 2.0}, {"left_in_queue": None}, {"exit_status": -9}, {"complete": False}]
)
def test_the_soak_fails_for_all_that_it_looks_at(script, change):
    good = {"wrong": 0, "left_in_queue": 0.0, "exit_status": 0, "complete": True}
    assert script("soak").passed(good)
    assert not script("soak").passed({**good, **change})


FIT = {
    "fit": "0" * 32,
    "weight": 0.5,
    "warnings": [],
    "settings": {"pile": 2, "labels": [{"name": "a"}, {"name": "b"}]},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"weight": 0.6}, "a weight of 0.6"),
        ({"weight": float("nan")}, "a weight of nan"),
        ({"settings": {**FIT["settings"], "pile": 1}}, "1 of 2 texts"),
        ({"settings": {**FIT["settings"], "labels": [{"name": "b"}, {"name": "a"}]}}, "learned"),
    ],
)
def test_the_soak_compares_what_was_learned(script, change, said):
    known = script("soak_known").KnownFit(["one", "two"], ["a", "b"], 0.5, {})
    progress = {"stage": "encoding", "done": 0, "total": 2}
    for lines in ([{**FIT, **change}], [progress, {**FIT, **change}]):
        found = script("soak_visitor").wrong_fit("\n".join(map(json.dumps, lines)).encode(), known)
        assert found is None if said is None else said in found


def test_the_soak_notices_a_fit_that_ends_with_a_problem(script):
    known = script("soak_known").KnownFit(["one", "two"], ["a", "b"], 0.5, {})
    assert "overdue" in script("soak_visitor").wrong_fit(b'{"type": "overdue", "status": 503}', known)
    assert script("soak_visitor").wrong_fit(json.dumps({"sta": 1}).encode() + b"\n" + json.dumps(FIT).encode(), known)


@pytest.mark.parametrize(
    ("points", "outlying", "said"),
    [
        ([[0, 1], [1, 0]], [False, True], None),
        ([[0, 1], [1, 0.01]], [False, True], "0.01 away"),
        ([[0, 1], [1, float("nan")]], [False, True], "nan away"),
        ([[0, 1]], [False, True], "for 2 texts"),
        ([[0, 1], [1, 0]], [False, False], "outlying"),
    ],
)
def test_the_soak_compares_every_point_of_a_map(script, points, outlying, said):
    known = script("soak_known").KnownMap(["one", "two"], [[0, 1], [1, 0]], [False, True])
    answer = json.dumps({"points": points, "outlying": outlying, "layout": "pca"}).encode()
    found = script("soak_visitor").wrong_map(answer, known)
    assert found is None if said is None else said in found


@pytest.mark.parametrize(
    ("change", "headers", "right"),
    [
        ({}, {"Retry-After": "10"}, True),
        ({}, {}, False),
        ({"type": "urn:zicl:problem:overdue"}, {"Retry-After": "10"}, False),
        ({"expected": "as many free places as the request has texts"}, {"Retry-After": "10"}, False),
    ],
)
def test_the_soak_counts_the_refusal_of_one_fit_too_many_only(script, change, headers, right):
    problem = {"type": "urn:zicl:problem:busy", "expected": "at most 4 at once", **change}
    assert (script("soak_visitor").wrong_refusal(json.dumps(problem).encode(), headers) is None) == right


def test_the_soak_expects_as_many_fits_at_once_as_the_server_admits(script):
    from zicl.apps.serve.configurations import _FITS
    from zicl.apps.serve.long_jobs import _GROUP
    from zicl.apps.serve.queue import MOST_LONG_JOBS

    known = script("soak_known")
    assert script("soak_visitor").ADMITTED == MOST_LONG_JOBS < known.CROWD
    assert known.GROUP == _GROUP
    # Some are gone when they are asked about.
    assert known.FITS > _FITS
