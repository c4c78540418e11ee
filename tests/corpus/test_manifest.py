"""Manifests of strangers: whatever is wrong in one is named, and nothing outside the folder is looked at."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.retrieve.conftest import write
from zicl.corpus.builder import build_corpus
from zicl.corpus.manifest import read_manifest
from zicl.corpus.sources import find_sources
from zicl.corpus.store import Corpus
from zicl.corpus.update import remove_domains
from zicl.exceptions import CorpusDamagedError, ZICLError

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
        (lambda m: m | {"paragraphs": 0}, "paragraphs: it is too small, expected at least 1"),
        (lambda m: m | {"sources": []}, "sources: too few"),
        (lambda m: m | {"sources": [{**m["sources"][0], "first_document": 10**30}]}, "it is too large"),
        (lambda m: m | {"options": {"splitter": None}}, "options.splitter: it is not a string"),
        (lambda m: m | {"options": {"splitters": "x"}}, "did you mean 'splitter'"),
        (lambda m: m | {"domains": ["x" * 10_000] * 1000}, "domains.0: it is not an object with keys"),
        (lambda m: json.dumps(m)[:-1] + ', "sentences": 6}', "the key 'sentences' occurs twice"),
        (lambda m: [], "is damaged"),
        (lambda m: "abc", "is damaged"),
        (lambda m: "[" * 200_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_named(folder, manifest, change, said):
    error = error_of(folder, change(manifest))
    assert said in error
    assert len(error) < 2000
    # The file is named once, with one thing to do.
    assert error.count("is damaged") <= 1
    assert error.count("→") == 1


def test_the_number_of_sentences_is_checked_whenever_a_corpus_is_opened(folder, manifest):
    first, second = manifest["domains"]
    wrong = {"domains": [{**first, "sentences": first["sentences"] + 5}, second], "sentences": 6 + 5}
    assert "says that the corpus has 11 sentences, and there are 6" in error_of(folder, manifest | wrong, verify=False)


@pytest.mark.parametrize("key", ["sentences", "paragraphs", "single"])
def test_counts_are_compared_with_the_sentences_when_asked(folder, manifest, key):
    """One more in a domain and one less in another have the same sum."""
    first, second = ({**domain, "paragraphs_read": 9} for domain in manifest["domains"])
    changed = [{**first, key: first[key] + 1}, {**second, key: second[key] - 1}]
    said = error_of(folder, manifest | {"domains": changed}, verify=True)
    assert f"says that 'a' has {first[key] + 1} {key}, and there are {first[key]}" in said


def write_rows(folder, manifest, **columns):
    """Replace columns of the sentences, and make the manifest fit."""
    import pyarrow as pa

    from zicl.corpus.store import SCHEMA, describe_files, map_table

    path = folder / "sentences.arrow"
    table = map_table(path, SCHEMA).to_pydict() | columns
    path.unlink()
    with pa.ipc.new_file(str(path), SCHEMA) as file:
        file.write_table(pa.table(table, schema=SCHEMA))
    return manifest | {"files": describe_files(folder, ("sentences.arrow", "texts.arrow"))}


@pytest.fixture
def copy(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "c.zicl")
    return tmp_path / "c.zicl"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"domain": [0, 0, 0, 1, 1, 7]}, "other domains"),
        ({"document": [0, 0, 1, 2, 2, 99]}, "other documents"),
        ({"position": [3, 1, 0, 0, 1, 0]}, "other positions"),
        ({"text": [None, "b", "c", "d", "e", "f"]}, "empty cells"),
    ],
)
def test_rows_that_name_what_is_not_there_are_refused(copy, columns, said):
    manifest = json.loads((copy / "manifest.json").read_text())
    assert said in error_of(copy, write_rows(copy, manifest, **columns))


def test_texts_that_would_be_read_outside_of_the_file_are_refused(copy):
    """An Arrow file says where each text begins: the numbers are checked before they are followed."""
    from zicl.corpus.store import describe_files

    path, manifest = copy / "sentences.arrow", json.loads((copy / "manifest.json").read_text())
    content = path.read_bytes()
    # The places of the first three texts: 0, 9, 19.
    lengths = b"".join(number.to_bytes(4, "little") for number in (0, 9, 19))
    assert content.count(lengths) == 1
    path.write_bytes(content.replace(lengths, lengths[:4] + (1 << 30).to_bytes(4, "little") + lengths[8:]))
    changed = manifest | {"files": describe_files(copy, ("sentences.arrow", "texts.arrow"))}
    assert "is damaged" in error_of(copy, changed)


@pytest.mark.parametrize("name", ["sentences.arrow", "manifest.json"])
def test_a_link_that_leads_out_of_the_folder_is_not_followed(copy, tmp_path, name):
    (copy / name).rename(tmp_path / "elsewhere")
    (copy / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorpusDamagedError, match="leads out of"):
        Corpus.open(copy)


def test_files_that_are_not_arrow_are_refused(copy):
    from zicl.corpus.store import describe_files

    (copy / "texts.arrow").write_bytes(b"ARROW1\0\0" + b"x" * 100)
    manifest = json.loads((copy / "manifest.json").read_text())
    changed = manifest | {"files": describe_files(copy, ("sentences.arrow", "texts.arrow"))}
    assert "not a whole Arrow file" in error_of(copy, changed)


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
