"""An index: every kind finds what a matrix product finds, also in a subset, and never a row that is left out."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from tests.retrieve.conftest import write
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.exceptions import (
    ConfigError,
    CorpusDamagedError,
    CorpusVersionError,
    EmptyCorpusError,
    EncoderMismatchError,
    IndexMissingError,
    UnknownNameError,
    UsageError,
)
from zicl.retrieve.index import Index, subset
from zicl.retrieve.kinds import COMPRESSED, KINDS
from zicl.retrieve.strategies.base import RETRIEVERS, Query

ALL_KINDS = KINDS[1:]
QUERY = "The soup and the bread were cold."
# The films come first, so that what the trains repeat of them is not indexed a second time.
DOMAINS = {
    "film": [DOCUMENTS[0], DOCUMENTS[3], "The Lamp was out. Nobody spoke."],
    "train": [DOCUMENTS[1], "We waited long. the lamp was out. Then it rained.", "Nobody spoke. The rain went on."],
    "food": [DOCUMENTS[2], DOCUMENTS[6], "We waited long. The plum cake was warm."],
}


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_finds_what_a_matrix_product_finds(tmp_path, kind):
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps({"text": t}) + "\n" for t in DOCUMENTS))
    index = make_index(tmp_path / "c.zicl", path, kind=kind)
    assert index.manifest["kind"] == kind
    texts = [index.sentence(int(row)).text for row in index.indexed()]
    exact = BagEncoder().encode(texts) @ BagEncoder().encode(["cold bread and soup"])[0]
    hits = list(index.nearest("cold bread and soup"))
    close = 1e-3 if kind in COMPRESSED else 1e-6
    assert [hit.similarity for hit in hits] == pytest.approx(sorted(exact, reverse=True), abs=close)
    assert len(hits) == 30


def test_another_encoder_is_an_error(index):
    class Other(BagEncoder):
        name, identity = "other", "0" * 64

    with pytest.raises(EncoderMismatchError, match="built with the encoder bag"):
        Index.open(index.corpus.path, encoder=Other())


def test_missing_and_damaged_index(tmp_path, jsonl, index):
    corpus = build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")
    with pytest.raises(IndexMissingError, match="no index"):
        Index.open(corpus.path)
    file = index.corpus.path / "index" / "vectors.faiss"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(CorpusDamagedError, match=r"vectors\.faiss"):
        Index.open(index.corpus.path)


@pytest.mark.parametrize(("name", "value"), [("format", 99), ("kind", "hnsw")])
def test_an_index_that_this_version_cannot_read_has_to_be_built_again(index, name, value):
    path = index.corpus.path / "index" / "manifest.json"
    path.write_text(json.dumps({**index.manifest, name: value}))
    with pytest.raises(CorpusVersionError, match=f"{name} {value}.*reads formats 1 and 2") as error:
        Index.open(index.corpus.path)
    assert "zicl index build" in error.value.hint


@pytest.fixture(scope="module", params=ALL_KINDS)
def any_kind(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    return make_index(folder / "c.zicl", domains=write(folder, DOMAINS), kind=request.param)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return one index per kind of six hundred sentences: a search takes several fetches."""
    folder = tmp_path_factory.mktemp("many")
    words = ["lamp", "soup", "train", "bird", "bread", "phone", "song", "clue", "pear", "tile", "village", "window"]
    generator = np.random.default_rng(3)
    texts = [". ".join(" ".join(generator.choice(words, 5)) + f" {n} {m}" for m in range(3)) for n in range(200)]
    paths = write(folder, {"a": texts[:120], "b": texts[120:]})
    return {kind: make_index(folder / f"{kind}.zicl", domains=paths, kind=kind) for kind in ALL_KINDS}


def texts_of(index, rows):
    return [index.sentence(int(row)).text for row in rows]


@pytest.mark.parametrize("without", [["film"], ["train"], ["film", "food"]])
def test_without_a_domain_it_is_the_corpus_built_without_it(any_kind, tmp_path, without):
    part = subset(any_kind, without=without)
    rest = {name: texts for name, texts in DOMAINS.items() if name not in without}
    # Half precision changes the order of nearly equal vectors: compare the same kind.
    kind = any_kind.manifest["kind"] if any_kind.manifest["kind"] in COMPRESSED else "flat"
    scratch = make_index(tmp_path / "s.zicl", domains=write(tmp_path, rest), kind=kind)
    assert texts_of(part, part.indexed()) == texts_of(scratch, scratch.indexed())
    assert part.corpus.domains == scratch.corpus.domains
    for text in (QUERY, "the lamp was out.", "Nobody spoke."):
        ours, theirs = list(part.nearest(text)), list(scratch.nearest(text))
        assert texts_of(part, [h.row for h in ours]) == texts_of(scratch, [h.row for h in theirs])
        assert [h.similarity for h in ours] == pytest.approx([h.similarity for h in theirs], abs=1e-6)
        ours, theirs = part.documents_like(text), scratch.documents_like(text)
        assert len(ours) == len(theirs)
        for method in RETRIEVERS.names():
            found = [RETRIEVERS.get(method)().retrieve(each, Query(text, 1), 4) for each in (part, scratch)]
            assert texts_of(part, [r.row for r in found[0]]) == texts_of(scratch, [r.row for r in found[1]])


def test_a_duplicate_replaces_the_indexed_sentence_that_is_left_out(any_kind):
    part = subset(any_kind, without=["film"])
    rows = {text: int(row) for row, text in zip(part.indexed(), texts_of(part, part.indexed()), strict=True)}
    assert "the lamp was out." in rows
    assert part.documents_like("The Lamp was out.") == {part.sentence(rows["the lamp was out."]).document}
    assert next(part.nearest("The Lamp was out.")).row == rows["the lamp was out."]
    assert rows["the lamp was out."] not in any_kind.indexed()


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("share", [0.6, 0.05])
def test_search_is_what_a_matrix_product_over_the_part_finds(many, kind, share):
    part = subset(many[kind], share=share, seed=2)
    exact = BagEncoder().encode(texts_of(part, part.indexed())) @ BagEncoder().encode([QUERY])[0]
    hits = list(part.nearest(QUERY))
    assert {hit.row for hit in hits} == set(part.indexed().tolist())
    close = 1e-3 if kind in COMPRESSED else 1e-6
    assert sorted((h.similarity for h in hits), reverse=True) == pytest.approx(sorted(exact, reverse=True), abs=close)
    if kind == "flat":
        assert [h.similarity for h in hits] == pytest.approx(sorted(exact, reverse=True), abs=1e-6)


@pytest.mark.parametrize("kind", COMPRESSED)
def test_an_approximate_search_of_a_part_gives_as_many_as_are_fetched(many, kind):
    part = subset(many[kind], without=["a"], share=0.2)
    assert len(part._search(QUERY, 64)) == min(64, len(part.indexed()))


@given(shares=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), seed=st.integers(0, 5))
def test_a_smaller_share_is_contained_in_a_larger_one(many, shares, seed):
    small, large = (subset(many["flat"], share=share, seed=seed) for share in sorted(shares))
    assert not np.any(small.corpus.used & ~large.corpus.used)
    paragraphs = large.corpus.table["position"].to_numpy() == 0
    assert int(np.sum(large.corpus.used & paragraphs)) == pytest.approx(200 * max(shares), abs=2)
    assert small.corpus.used.reshape(-1, 3).all(axis=1).sum() * 3 == small.corpus.used.sum()


@given(share=st.floats(0.1, 1), seed=st.integers(0, 3))
def test_leaving_a_domain_out_does_not_change_the_sample_of_another(many, share, seed):
    with_a, without_a = (subset(many["flat"], share=share, seed=seed, without=w) for w in ((), ("a",)))
    assert with_a.indexed("b").tolist() == without_a.indexed("b").tolist() == without_a.indexed().tolist()


@pytest.mark.parametrize("method", RETRIEVERS.names())
def test_every_method_stays_in_the_part(many, method):
    part = subset(many["flat"], share=0.3, without=["b"])
    for item in RETRIEVERS.get(method)().retrieve(part, Query(QUERY), 16):
        assert part.corpus.used[item.row]
        assert part.sentence(item.row).domain == "a"
        assert all(part.corpus.used[row] for row in part.around(item.row, 2))


def test_subsets_have_separate_caches_and_identities_and_share_embedded_queries(many):
    index = many["flat"]
    parts = [
        subset(index, share=0.5),
        subset(index, share=0.5, seed=1),
        subset(index, without=["a"]),
        subset(index, share=0.3),
    ]
    cached = [each.cached("x", lambda value=value: value) for value, each in enumerate((index, *parts))]
    assert cached == [0, 1, 2, 3, 4]
    assert len({part.identity for part in [index, *parts]}) == 5
    assert parts[0].identity == subset(index, share=0.5).identity
    assert parts[0].embed(QUERY) is index.embed(QUERY)
    assert subset(index) is index
    with pytest.raises(UsageError, match="left out"):
        parts[2].sentence(0)


def test_what_cannot_be_left_out_is_an_error(many):
    with pytest.raises(UnknownNameError, match="unknown domain 'aa'") as error:
        subset(many["flat"], without=["aa"])
    assert "did you mean 'a'" in error.value.hint
    with pytest.raises(EmptyCorpusError, match="without a, b no sentence of"):
        subset(many["flat"], without=["a", "b"])
    with pytest.raises(ConfigError, match="share of the corpus"):
        subset(many["flat"], share=0)
    with pytest.raises(ConfigError, match="sample already"):
        subset(subset(many["flat"], share=0.5), share=0.2)
    with pytest.raises(UnknownNameError):
        subset(many["flat"], without=["a"]).indexed("a")
