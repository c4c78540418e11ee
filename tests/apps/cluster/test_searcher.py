"""The nearest of several shares of an index, merged, are those of the whole."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import BagEncoder
from zicl.apps.cluster.search import SameVectors, Searcher
from zicl.exceptions import ClusterError
from zicl.retrieve import kinds as vectors
from zicl.retrieve.builder import build_index
from zicl.retrieve.search import DEFAULT_PARAMS, RowSelection, merge_hits, search


def made(kind, count, folder, seed=0):
    found = np.random.default_rng(seed).normal(size=(count, 24)).astype(np.float32)
    found[count // 2] = found[0]  # equal ones go by their number, also across shares
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    path = folder / "vectors.faiss"
    vectors.write(kind, 24, [found], found[vectors.training_numbers(kind, count)], count, path)
    return path, found


def shares(path, kind, query, count, bounds, chosen=None):
    """What searchers of the parts between these bounds find together."""
    bits = None if chosen is None else RowSelection.of(chosen).bits
    parts = [Searcher(partial(vectors.read, kind, path), first, last) for first, last in pairwise(bounds)]
    return merge_hits([part.search((query, count, bits, DEFAULT_PARAMS)) for part in parts], count)


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    return made("flat", 500, tmp_path_factory.mktemp("flat"))


@given(cuts=st.sets(st.integers(1, 499), max_size=5), count=st.integers(1, 80), which=st.integers(0, 499))
def test_of_an_exact_index_to_the_last_digit(flat, cuts, count, which):
    path, found = flat
    query, bounds = found[which], [0, *sorted(cuts), 500]
    numbers, similarities = shares(path, "flat", query, count, bounds)
    expected = search(vectors.read("flat", path), query, count)
    assert numbers.tolist() == expected[0].tolist()
    assert similarities.tobytes() == expected[1].tobytes()


@given(cuts=st.sets(st.integers(1, 499), max_size=5), seed=st.integers(0, 99))
def test_also_among_some_of_its_vectors(flat, cuts, seed):
    path, found = flat
    chosen = np.random.default_rng(seed).random(500) < 0.3
    numbers, similarities = shares(path, "flat", found[0], 20, [0, *sorted(cuts), 500], chosen)
    expected = search(vectors.read("flat", path), found[0], 20, RowSelection.of(chosen))
    assert numbers.tolist() == expected[0].tolist()
    assert similarities.tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_of_other_kinds_no_less_is_found(kind, tmp_path):
    path, found = made(kind, 3000, tmp_path)
    index = vectors.read(kind, path)
    hits = {"whole": 0, "shares": 0}
    for query in found[:40]:
        exact = set(np.argsort(-(found @ query), kind="stable")[:16].tolist())
        hits["whole"] += len(exact & set(search(index, query, 16)[0].tolist()))
        hits["shares"] += len(exact & set(shares(path, kind, query, 16, [0, 900, 2000, 3000])[0].tolist()))
    assert hits["shares"] >= hits["whole"] > 0


def test_other_vectors_and_versions_are_refused(index):
    read = SameVectors.of(index)
    assert read().ntotal == index.manifest["vectors"]
    with pytest.raises(ClusterError, match="other versions: numpy 0"):
        SameVectors(read.path, read.identity, {"numpy": "0.1"})()
    build_index(index.corpus, BagEncoder(), kind="hnsw")
    with pytest.raises(ClusterError, match="another corpus or index"):
        Searcher(read, 0, 1).search((index.embed("rain"), 1, None, DEFAULT_PARAMS))
