"""Lay vectors out in two dimensions, so that similar texts are neighbours; and find those that are like no others."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from zicl._util.process import require_extra, thread_count
from zicl.inputs.pair import Text
from zicl.retrieve.encoder import Vectors

Layout = Literal["auto", "tsne", "pca"]
Points = NDArray[np.float32]

# Fewer texts have no neighbourhoods to show; t-SNE takes no fewer than the second number.
_MIN_TSNE, _FEWEST_TSNE = 15, 3
_PERPLEXITY = 30.0
# t-SNE's phases: iterations, exaggeration, momentum. Between the steps of one, a server does other work. What brings
# many texts into groups at first would draw a few together into one point.
_PHASES, _PHASES_OF_FEW = ((250, 12.0, 0.5), (500, None, 0.8)), ((250, 4.0, 0.5), (500, None, 0.8))
_FEW = 100
_STEP = 50
# With fewer texts, threads wait for each other longer than they compute.
_MIN_THREADED = 5000
# Vectors have a length of 1: smaller differences are those of rounding, and are not drawn as large as the map.
_ROUNDING = 1e-4
# A text whose nearest texts are this many (robust) standard deviations less similar than is usual is like no others.
_NEIGHBOURS, _DEVIATIONS = 10, 3.0


def different(texts: Sequence[Text]) -> tuple[list[Text], list[int]]:
    """Return the different texts, which are laid out, and for each text the number of its place among them.

    >>> different(["yes", "no", "yes"])
    (['yes', 'no'], [0, 1, 0])
    """
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), [numbers[text] for text in texts]


def choose_layout(layout: Layout, count: int) -> Layout:
    """Return the layout of so many different texts; ``auto`` is t-SNE where openTSNE is installed, and of a few PCA."""
    if layout == "tsne":
        require_extra("map", "the layout tsne", "openTSNE")
    if layout != "auto":
        return "pca" if count < _FEWEST_TSNE else layout
    return "tsne" if count >= _MIN_TSNE and find_spec("openTSNE") is not None else "pca"


def lay_out(vectors: Vectors, layout: Layout = "auto", seed: int = 0) -> Points:
    """Return a point for every vector, the whole in a square from -1 to 1.

    >>> lay_out(np.eye(3, dtype=np.float32), "pca").shape
    (3, 2)
    """
    steps = lay_out_in_steps(vectors, layout, seed)
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            points: Points = finished.value
            return points


def lay_out_in_steps(
    vectors: Vectors, layout: Layout = "auto", seed: int = 0
) -> Generator[tuple[int, int], None, Points]:
    """Yield how many steps are done, of how many; return what ``lay_out`` does."""
    chosen = choose_layout(layout, len(vectors))
    points = _principal(vectors) if chosen == "pca" else (yield from _neighbourhoods(vectors, seed))
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    scaled: Points = (points / max(float(np.abs(points).max()), _ROUNDING)).astype(np.float32)
    return scaled


def _principal(vectors: Vectors) -> NDArray[np.float64]:
    """Return the first two principal components; signs mean nothing, so the largest entry of an axis is positive."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    basis = axes[:, ::-1][:, :2]
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), [0, 1]])
    points: NDArray[np.float64] = centred @ basis
    return points


def _neighbourhoods(vectors: Vectors, seed: int) -> Generator[tuple[int, int], None, NDArray[np.float64]]:
    from openTSNE import TSNE

    # Vectors of unit length: the order of distances is that of cosines.
    embedding = TSNE(
        perplexity=min(_PERPLEXITY, (len(vectors) - 1) / 3),
        initialization="pca",
        random_state=seed,
        n_jobs=1 if len(vectors) < _MIN_THREADED else thread_count(),
    ).prepare_initial(vectors)
    phases = _PHASES_OF_FEW if len(vectors) < _FEW else _PHASES
    done, total = 0, sum(count for count, _, _ in phases)
    for count, exaggeration, momentum in phases:
        for _ in range(0, count, _STEP):
            yield done, total
            embedding.optimize(n_iter=_STEP, exaggeration=exaggeration, momentum=momentum, inplace=True)
            done += _STEP
    return np.asarray(embedding, dtype=np.float64)


def find_outlying(vectors: Vectors) -> NDArray[np.bool_]:
    """Return which texts are like no others: even their nearest texts are far, measured by what is usual here."""
    import faiss

    count = min(_NEIGHBOURS, len(vectors) - 1)
    if count < 1:
        return np.zeros(len(vectors), dtype=bool)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    # The first is the text itself, or its twin.
    similarity = index.search(vectors, count + 1)[0][:, 1:].mean(axis=1)
    median = np.median(similarity)
    # 1.4826 times the median deviation is the standard deviation of normal numbers.
    spread = 1.4826 * np.median(np.abs(similarity - median))
    outlying: NDArray[np.bool_] = similarity < median - _DEVIATIONS * max(float(spread), 1e-6)
    return outlying
