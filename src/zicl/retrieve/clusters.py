"""Cluster similar inputs, which then share the demonstrations of the text at the centre of their cluster."""

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
    """The central texts of clusters, with their vectors. An input belongs to the most similar one."""

    texts: tuple[Text, ...]
    vectors: NDArray[np.float32]

    @classmethod
    def from_texts(cls, texts: Sequence[Text], embed: Callable[[Text], Vector]) -> Clusters:
        """Return the clusters with these central texts."""
        return cls(tuple(texts), np.stack([embed(text) for text in texts]))

    def nearest(self, vector: Vector) -> Text:
        """Return the central text of the cluster that a vector belongs to."""
        return self.texts[int(np.argmax(self.vectors @ vector))]


def fit_clusters(texts: Sequence[Text], embed: Callable[[Text], Vector], share: int, seed: int) -> Clusters:
    """Return clusters of about ``share`` texts each; the order of the texts does not matter."""
    from sklearn.cluster import KMeans

    distinct = sorted(set(texts), key=text_key)
    vectors = np.stack([embed(text) for text in distinct])
    count = -(-len(distinct) // share)
    state = stable_hash(seed, "clusters") % 2**32
    # Double precision: the rounding of another machine must not move a text to another cluster.
    fitted = KMeans(count, n_init=4, random_state=state).fit(vectors.astype(np.float64))
    central = []
    for number, centroid in enumerate(fitted.cluster_centers_):
        members = np.flatnonzero(fitted.labels_ == number)
        if len(members):
            central.append(int(members[np.argmax(vectors[members] @ centroid)]))
    return Clusters(tuple(distinct[n] for n in central), vectors[central])
