"""The notebooks run from top to bottom, and say what their stored outputs say."""

import json
import re
import runpy

import pytest

from tests.readme import ROOT

FOLDER = ROOT / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
# A row or two may fall on the other side where another processor rounds differently.
POINTS = 2.5


def stored(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def printed(notebook):
    """What the cells print or show as a table, in order."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    texts = [output.get("text") or output.get("data", {}).get("text/markdown", "") for output in outputs]
    return "\n".join("".join(text) for text in texts)


def numbers(notebook):
    """The percentages of a notebook, and the cells of a report's main table."""
    text = printed(notebook)
    found = [*re.findall(r"(\d+\.\d+) ?%", text), *re.findall(r"\| \**(\d+\.\d)\**(?: ±.*?)? \|", text)]
    return [float(number) for number in found]


@pytest.mark.notebooks
@pytest.mark.parametrize("name", NAMES)
def test_a_new_run_says_what_is_stored(name, tmp_path):
    run = runpy.run_path(str(FOLDER / "run.py"))["run"]
    expected = numbers(stored(name))
    assert len(expected) >= 3
    assert numbers(run(FOLDER / f"{name}.ipynb", tmp_path)) == pytest.approx(expected, abs=POINTS)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_complete_and_hold_no_path_of_a_machine(name):
    notebook = stored(name)
    for number, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), start=1):
        assert cell["execution_count"] == number
        assert "error" not in [output["output_type"] for output in cell["outputs"]]
    assert not re.search(r"/(tmp|home|root|work|Users)/", printed(notebook))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_names_files_that_exist(name):
    text = "\n".join("".join(cell["source"]) for cell in stored(name)["cells"] if cell["cell_type"] == "markdown")
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (FOLDER / target).exists(), target
