"""What is public, and that asking for help costs nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zicl
from zicl import exceptions
from zicl._util.random import rng, stable_hash

ROOT = Path(__file__).parent.parent


def test_public_names():
    assert sorted(zicl.__all__) == [
        "Calibration", "CandidateFilter", "Corpus", "DistilledClassifier", "Explanation", "Index", "Label", "Labelling",
        "Labels", "LanguageModel", "Pair", "Pile", "Prediction", "PromptSettings", "Query", "RemoteSettings",
        "Retrieval", "Retrieved", "Retriever", "Scoring", "ZICLClassifier", "ZICLError", "__version__", "build_corpus",
        "build_index", "distill", "export", "find_sources", "load", "load_encoder", "load_lm", "suggest",
    ]  # fmt: skip
    for name in zicl.__all__:
        assert getattr(zicl, name) is not None
    with pytest.raises(AttributeError):
        _ = zicl.nothing


def test_docs_import_public_names_only():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    imports = [line for page in pages for line in re.findall(r"^from zicl\.\S* import .*", page.read_text(), re.M)]
    assert imports == []


def test_the_exception_tree_is_documented():
    for name, kind in vars(exceptions).items():
        if isinstance(kind, type) and issubclass(kind, exceptions.ZICLError):
            assert name in exceptions.__doc__


@pytest.mark.parametrize("command", [["--help"], ["classify", "--help"], ["--version"], ["models", "list"]])
def test_help_imports_nothing_heavy(command):
    code = (
        "import sys\nfrom zicl.cli import main\nsys.argv = ['zicl', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'faiss', 'sklearn', 'pyarrow', 'sentence_transformers'} & set(sys.modules)\n"
        "sys.stderr.write(repr(sorted(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    assert done.stderr == "[]"
    assert done.stdout


@given(st.integers(), st.text(), st.text())
def test_generators_depend_on_every_key_and_on_nothing_else(seed, first, second):
    assert rng(seed, first).integers(1 << 60) == rng(seed, first).integers(1 << 60)
    if first != second:
        assert stable_hash(seed, first) != stable_hash(seed, second)
        assert stable_hash(first, second) != stable_hash(second, first)
    assert stable_hash(first, second) != stable_hash(first + second)


def test_hashes_are_the_same_everywhere():
    assert stable_hash(0, "lamp") == 0xA110D4024E98CE5D78587BB69C4F951B
    assert int(rng(0, "lamp").integers(1 << 40)) == 702142371926
