"""The texts, piles and maps that benchmarks/soak.py asks a server about, with the library's answers."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
LABELS = ["terrible", "great"]
OTHER_LABELS = [["sports", "business"], ["music", "food", "travel"], ["question", "complaint", "praise"]]
JOB, PILE, COMMON = 2000, 500, 500
# More fits than the server keeps, which is 16; and for each crowd twice as many as it admits at once, which is 4.
FITS, CROWDS, CROWD, MAPS = 20, 2, 8, 6
# How many texts the server encodes in a turn of a map. t-SNE enlarges a difference in the last digit of a vector.
GROUP = 16


@dataclass(frozen=True, eq=False)
class KnownFit:
    """A pile, what it was learned for, how much it counts, and the answers for some of its texts and for others."""

    texts: list[str]
    labels: list[str]
    weight: float
    right: dict[str, dict[str, float]]


@dataclass(frozen=True)
class KnownMap:
    """Texts and their places."""

    texts: list[str]
    points: list[list[float]]
    outlying: list[bool]


class Known:
    """Texts with the library's answers; each fresh text is given out once."""

    def __init__(self, folder: Path, count: int) -> None:
        from zicl import ZICLClassifier
        from zicl.apps.demo import reviews
        from zicl.corpus.builder import build_corpus
        from zicl.corpus.shards import BuildOptions
        from zicl.corpus.sources import find_sources
        from zicl.retrieve.builder import build_index
        from zicl.retrieve.encoder import load_encoder

        self._corpus, encoder = folder / "notes.zicl", load_encoder(offline=True)
        sources = {path.stem: [path] for path in sorted((ROOT / "docs" / "page_corpus").glob("*.txt"))}
        build_index(build_corpus(find_sources([], sources), self._corpus, BuildOptions()), encoder)
        every = list(dict.fromkeys(text for text, _ in reviews("rotten_tomatoes", offline=True)))
        random.Random(0).shuffle(every)
        pile, self.texts = every[:PILE], every[PILE : PILE + count]
        (folder / "pile.txt").write_text("\n".join(pile), encoding="utf-8")
        classifier = ZICLClassifier(self._corpus, LABELS, offline=True).fit(pile)
        self.right = dict(_answers(classifier, self.texts))
        self.common = self.texts[:COMMON]
        self.others = []
        for labels in OTHER_LABELS:
            # The pile holds for the labels it was learned for only.
            other = ZICLClassifier(self._corpus, labels, method="encoder", offline=True).fit()
            self.others.append((labels, dict(_answers(other, self.common[:100]))))
        chosen = random.Random(1)
        fits = [self._fit(number, chosen) for number in range(FITS + CROWDS * CROWD)]
        self.fits, rest = fits[:FITS], fits[FITS:]
        self.crowds = [rest[start : start + CROWD] for start in range(0, len(rest), CROWD)]
        self.maps = [self._map(encoder, chosen) for _ in range(MAPS)]
        self._next = COMMON
        self._lock = threading.Lock()

    def _fit(self, number: int, chosen: random.Random) -> KnownFit:
        from zicl import ZICLClassifier

        labels = [LABELS, *OTHER_LABELS][number % (1 + len(OTHER_LABELS))]
        texts = chosen.sample(self.common, chosen.randint(40, 80))
        classifier = ZICLClassifier(self._corpus, labels, offline=True).fit(texts)
        asked = list(dict.fromkeys([*texts[:10], *chosen.sample(self.common, 10)]))
        learned = classifier.fitted_.pile
        assert learned is not None
        return KnownFit(texts, labels, learned.weight, dict(_answers(classifier, asked)))

    def _map(self, encoder: Any, chosen: random.Random) -> KnownMap:
        from zicl.apps.map.layout import find_outlying, lay_out

        texts = chosen.sample(self.common, chosen.randint(40, 80))
        ordered = sorted(texts)
        groups = [ordered[start : start + GROUP] for start in range(0, len(ordered), GROUP)]
        known = dict(zip(ordered, np.concatenate([encoder.encode(group) for group in groups]), strict=True))
        vectors = np.stack([known[text] for text in texts])
        return KnownMap(texts, lay_out(vectors).tolist(), find_outlying(vectors).tolist())

    def fresh(self) -> str:
        """Return a text that the server has not seen."""
        with self._lock:
            self._next += 1
            return self.texts[self._next - 1]

    def job(self) -> list[str]:
        """Return the texts of a large job, all fresh."""
        with self._lock:
            self._next += JOB
            return self.texts[self._next - JOB : self._next]

    def any(self) -> str:
        """Return a text that is asked about again and again."""
        return random.choice(self.common)


def _answers(classifier: Any, texts: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    for text, result in zip(texts, classifier.classify(texts), strict=True):
        yield text, result.probabilities
