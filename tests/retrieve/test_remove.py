"""A removed domain is out of every search at once, and off the disk after compacting."""

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from tests.retrieve.changed import Counting, contents, write
from zicl.corpus.store import Corpus
from zicl.corpus.update import remove_domains
from zicl.retrieve import builder as index_build
from zicl.retrieve.index import Index
from zicl.retrieve.strategies.base import RETRIEVERS, Query
from zicl.retrieve.update import compact


def test_a_removed_domain_is_in_no_search_draw_or_count(made):
    _, path = made
    whole = Index.open(path, encoder=BagEncoder())
    before, disk = whole.identity, (path / "sentences.arrow").read_bytes()
    corpus = remove_domains(path, ["film"])
    index = Index.open(path, encoder=BagEncoder())
    assert index.identity != before
    assert corpus.hash != whole.corpus.hash
    assert (path / "sentences.arrow").read_bytes() == disk
    assert corpus.domains == ["food"]
    assert corpus.sentences == corpus.manifest["sentences"] == 12
    assert len(list(corpus.used_texts())) == 12
    assert corpus.manifest["documents"] == 4
    # The train is told of in both domains: the second telling is now the first.
    assert len(index.indexed()) == corpus.manifest["indexed"] == 12
    for text in ("The lamp on the stage kept failing.", DOCUMENTS[1], "pears"):
        assert {index.sentence(hit.row).domain for hit in index.nearest(text)} == {"food"}
        assert all(document >= 4 for document in index.documents_like(text))
        for method in ("nearest", "physical", "diverse", "random", "domain-random"):
            for item in RETRIEVERS.get(method)().retrieve(index, Query(text), 5):
                assert index.sentence(item.row).domain == "food"


def test_an_index_built_after_a_removal_holds_nothing_of_it(made, tmp_path):
    paths, path = made
    remove_domains(path, ["film"])
    encoder = Counting()
    index_build.build_index(Corpus.open(path), encoder, kind="flat")
    assert len(encoder.texts) == 12
    index = Index.open(path, encoder=BagEncoder())
    scratch = make_index(tmp_path / "s.zicl", domains={"food": paths["food"]})
    assert [h.similarity for h in index.nearest("pears")] == [h.similarity for h in scratch.nearest("pears")]
    compact(path, encoder=BagEncoder())
    assert contents(path) == contents(scratch.corpus.path)


def test_a_second_removal_after_an_index_was_built(tmp_path):
    told = {"a": ["Thank you. We left."], "b": ["It rained. Thank you."], "c": ["Thank you. Snow fell. A lamp."]}
    paths = write(tmp_path, {**told, "d": ["The soup was cold. Nobody came."]})
    path = make_index(tmp_path / "c.zicl", domains=paths).corpus.path
    remove_domains(path, ["a"])
    index_build.build_index(Corpus.open(path), BagEncoder(), kind="flat")
    remove_domains(path, ["b"])
    index = Index.open(path, encoder=BagEncoder())
    assert index.sentence(next(index.nearest("Thank you.")).row).domain == "c"
    scratch = make_index(tmp_path / "s.zicl", domains={name: paths[name] for name in "cd"})
    encoder = Counting()
    compact(path, encoder=encoder)
    assert encoder.texts == []
    assert contents(path) == contents(scratch.corpus.path)


def test_compacting_embeds_nothing_but_sentences_with_other_capitals(tmp_path):
    domains = {"a": ["The Lamp fails. We wait."], "b": ["the lamp fails. We wait. It rains."]}
    paths, encoder = write(tmp_path, domains), Counting()
    path = make_index(tmp_path / "c.zicl", domains=paths).corpus.path
    remove_domains(path, ["a"])
    compact(path, encoder=encoder)
    assert encoder.texts == ["the lamp fails."]
    assert compact(path).hash == Corpus.open(path).hash
