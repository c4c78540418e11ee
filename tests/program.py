"""Calling the program in this process."""

import io
import sys

import pytest

from zicl.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Call ``zicl`` in this process: (exit code, standard output, standard error)."""

    def call(*arguments, stdin=None):
        monkeypatch.setattr(sys, "argv", ["zicl", *map(str, arguments)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = 0
        try:
            main()
        except SystemExit as ending:
            code = ending.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call
