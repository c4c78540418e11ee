"""Run the notebooks from top to bottom and store what they show: ``python notebooks/run.py [NAME …]``.

Each runs in a temporary folder beside copies of the tables, so that nothing else is written here. The tests run them
with the same function.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
# One thread: with two, small operations take many times as long while another process uses a core.
_ENVIRONMENT = {"ZICL_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@contextmanager
def _environment() -> Iterator[None]:
    """Set the variables that kernels inherit, with this interpreter's programs first in the path."""
    before = dict(os.environ)
    os.environ.update(_ENVIRONMENT, PATH=f"{Path(sys.executable).parent}{os.pathsep}{before['PATH']}")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook as it is after a run in a folder; a cell that fails is an error."""
    for table in path.parent.glob("*.csv"):
        shutil.copy(table, folder)
    notebook = nbformat.read(path, as_version=4)
    with _environment():
        client = NotebookClient(
            notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        client.execute()
    return _stripped(notebook)


def _stripped(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave out what differs from run to run or from machine to machine: times, versions, the kernel."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Join what a cell prints, which arrives in pieces that differ from run to run."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        output.get("metadata", {}).clear()
        last = joined[-1] if joined else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def main() -> None:
    """Run the notebooks named, or all, and store them."""
    for name in sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.ipynb")):
        path = HERE / f"{name}.ipynb"
        with tempfile.TemporaryDirectory() as folder:
            notebook = run(path, Path(folder))
            assert folder not in nbformat.writes(notebook), f"{name}: an output holds a path of this machine"
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
