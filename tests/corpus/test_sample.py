"""The sample of paragraphs: the smallest priorities, each paragraph equally likely."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zicl.corpus.sample import ParagraphSample


@given(st.integers(1, 20), st.integers(0, 100), st.integers(0, 5))
def test_the_sample_is_the_n_smallest_priorities(limit, count, seed):
    sample = ParagraphSample(limit, seed, "d")
    offered = [priority for number in range(count) if (priority := sample.offer(number)) is not None]
    kept = [p for p, keep in zip(offered, sample.keeps(np.array(offered, dtype=np.uint64)), strict=True) if keep]
    everything = ParagraphSample(10**6, seed, "d")
    expected = sorted(everything.offer(number) for number in range(count))[:limit]
    assert sorted(kept) == expected


def test_every_item_is_equally_likely():
    counts = np.zeros(20)
    for seed in range(500):
        sample = ParagraphSample(5, seed, "d")
        offered = {n: p for n in range(20) if (p := sample.offer(n)) is not None}
        kept = sample.keeps(np.array(list(offered.values()), dtype=np.uint64))
        counts[[n for n, keep in zip(offered, kept, strict=True) if keep]] += 1
    # 125 expected each, standard deviation 9.7.
    assert counts.min() > 80
    assert counts.max() < 170
