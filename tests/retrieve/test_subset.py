"""A part of an index: whole paragraphs, nested shares, exact search, and never a row that is left out."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from zicl.exceptions import ConfigError, EmptyCorpusError, UnknownNameError, UsageError
from zicl.retrieve.concat import ConcatIndex
from zicl.retrieve.index import subset
from zicl.retrieve.kinds import COMPRESSED
from zicl.retrieve.strategies.base import RETRIEVERS, Query

KINDS = ["flat", "hnsw", "ivf", "ivf-sq8", "ivf-pq"]
QUERY = "The soup and the bread were cold."
# The films come first, so that what the trains repeat of them is not indexed a second time.
DOMAINS = {
    "film": [DOCUMENTS[0], DOCUMENTS[3], "The Lamp was out. Nobody spoke."],
    "train": [DOCUMENTS[1], "We waited long. the lamp was out. Then it rained.", "Nobody spoke. The rain went on."],
    "food": [DOCUMENTS[2], DOCUMENTS[6], "We waited long. The plum cake was warm."],
}


def write(folder, domains):
    paths = {}
    for name, texts in domains.items():
        paths[name] = [folder / f"{name}.jsonl"]
        paths[name][0].write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    return paths


@pytest.fixture(scope="module", params=KINDS)
def index(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    return make_index(folder / "c.zicl", domains=write(folder, DOMAINS), kind=request.param)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Six hundred sentences, so that searching takes several steps."""
    folder = tmp_path_factory.mktemp("many")
    words = ["lamp", "soup", "train", "bird", "bread", "phone", "song", "clue", "pear", "tile", "village", "window"]
    generator = np.random.default_rng(3)
    texts = [". ".join(" ".join(generator.choice(words, 5)) + f" {n} {m}" for m in range(3)) for n in range(200)]
    paths = write(folder, {"a": texts[:120], "b": texts[120:]})
    return {kind: make_index(folder / f"{kind}.zicl", domains=paths, kind=kind) for kind in KINDS}


def texts_of(index, rows):
    return [index.sentence(int(row)).text for row in rows]


@pytest.mark.parametrize("without", [["film"], ["train"], ["film", "food"]])
def test_without_a_domain_it_is_the_corpus_built_without_it(index, tmp_path, without):
    part = subset(index, without=without)
    rest = {name: texts for name, texts in DOMAINS.items() if name not in without}
    # Half precision changes the order of vectors that are as good as equal: there the same kind is compared.
    kind = index.manifest["kind"] if index.manifest["kind"] in COMPRESSED else "flat"
    scratch = make_index(tmp_path / "s.zicl", domains=write(tmp_path, rest), kind=kind)
    assert texts_of(part, part.indexed()) == texts_of(scratch, scratch.indexed())
    assert part.corpus.domains == scratch.corpus.domains
    for text in (QUERY, "the lamp was out.", "Nobody spoke."):
        ours, theirs = list(part.nearest(text)), list(scratch.nearest(text))
        assert texts_of(part, [h.row for h in ours]) == texts_of(scratch, [h.row for h in theirs])
        assert [h.similarity for h in ours] == pytest.approx([h.similarity for h in theirs], abs=1e-6)
        ours, theirs = part.documents_like(text), scratch.documents_like(text)
        assert len(ours) == len(theirs)
        for method in ("nearest", "physical", "diverse", "random", "domain-random"):
            found = [RETRIEVERS.get(method)().retrieve(each, Query(text, 1), 4) for each in (part, scratch)]
            assert texts_of(part, [r.row for r in found[0]]) == texts_of(scratch, [r.row for r in found[1]])


def test_a_sentence_stands_in_for_its_twin_that_is_left_out(index):
    part = subset(index, without=["film"])
    rows = {text: int(row) for row, text in zip(part.indexed(), texts_of(part, part.indexed()), strict=True)}
    assert "the lamp was out." in rows
    assert part.documents_like("The Lamp was out.") == {part.sentence(rows["the lamp was out."]).document}
    assert next(part.nearest("The Lamp was out.")).row == rows["the lamp was out."]
    assert rows["the lamp was out."] not in index.indexed()


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("kind", KINDS[1:])
def test_an_approximate_search_of_a_part_gives_as_many_as_are_asked_for(many, kind):
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


@pytest.mark.parametrize("method", ["nearest", "physical", "diverse", "random", "domain-random"])
def test_every_method_stays_in_the_part(many, method):
    part = subset(many["flat"], share=0.3, without=["b"])
    for item in RETRIEVERS.get(method)().retrieve(part, Query(QUERY), 16):
        assert part.corpus.used[item.row]
        assert part.sentence(item.row).domain == "a"
        assert all(part.corpus.used[row] for row in part.around(item.row, 2))


def test_parts_have_their_own_memory_and_identity_and_share_what_is_embedded(many):
    index = many["flat"]
    parts = [
        subset(index, share=0.5),
        subset(index, share=0.5, seed=1),
        subset(index, without=["a"]),
        subset(index, share=0.3),
    ]
    assert [each.cached("x", lambda value=value: value) for value, each in enumerate((index, *parts))] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert len({part.identity for part in [index, *parts]}) == 5
    assert parts[0].identity == subset(index, share=0.5).identity
    assert parts[0].embed(QUERY) is index.embed(QUERY)
    assert subset(index) is index
    with pytest.raises(UsageError, match="left out"):
        parts[2].sentence(0)


def test_parts_join_with_texts_in_memory(many):
    base = subset(many["flat"], without=["a"])
    joint = ConcatIndex(base, many["hnsw"])
    assert len(joint.indexed()) == 240 + 600
    assert len(joint.indexed("a")) == 360
    assert {joint.sentence(hit.row).domain for hit in joint.nearest(QUERY)} == {"a", "b"}


def test_what_cannot_be_left_out_is_said(many):
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
