"""The nearest of several shares of an index, merged, are those of the whole."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.retrieve import vectors
from zicl.retrieve.effort import USUAL
from zicl.retrieve.search import Selection, merged, search


def made(kind, count, tmp_path, seed=0):
    found = np.random.default_rng(seed).normal(size=(count, 24)).astype(np.float32)
    found[count // 2] = found[0]  # equal ones go by their number, also across shares
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    path = tmp_path / "vectors.faiss"
    vectors.write(kind, 24, [found], found[vectors.training_numbers(kind, count)], count, path)
    return vectors.read(kind, path), found


def shares(index, query, count, bounds, chosen=None):
    for first, last in pairwise(bounds):
        only = Selection.between(first, last)
        if chosen is not None:
            part = chosen.copy()
            part[:first] = part[last:] = False
            only = Selection.of(part)
        if only.count:
            yield search(index, query, count, only, USUAL)


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    return made("flat", 500, tmp_path_factory.mktemp("flat"))


@given(cuts=st.sets(st.integers(1, 499), max_size=5), count=st.integers(1, 80), which=st.integers(0, 499))
def test_of_an_exact_index_to_the_last_digit(flat, cuts, count, which):
    index, found = flat
    query, bounds = found[which], [0, *sorted(cuts), 500]
    numbers, similarities = merged(list(shares(index, query, count, bounds)), count)
    expected = search(index, query, count)
    assert numbers.tolist() == expected[0].tolist()
    assert similarities.tobytes() == expected[1].tobytes()


@given(cuts=st.sets(st.integers(1, 499), max_size=5), seed=st.integers(0, 99))
def test_also_among_some_of_its_vectors(flat, cuts, seed):
    index, found = flat
    chosen = np.random.default_rng(seed).random(500) < 0.3
    numbers, similarities = merged(list(shares(index, found[0], 20, [0, *sorted(cuts), 500], chosen)), 20)
    expected = search(index, found[0], 20, Selection.of(chosen))
    assert numbers.tolist() == expected[0].tolist()
    assert similarities.tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_of_other_kinds_no_less_is_found(kind, tmp_path):
    index, found = made(kind, 3000, tmp_path)
    hits = {"whole": 0, "shares": 0}
    for query in found[:40]:
        exact = set(np.argsort(-(found @ query), kind="stable")[:16].tolist())
        hits["whole"] += len(exact & set(search(index, query, 16)[0].tolist()))
        hits["shares"] += len(exact & set(merged(list(shares(index, query, 16, [0, 900, 2000, 3000])), 16)[0].tolist()))
    assert hits["shares"] >= hits["whole"] > 0
