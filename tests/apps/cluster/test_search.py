"""Hits of several parts of an index, merged, are those of one search."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import BagEncoder
from zicl.apps.cluster.search import Searcher, VerifiedVectors
from zicl.exceptions import ClusterError
from zicl.retrieve import kinds
from zicl.retrieve.builder import build_index
from zicl.retrieve.search import DEFAULT_PARAMS, RowSelection, merge_hits, search


def write_index(kind, count, folder, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, 24)).astype(np.float32)
    vectors[count // 2] = vectors[0]  # ties go by row number, also across parts
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    path = folder / "vectors.faiss"
    kinds.write_vectors(kind, 24, count, [vectors], path, folder / "work")
    return path, vectors


def search_parts(path, kind, query, count, bounds, chosen=None):
    """Merge the hits of searchers of the parts between these bounds."""
    bits = None if chosen is None else RowSelection.of(chosen).bits
    parts = [Searcher(partial(kinds.read_vectors, kind, path), first, last) for first, last in pairwise(bounds)]
    return merge_hits([part.search((query, count, bits, DEFAULT_PARAMS)) for part in parts], count)


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    return write_index("flat", 500, tmp_path_factory.mktemp("flat"))


@given(cuts=st.sets(st.integers(1, 499), max_size=5), count=st.integers(1, 80), which=st.integers(0, 499))
def test_an_exact_index_gives_the_same_to_the_last_digit(flat, cuts, count, which):
    path, vectors = flat
    query, bounds = vectors[which], [0, *sorted(cuts), 500]
    numbers, similarities = search_parts(path, "flat", query, count, bounds)
    expected = search(kinds.read_vectors("flat", path), query, count)
    assert numbers.tolist() == expected[0].tolist()
    assert similarities.tobytes() == expected[1].tobytes()


@given(cuts=st.sets(st.integers(1, 499), max_size=5), seed=st.integers(0, 99))
def test_a_selection_of_rows_gives_the_same(flat, cuts, seed):
    path, vectors = flat
    chosen = np.random.default_rng(seed).random(500) < 0.3
    numbers, similarities = search_parts(path, "flat", vectors[0], 20, [0, *sorted(cuts), 500], chosen)
    expected = search(kinds.read_vectors("flat", path), vectors[0], 20, RowSelection.of(chosen))
    assert numbers.tolist() == expected[0].tolist()
    assert similarities.tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("kind", ["ivf-sq8", "ivf-pq"])
def test_other_kinds_find_no_less(kind, tmp_path):
    path, vectors = write_index(kind, 3000, tmp_path)
    index = kinds.read_vectors(kind, path)
    hits = {"one": 0, "parts": 0}
    for query in vectors[:40]:
        exact = set(np.argsort(-(vectors @ query), kind="stable")[:16].tolist())
        hits["one"] += len(exact & set(search(index, query, 16)[0].tolist()))
        hits["parts"] += len(exact & set(search_parts(path, kind, query, 16, [0, 900, 2000, 3000])[0].tolist()))
    assert hits["parts"] >= hits["one"] > 0


def test_other_vectors_and_versions_are_an_error(index):
    read = VerifiedVectors.of(index)
    assert read().ntotal == index.manifest["vectors"]
    with pytest.raises(ClusterError, match="different versions: numpy 0"):
        VerifiedVectors(read.path, read.identity, {"numpy": "0.1"})()
    build_index(index.corpus, BagEncoder(), kind="ivf-sq8")
    with pytest.raises(ClusterError, match="another corpus or index"):
        Searcher(read, 0, 1).search((index.embed("rain"), 1, None, DEFAULT_PARAMS))
