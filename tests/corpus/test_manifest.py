"""Manifests of strangers: whatever is wrong in one is named, and nothing outside the folder is looked at."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.retrieve.conftest import write
from zicl.corpus.builder import build_corpus
from zicl.corpus.manifest import read_manifest
from zicl.corpus.sources import find_sources
from zicl.corpus.store import Corpus
from zicl.corpus.update import remove_domains
from zicl.exceptions import ZICLError

TEXTS = {"a": ["One lamp. It is lit.", "Two lamps."], "b": ["A slow train. It is late.", "One lamp."]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("manifest")
    return build_corpus(find_sources([], write(place, TEXTS)), place / "c.zicl").path


@pytest.fixture
def manifest(folder):
    path = folder / "manifest.json"
    good = path.read_text()
    yield json.loads(good)
    path.write_text(good)


def error_of(folder, manifest, **options):
    (folder / "manifest.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
    with pytest.raises(ZICLError) as error:
        Corpus.open(folder, **options)
    return str(error.value)


def test_a_good_one_is_read_as_it_is(folder, manifest):
    assert read_manifest(folder) == manifest
    assert Corpus.open(folder, verify=True).sentences == 6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m | {"domains": None}, "domains: it is not a list"),
        (lambda m: m | {"domains": []}, "domains: too few"),
        (lambda m: m | {"sentences": "abc"}, "sentences: it is not a whole number"),
        (lambda m: m | {"sentences": 999_999}, "sentences is 999999, and the domains have 6"),
        (lambda m: m | {"files": {**m["files"], "../../x": m["files"]["texts.arrow"]}}, "and no others"),
        (lambda m: m | {"files": {"texts.arrow": m["files"]["texts.arrow"]}}, "and no others"),
        (lambda m: m | {"domains": [m["domains"][0], m["domains"][0]]}, "is named twice"),
        (lambda m: m | {"sources": m["sources"][::-1]}, "not in the order"),
        (lambda m: m | {"sources": [{**m["sources"][0], "domain": "c"}]}, "the domain 'c'"),
        (lambda m: [], "is damaged"),
        (lambda m: "abc", "is damaged"),
        (lambda m: "[" * 200_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_named(folder, manifest, change, said):
    assert said in error_of(folder, change(manifest))


def test_counts_are_compared_with_the_sentences_when_asked(folder, manifest):
    first, second = manifest["domains"]
    wrong = {"domains": [{**first, "sentences": first["sentences"] + 5}, second], "sentences": 6 + 5}
    said = error_of(folder, manifest | wrong, verify=True)
    assert "says that 'a' has 8 sentences, and there are 3" in said


def test_a_corpus_with_a_removed_domain_is_consistent(tmp_path):
    """Sentences of the domain that is left are counted, also those that stood in for equal ones."""
    built = build_corpus(find_sources([], write(tmp_path, TEXTS)), tmp_path / "c.zicl")
    remove_domains(built.path, ["a"])
    assert Corpus.open(built.path, verify=True).domains == ["b"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(
    key=st.sampled_from(["domains", "sources", "files", "options", "documents", "sentences", "format"]),
    value=json_values,
)
def test_no_value_of_any_key_ends_in_a_traceback(folder, key, value):
    path = folder / "manifest.json"
    good = path.read_text()
    try:
        path.write_text(json.dumps({**json.loads(good), key: value}))
        Corpus.open(folder)
    except ZICLError:
        pass
    finally:
        path.write_text(good)
