"""Errors of the library name settings as in Python; the command line spells them as options."""

import ast
import re
from pathlib import Path

import pytest

import zicl
from zicl.cli.spelling import as_options

SOURCES = sorted(path for path in Path(zicl.__file__).parent.rglob("*.py") if path.name != "spelling.py")
SETTING = re.compile(r"`[a-z_.]+(?:=[^`]*)?`")


def hints():
    """All hints in the code, with what is computed in them left out."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg == "hint":
                        parts = [n.value for n in ast.walk(keyword.value) if isinstance(n, ast.Constant)]
                        yield path.name, "".join(part for part in parts if isinstance(part, str))


def test_every_setting_in_a_hint_has_an_option():
    named = [(where, setting) for where, hint in hints() for setting in SETTING.findall(hint)]
    assert len(named) > 20
    assert not [(where, setting) for where, setting in named if "`" in as_options(setting)]


def test_no_hint_names_a_setting_as_python_only():
    # What is spelled for Python belongs in backticks.
    bare = re.compile(r"(?<![`\w.])(?:method|experts|encoder|lm|index|calibrate|labelling\.\w+|scoring\.\w+) ?= ?['(…]")
    assert not [(where, hint) for where, hint in hints() if bare.search(hint) and not where.startswith("tasks")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--labels", "3", "--file"], "--method no-demos"),
        (["--labels", "a,b", "--multi", "--experts", "direct", "--file"], "--experts encoder, or leave out --multi"),
        (["--labels", "a,b", "--calibrate", "batch", "--experts", "direct"], "(--file, or --fit FILE)"),
    ],
)
def test_an_error_of_the_command_line_has_options(run, tmp_path, given, expected):
    (tmp_path / "texts.csv").write_text("id,text\n1,A lamp.\n2,A tram.\n")
    files = [tmp_path / "texts.csv"] if given[-1] == "--file" else ["A lamp."]
    code, _, err = run("classify", *given, *files)
    assert code == 2
    assert "`" not in err
    assert expected in err
