"""Errors of the library name settings as in Python; the command line spells them as options."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

import zicl
from zicl.cli.app import app
from zicl.cli.spelling import _OPTIONS, as_options, options_of

SOURCES = sorted(path for path in Path(zicl.__file__).parent.rglob("*.py") if path.name != "spelling.py")
SETTING = re.compile(r"`[a-z_.]+(?:=[^`]*)?`")
OPTION = re.compile(r"(?<![\w`-])--[a-z][a-z-]*")


def commands(command, *words):
    """The words of every command, with its options."""
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, *words, name)
    if not hasattr(command, "commands"):
        yield " ".join(words), {name for parameter in command.params for name in parameter.opts}


COMMANDS = dict(commands(get_command(app)))
# Which commands print what a part of the package says; all others may print it in any command.
PRINTED_BY = {
    "apps/check": ["check sample", "check score", "classify"],
    "apps/cluster": ["classify", "corpus build", "evaluate"],
    "apps/serve": ["serve"],
    "apps/suggest": ["suggest", "classify"],
    "apps/export": ["export", "classify"],
    "corpus": ["corpus build", "corpus add"],
    "inputs": ["classify", "corpus build"],
    "lab/evaluate": ["evaluate", "verify", "study", "merge", "report"],
    "lab/heads": ["study"],
    "lab/report": ["report", "evaluate"],
    "lab/study": ["study"],
    "prompt": ["classify", "labels suggest"],
    "retrieve": ["corpus build", "index build"],
    "score": ["classify"],
    "cli/check.py": ["check sample", "check score"],
    "cli/classify.py": ["classify"],
    "cli/corpus.py": ["corpus build", "corpus add", "corpus show", "corpus remove"],
    "cli/distill.py": ["distill"],
    "cli/evaluate.py": ["evaluate", "verify", "merge", "tasks"],
    "cli/experiment_options.py": ["evaluate"],
    "cli/index.py": ["index build", "index tune"],
    "cli/inspect.py": ["explain", "prompt", "retrieve"],
    "cli/report.py": ["report"],
    "cli/serve.py": ["serve"],
    "cli/study.py": ["study"],
    "cli/text_map.py": ["map"],
}
# Options of pip, npm, Ray, vLLM and llama.cpp that hints and calls name.
OTHERS = {
    "--version", "--silent", "--ignore-scripts", "--pack-destination", "--quiet", "--no-deps", "--only-binary",
    "--no-cache-dir", "--dest", "--head", "--disable-usage-stats", "--logprobs-mode", "--max-model-len", "--model",
    "--logits", "--help",
}  # fmt: skip


def texts(path):
    """The texts of a module with their lines, but docstrings and what declares options."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("Option", "Argument"):
            left_out |= set(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.lineno, node.value


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


def test_every_option_that_is_named_is_one_of_a_command_that_names_it():
    package, wrong = Path(zicl.__file__).parent, []
    for path in SOURCES:
        name = path.relative_to(package).as_posix()
        if name == "cli/help.py":
            # It knows the options of old.
            continue
        printed = next((found for part, found in PRINTED_BY.items() if name.startswith(part)), list(COMMANDS))
        known = set().union(*(COMMANDS[each] for each in printed)) | OTHERS
        for line, text in texts(path):
            # A hint may name another command, with its options.
            called = [options_of(get_command(app), words.split()) for words in re.findall(r"zicl ([a-z ]+)", text)]
            there = known.union(*called)
            wrong += [(name, line, option) for option in OPTION.findall(text) if option not in there]
    assert wrong == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_only_options_that_it_has(command):
    known = options_of(get_command(app), [*command.split(), "some text"])
    assert known == COMMANDS[command]
    for name in (*_OPTIONS, "retrieval.share", "labelling.words"):
        spelled = as_options(f"`{name}` `{name}='x'`", known)
        assert "`" not in spelled
        assert set(OPTION.findall(spelled)) <= known


def test_a_moved_corpus_and_encoder_are_named_by_options_of_export():
    assert {"--corpus", "--encoder"} <= COMMANDS["export"]
    assert as_options("`index=…` or `encoder=…`", COMMANDS["export"]) == "--corpus … or --encoder …"
    assert as_options("give more (`fit`)", COMMANDS["serve"]) == "give more (--fit FILE)"
