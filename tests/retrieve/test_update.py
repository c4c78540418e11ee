"""A changed corpus is the one built from scratch; a change that was killed leaves the old one whole."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from tests.retrieve.changed import DOMAINS, Counting, contents, killed_at, write
from zicl._util.files import locked
from zicl.corpus import shards
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.corpus.store import Corpus
from zicl.corpus.update import remove_domains
from zicl.exceptions import EmptyCorpusError, EncoderMismatchError, StorageError, UnknownNameError, UsageError
from zicl.retrieve import builder as index_build
from zicl.retrieve.index import Index
from zicl.retrieve.update import add_domains, compact

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
    kind=st.sampled_from(["flat", "flat", "hnsw", "ivf", "ivf-sq8", "ivf-pq"]),
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


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf", "ivf-sq8", "ivf-pq"])
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
    from zicl.retrieve import kinds as vectors
    from zicl.retrieve.encoder import load_encoder

    paths, encoder, found = write(tmp_path, DOMAINS), load_encoder(str(encoder_folder)), []
    for name, domains in (("c.zicl", ("film", "food")), ("s.zicl", tuple(DOMAINS))):
        corpus = build_corpus(find_sources([], {d: paths[d] for d in domains}), tmp_path / name)
        index_build.build_index(corpus, encoder)
    # Without an encoder at hand, the one the index names is loaded.
    add_domains(tmp_path / "c.zicl", train(paths))
    for name in ("c.zicl", "s.zicl"):
        index = vectors.read_back("flat", tmp_path / name / "index" / "vectors.faiss")
        found.append(index.reconstruct_n(0, index.ntotal))
    assert np.abs(found[0] - found[1]).max() < 1e-5


def test_elsewhere_the_old_corpus_stays(made, tmp_path):
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
def test_a_killed_change_leaves_the_old_whole_and_goes_on(made, tmp_path, monkeypatch, what, stop_after):
    monkeypatch.setattr(index_build, "_SHARD", 8)
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
    monkeypatch.setattr(index_build, "_SHARD", 4)
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


def test_a_corpus_that_does_not_note_its_shards_can_be_changed(made, tmp_path):
    paths, path = made
    manifest = json.loads((path / "manifest.json").read_text())
    for source in manifest["sources"]:
        del source["first_shard"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    add_domains(path, train(paths), encoder=BagEncoder())
    assert contents(path) == contents(make_index(tmp_path / "s.zicl", domains=paths).corpus.path)


def test_what_cannot_be_changed_is_said(made, tmp_path):
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
