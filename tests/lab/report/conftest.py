"""A results folder with every kind of method, two inferences and three tasks."""

import pytest

from tests.lab.report.folder import CHANCES, make_rows, write_folder


@pytest.fixture
def folder(tmp_path):
    rows = make_rows(CHANCES, examples=60)
    rows += make_rows({"no-demos": 0.55, "z-icl": 0.7}, examples=60, inference="direct", template="none")
    return write_folder(tmp_path / "results", rows, notes={"AGNews": "stand-in: made up."})
