"""A changed corpus is the one built from scratch; a killed change leaves the old one intact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from tests.retrieve.conftest import DOMAINS, Counting, contents, killed_at, write
from zicl._util.locks import locked
from zicl.corpus import shards
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.corpus.store import Corpus
from zicl.corpus.update import remove_domains
from zicl.exceptions import (
    ConfigError,
    EmptyCorpusError,
    EncoderMismatchError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from zicl.retrieve import builder
from zicl.retrieve.builder import build_index
from zicl.retrieve.encoder import load_encoder
from zicl.retrieve.index import Index
from zicl.retrieve.kinds import KINDS, read_vectors
from zicl.retrieve.strategies.base import RETRIEVERS, Query
from zicl.retrieve.update import add_domains, change_kind, compact

# Few sentences, so that they repeat within and across domains, once with other capitals.
SENTENCES = ["The Lamp fails.", "the lamp fails.", "We wait.", "Pears are sold.", "It rains.", "She sings.", "He left."]
PARAGRAPH = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3).map(" ".join)
DOCUMENT = st.lists(PARAGRAPH, min_size=1, max_size=3).map("\n\n".join)
FILE = st.lists(DOCUMENT, min_size=1, max_size=4)
DOMAIN = st.lists(FILE, min_size=1, max_size=2)


def train(paths):
    return find_sources([], {"train": paths["train"]})


@settings(max_examples=12)
@given(
    old=st.lists(DOMAIN, min_size=1, max_size=2),
    new=st.lists(DOMAIN, min_size=1, max_size=2),
    limit=st.sampled_from([1, 2, 100]),
    shard=st.sampled_from([2, 1000]),
    kind=st.sampled_from(["flat", "flat", "ivf-sq8", "ivf-pq"]),
)
def test_adding_and_removing_give_the_bytes_of_a_corpus_from_scratch(tmp_path_factory, old, new, limit, shard, kind):
    folder = tmp_path_factory.mktemp("add")
    domains = {f"d{number}": files for number, files in enumerate([*old, *new])}
    paths = write(folder, domains)
    first, last = list(paths)[: len(old)], list(paths)[len(old) :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_SHARD_SENTENCES", shard)

        def scratch(name, names):
            chosen = {each: paths[each] for each in names}
            return make_index(folder / name, domains=chosen, kind=kind, max_paragraphs=limit).corpus.path

        changed, everything, rest = scratch("c.zicl", first), scratch("all.zicl", paths), scratch("rest.zicl", last)
        add_domains(changed, find_sources([], {name: paths[name] for name in last}), encoder=BagEncoder())
        assert contents(changed) == contents(everything)
        remove_domains(changed, first)
        left = Index.open(changed, encoder=BagEncoder())
        texts = [left.sentence(int(row)).text for row in left.indexed()]
        assert {left.sentence(hit.row).text for hit in left.nearest("we wait")} == set(texts)
        compact(changed, encoder=BagEncoder())
        assert contents(changed) == contents(rest)
        assert texts == [Corpus.open(rest).text(int(row)) for row in Corpus.open(rest).indexed]


@pytest.mark.parametrize("kind", KINDS[1:])
def test_only_what_is_new_is_embedded(tmp_path, kind):
    paths = write(tmp_path, DOMAINS)
    old = make_index(tmp_path / "c.zicl", domains={name: paths[name] for name in ("film", "food")}, kind=kind)
    encoder = Counting()
    corpus = add_domains(old.corpus.path, train(paths), encoder=encoder)
    assert len(encoder.texts) == 9
    assert set(encoder.texts) == set(corpus.texts(corpus.domain_rows("train").tolist()))
    index, scratch = (
        Index.open(corpus.path, encoder=BagEncoder()),
        make_index(tmp_path / "s.zicl", domains=paths, kind=kind),
    )
    assert index.identity == scratch.identity
    assert list(index.nearest("cold soup")) == list(scratch.nearest("cold soup"))


def test_vectors_of_a_real_encoder_differ_by_rounding_only(tmp_path, encoder_folder):
    paths, encoder, found = write(tmp_path, DOMAINS), load_encoder(str(encoder_folder)), []
    for name, domains in (("c.zicl", ("film", "food")), ("s.zicl", tuple(DOMAINS))):
        corpus = build_corpus(find_sources([], {d: paths[d] for d in domains}), tmp_path / name)
        build_index(corpus, encoder)
    # Without an encoder at hand, the one the index names is loaded.
    add_domains(tmp_path / "c.zicl", train(paths))
    for name in ("c.zicl", "s.zicl"):
        index = read_vectors("flat", tmp_path / name / "index" / "vectors.faiss")
        found.append(index.reconstruct_n(0, index.ntotal))
    assert np.abs(found[0] - found[1]).max() < 1e-5


def test_with_an_output_the_old_corpus_stays(made, tmp_path):
    paths, old = made
    before = contents(old)
    new = add_domains(old, train(paths), output=tmp_path / "new.zicl", encoder=BagEncoder())
    assert new.domains == ["film", "food", "train"]
    assert contents(old) == before
    with pytest.raises(StorageError, match="exists already"):
        add_domains(old, train(paths), output=tmp_path / "new.zicl", encoder=BagEncoder())
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(
    ("what", "stop_after"), [("add", n) for n in range(1, 18)] + [("compact", n) for n in range(1, 7)]
)
def test_a_killed_change_leaves_the_old_intact_and_resumes(made, tmp_path, monkeypatch, what, stop_after):
    monkeypatch.setattr(builder, "_SHARD", 8)
    paths, old = made
    if what == "compact":
        remove_domains(old, ["film"])

    def change(report, encoder):
        if what == "add":
            return add_domains(old, train(paths), encoder=encoder, report=report)
        return compact(old, encoder=encoder, report=report)

    before = contents(old)
    with pytest.raises(KeyboardInterrupt):
        change(killed_at(stop_after), BagEncoder())
    assert contents(old) == before
    Index.open(old, encoder=BagEncoder())
    change(lambda *_: None, BagEncoder())
    names = DOMAINS if what == "add" else ["food"]
    scratch = make_index(tmp_path / "s.zicl", domains={name: paths[name] for name in names})
    assert contents(old) == contents(scratch.corpus.path)
    assert not list(tmp_path.glob("*.partial"))


def test_what_was_embedded_before_a_kill_is_not_embedded_again(made, monkeypatch):
    monkeypatch.setattr(builder, "_SHARD", 4)
    paths, old = made

    class Failing(Counting):
        def encode(self, texts):
            if len(self.texts) > 3:
                raise KeyboardInterrupt
            return super().encode(texts)

    first, second = Failing(), Counting()
    with pytest.raises(KeyboardInterrupt):
        add_domains(old, train(paths), encoder=first)
    add_domains(old, train(paths), encoder=second)
    assert len(first.texts) > 3
    assert len(first.texts) + len(second.texts) == 9


def test_a_link_to_a_corpus_stays_a_link(made, tmp_path):
    paths, path = made
    link = tmp_path / "elsewhere" / "link.zicl"
    link.parent.mkdir()
    link.symlink_to(path)
    add_domains(link, train(paths), encoder=BagEncoder())
    remove_domains(link, ["film"])
    compact(link, encoder=BagEncoder())
    assert link.is_symlink()
    assert [each.name for each in link.parent.iterdir()] == ["link.zicl"]
    assert Corpus.open(path).domains == ["food", "train"]


def test_text_without_an_index_stays_without(tmp_path):
    paths = write(tmp_path, DOMAINS)
    corpus = build_corpus(find_sources([], {"film": paths["film"]}), tmp_path / "c.zicl")
    corpus = add_domains(corpus.path, train(paths))
    assert corpus.domains == ["film", "train"]
    remove_domains(corpus.path, ["film"])
    assert len(compact(corpus.path)) == 12
    assert not (corpus.path / "index").exists()


def test_what_cannot_be_changed_is_an_error(made, tmp_path):
    paths, path = made
    with pytest.raises(UsageError, match="has a domain 'film' already"):
        add_domains(path, find_sources([], {"film": paths["train"]}))
    with pytest.raises(UnknownNameError, match="unknown domain 'flim'") as error:
        remove_domains(path, ["flim"])
    assert "did you mean 'film'" in error.value.hint
    with pytest.raises(EmptyCorpusError, match="no sentence"):
        remove_domains(path, ["film", "food"])
    remove_domains(path, ["film"])
    with pytest.raises(UsageError, match="removed already") as error:
        remove_domains(path, ["film"])
    assert "compact" in error.value.hint
    for name in ("film", "train"):
        with pytest.raises(UsageError, match="still on disk: film") as error:
            add_domains(path, find_sources([], {name: paths[name]}))
        assert "zicl corpus compact" in error.value.hint
    compact(path, encoder=BagEncoder())
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(EmptyCorpusError):
        add_domains(path, find_sources([], {"none": [tmp_path / "empty.txt"]}), encoder=BagEncoder())
    assert not list(tmp_path.glob("*.partial"))

    class Other(BagEncoder):
        name, identity = "other", "0" * 64

    with pytest.raises(EncoderMismatchError):
        add_domains(path, train(paths), encoder=Other())


def test_an_index_whose_folder_was_changed_meanwhile_does_not_mix_the_two(made):
    _, path = made
    searched, idle = Index.open(path, encoder=BagEncoder()), Index.open(path, encoder=BagEncoder())
    hits = list(searched.nearest("pears"))
    remove_domains(path, ["film"])
    compact(path, encoder=BagEncoder())
    searched.clear_cache()
    assert list(searched.nearest("pears")) == hits
    assert searched.documents_like(DOCUMENTS[0]) == {0}
    with pytest.raises(StorageError, match="changed since it was opened"):
        next(idle.nearest("pears"))


def test_two_changes_do_not_mix(made, tmp_path):
    paths, path = made
    with locked(tmp_path / "c.zicl.partial", ""):
        with pytest.raises(StorageError, match="another process"):
            add_domains(path, train(paths), encoder=BagEncoder())
        with pytest.raises(StorageError, match="another process"):
            remove_domains(path, ["film"])


def test_a_removed_domain_is_in_no_search_draw_or_count(made):
    _, path = made
    before_removal = Index.open(path, encoder=BagEncoder())
    identity, disk = before_removal.identity, (path / "sentences.arrow").read_bytes()
    corpus = remove_domains(path, ["film"])
    index = Index.open(path, encoder=BagEncoder())
    assert index.identity != identity
    assert corpus.hash != before_removal.corpus.hash
    assert (path / "sentences.arrow").read_bytes() == disk
    assert corpus.domains == ["food"]
    assert corpus.sentences == corpus.manifest["sentences"] == 12
    assert len(list(corpus.used_texts())) == 12
    assert corpus.manifest["documents"] == corpus.manifest["documents_kept"] == 4
    # The train is in both domains: its duplicate is now the first.
    assert len(index.indexed()) == corpus.manifest["indexed"] == 12
    for text in ("The lamp on the stage kept failing.", DOCUMENTS[1], "pears"):
        assert {index.sentence(hit.row).domain for hit in index.nearest(text)} == {"food"}
        assert all(document >= 4 for document in index.documents_like(text))
        for method in RETRIEVERS.names():
            for item in RETRIEVERS.get(method)().retrieve(index, Query(text), 5):
                assert index.sentence(item.row).domain == "food"


def test_an_index_built_after_a_removal_holds_nothing_of_it(made, tmp_path):
    paths, path = made
    remove_domains(path, ["film"])
    encoder = Counting()
    build_index(Corpus.open(path), encoder, kind="flat")
    assert len(encoder.texts) == 12
    index = Index.open(path, encoder=BagEncoder())
    scratch = make_index(tmp_path / "s.zicl", domains={"food": paths["food"]})
    assert [h.similarity for h in index.nearest("pears")] == [h.similarity for h in scratch.nearest("pears")]
    compact(path, encoder=BagEncoder())
    assert contents(path) == contents(scratch.corpus.path)


def test_a_second_removal_after_an_index_was_built(tmp_path):
    repeated = {"a": ["Thank you. We left."], "b": ["It rained. Thank you."], "c": ["Thank you. Snow fell. A lamp."]}
    paths = write(tmp_path, {**repeated, "d": ["The soup was cold. Nobody came."]})
    path = make_index(tmp_path / "c.zicl", domains=paths).corpus.path
    remove_domains(path, ["a"])
    build_index(Corpus.open(path), BagEncoder(), kind="flat")
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


@pytest.mark.parametrize(
    ("old", "new"), [("flat", "ivf-pq"), ("flat", "ivf-sq8"), ("ivf-sq8", "ivf-pq"), ("ivf-pq", "ivf-sq8")]
)
@pytest.mark.parametrize("removed", [[], ["film"]])
def test_another_kind_from_the_same_vectors_is_the_one_built_from_scratch(tmp_path, old, new, removed):
    paths = write(tmp_path, DOMAINS)
    indexes = [make_index(tmp_path / f"{kind}.zicl", domains=paths, kind=kind) for kind in (old, new)]
    for index in indexes:
        remove_domains(index.corpus.path, removed) if removed else None
    encoder = Counting()
    changed = change_kind(indexes[0].corpus.path, new, encoder=encoder)
    assert encoder.texts == []
    build_index(Corpus.open(indexes[1].corpus.path), BagEncoder(), kind=new)
    assert contents(changed.corpus.path / "index") == contents(indexes[1].corpus.path / "index")


def test_half_precision_does_not_become_full(tmp_path):
    index = make_index(tmp_path / "c.zicl", domains=write(tmp_path, DOMAINS), kind="ivf-pq")
    with pytest.raises(ConfigError, match="half precision"):
        change_kind(index.corpus.path, "auto", encoder=BagEncoder())
