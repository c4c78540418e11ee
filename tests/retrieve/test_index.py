"""Index and encoder: resumable embedding, memory-mapped kinds, and the identity of the encoder."""

import json

import numpy as np
import pytest

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.exceptions import ConfigError, CorpusDamagedError, EncoderMismatchError, IndexMissingError, ModelNotFoundError
from zicl.retrieve import builder as module
from zicl.retrieve import kinds as vectors
from zicl.retrieve.builder import build_index
from zicl.retrieve.encoder import SentenceEncoder, load_encoder
from zicl.retrieve.index import Index


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_every_kind_finds_what_a_matrix_product_finds(tmp_path, kind):
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps({"text": t}) + "\n" for t in DOCUMENTS))
    index = make_index(tmp_path / "c.zicl", path, kind=kind)
    assert index.manifest["kind"] == kind
    texts = [index.sentence(int(row)).text for row in index.indexed()]
    exact = BagEncoder().encode(texts) @ BagEncoder().encode(["cold bread and soup"])[0]
    hits = list(index.nearest("cold bread and soup"))
    assert [hit.similarity for hit in hits] == pytest.approx(sorted(exact, reverse=True)[: len(hits)], abs=1e-6)
    assert len(hits) == 30


def test_auto_is_exact_for_small_corpora():
    assert vectors.auto_kind("auto", 1000) == vectors.auto_kind("auto", 1_000_000) == "flat"
    assert vectors.auto_kind("auto", 2_000_000) == "ivf-sq8"
    assert vectors.auto_kind("auto", 27_000_000) == "ivf-pq"
    with pytest.raises(ConfigError, match="unknown kind"):
        vectors.auto_kind("tree", 5)


def test_a_killed_embedding_goes_on_with_the_next_shard(tmp_path, jsonl, monkeypatch):
    monkeypatch.setattr(module, "_SHARD", 7)
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
    whole = make_index(tmp_path / "w.zicl", jsonl)
    for name in ("vectors.faiss", "rows.npy"):
        assert (corpus.path / "index" / name).read_bytes() == (whole.corpus.path / "index" / name).read_bytes()


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


def test_encoding_matches_sentence_transformers_whatever_the_batch(encoder_folder):
    encoder = load_encoder(str(encoder_folder))
    texts = [sentence for text in DOCUMENTS for sentence in text.split(". ")]
    expected = encoder.model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    assert np.abs(encoder.encode(texts) - expected).max() < 1e-5
    assert np.abs(encoder.encode(texts[:1]) - expected[:1]).max() < 1e-5
    assert np.linalg.norm(encoder.encode(texts), axis=1) == pytest.approx(1, abs=1e-5)
    assert encoder.identity == load_encoder(str(encoder_folder)).identity


@pytest.mark.parametrize("name", ["unsup-simcse-tiny", "sup-simcse-tiny"])
def test_simcse_ids_pool_the_first_token(tmp_path, encoder_folder, name):
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = tmp_path / name
    AutoModel.from_pretrained(encoder_folder, dtype=torch.float32).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    tokenizer.save_pretrained(folder)
    encoder = load_encoder(str(folder))
    assert isinstance(encoder, SentenceEncoder)
    body = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        output = body(**tokenizer("the soup was cold", return_tensors="pt"))
        published = output.last_hidden_state[:, 0] if name.startswith("unsup") else output.pooler_output
    published = torch.nn.functional.normalize(published, dim=-1).numpy()
    assert np.abs(encoder.encode(["the soup was cold"]) - published).max() < 1e-5


def test_unknown_encoder(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelNotFoundError, match="could not be loaded"):
        load_encoder(str(tmp_path / "empty"))
