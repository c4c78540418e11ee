"""Inputs that share their demonstrations: clusters of named texts, each known by one of them, then frozen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zicl._util.random import stable_hash
from zicl.inputs.pair import Text, text_key

Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Texts in the middle of their clusters, with their vectors. An input belongs to the most similar one."""

    texts: tuple[Text, ...]
    vectors: NDArray[np.float32]

    @classmethod
    def around(cls, texts: Sequence[Text], embed: Callable[[Text], Vector]) -> Clusters:
        """The clusters of these middle texts."""
        return cls(tuple(texts), np.stack([embed(text) for text in texts]))

    def nearest(self, vector: Vector) -> Text:
        """The middle of the cluster a vector belongs to."""
        return self.texts[int(np.argmax(self.vectors @ vector))]


def fit_clusters(texts: Sequence[Text], embed: Callable[[Text], Vector], share: int, seed: int) -> Clusters:
    """Clusters of about ``share`` texts each; they depend on the set of texts, not on its order."""
    from sklearn.cluster import KMeans

    distinct = sorted(set(texts), key=text_key)
    vectors = np.stack([embed(text) for text in distinct])
    count = -(-len(distinct) // share)
    state = stable_hash(seed, "clusters") % 2**32
    # Double precision: the rounding of another machine must not move a text to another cluster.
    fitted = KMeans(count, n_init=4, random_state=state).fit(vectors.astype(np.float64))
    middles = []
    for number, centre in enumerate(fitted.cluster_centers_):
        members = np.flatnonzero(fitted.labels_ == number)
        if len(members):
            middles.append(int(members[np.argmax(vectors[members] @ centre)]))
    return Clusters(tuple(distinct[n] for n in middles), vectors[middles])
