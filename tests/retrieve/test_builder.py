"""Building an index: resumable embedding, in full precision."""

import pytest

from tests.conftest import BagEncoder, make_index
from tests.retrieve.conftest import DOMAINS, Counting, write
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.corpus.store import Corpus
from zicl.retrieve import builder
from zicl.retrieve.builder import build_index
from zicl.retrieve.update import change_kind


def test_a_killed_embedding_resumes_with_the_next_shard(tmp_path, jsonl, monkeypatch):
    monkeypatch.setattr(builder, "_SHARD", 7)
    corpus = build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")

    class Failing(BagEncoder):
        calls = 0

        def encode(self, texts):
            Failing.calls += 1
            if Failing.calls == 3:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        build_index(corpus, Failing())
    assert not (corpus.path / "index").exists()
    build_index(corpus, Failing())
    assert Failing.calls == 3 + 3
    complete = make_index(tmp_path / "w.zicl", jsonl)
    for name in ("vectors.faiss", "rows.npy"):
        assert (corpus.path / "index" / name).read_bytes() == (complete.corpus.path / "index" / name).read_bytes()


def test_progress_of_a_resumed_embedding_begins_with_what_is_there(tmp_path, jsonl, monkeypatch):
    monkeypatch.setattr(builder, "_SHARD", 7)
    corpus = build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")

    def killed(stage, done, total=None, note=""):
        if stage == "embedding" and done >= 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(corpus, BagEncoder(), report=killed)
    seen = []
    build_index(corpus, BagEncoder(), report=lambda stage, done, total=None, note="": seen.append((stage, done)))
    counted = [done for stage, done in seen if stage == "embedding"]
    assert counted[0] >= 9
    assert counted == sorted(set(counted))
    assert counted[-1] == 30


def test_half_precision_vectors_of_a_killed_change_are_not_reused_as_embedded_ones(tmp_path):
    index = make_index(tmp_path / "c.zicl", domains=write(tmp_path, DOMAINS), kind="ivf-sq8")

    def killed(stage, done, total=None, note=""):
        if stage == "indexing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change_kind(index.corpus.path, "ivf-pq", encoder=BagEncoder(), report=killed)
    encoder = Counting()
    build_index(Corpus.open(index.corpus.path), encoder, kind="flat")
    assert len(encoder.texts) == len(index.corpus.indexed)
