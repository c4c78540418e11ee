"""Clusters of inputs that share demonstrations."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, BagEncoder
from zicl.retrieve.clusters import Clusters, fit_clusters

SENTENCES = sorted({sentence for document in DOCUMENTS for sentence in document.split(". ")})


def embed(text):
    return BagEncoder().encode([str(text)])[0]


@settings(max_examples=10)
@given(st.lists(st.sampled_from(SENTENCES), min_size=1), st.integers(1, 8), st.integers(0, 3))
def test_central_texts_are_inputs_and_neither_order_nor_repetition_matters(texts, share, seed):
    clusters = fit_clusters(texts, embed, share, seed)
    assert set(clusters.texts) <= set(texts)
    assert len(clusters.texts) <= -(-len(set(texts)) // share)
    again = fit_clusters([*reversed(texts), texts[0]], embed, share, seed)
    assert again.texts == clusters.texts


def test_a_text_belongs_to_the_most_similar_central_text():
    clusters = Clusters.from_texts(SENTENCES[:5], embed)
    for text in SENTENCES[:5]:
        assert np.allclose(embed(clusters.nearest(embed(text))) @ embed(text), 1)


def test_a_share_of_all_is_one_cluster():
    assert len(fit_clusters(SENTENCES, embed, len(SENTENCES), 0).texts) == 1
