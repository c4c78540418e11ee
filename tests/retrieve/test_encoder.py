"""Sentence encoders: the vectors of sentence-transformers, pooling, and errors."""

import numpy as np
import pytest

from tests.conftest import DOCUMENTS
from zicl.exceptions import ModelNotFoundError
from zicl.retrieve.encoder import SentenceEncoder, cuts, load_encoder


def test_encoding_matches_sentence_transformers_whatever_the_batch(encoder_folder):
    encoder = load_encoder(str(encoder_folder))
    texts = [sentence for text in DOCUMENTS for sentence in text.split(". ")]
    expected = encoder.model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    assert np.abs(encoder.encode(texts) - expected).max() < 1e-5
    assert np.abs(encoder.encode(texts[:1]) - expected[:1]).max() < 1e-5
    assert np.linalg.norm(encoder.encode(texts), axis=1) == pytest.approx(1, abs=1e-5)
    assert encoder.encode([]).shape == (0, encoder.dimension)
    assert encoder.identity == load_encoder(str(encoder_folder)).identity


def test_a_text_that_is_longer_than_the_encoder_reads(encoder_folder):
    encoder = load_encoder(str(encoder_folder))
    most = encoder.model.max_seq_length
    assert not cuts(encoder, "soup")
    assert not cuts(encoder, "soup " * (most // 4))
    assert cuts(encoder, "soup " * 2 * most)


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
