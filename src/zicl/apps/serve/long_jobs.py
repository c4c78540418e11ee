"""Jobs of many texts, which take several turns: learn from a pile, and lay texts out as a map.

Between two turns smaller requests are computed, and a job whose client has left is not continued.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from zicl._util.random import stable_hash
from zicl.apps.map.layout import choose_layout, different, find_outlying, lay_out_in_steps
from zicl.apps.serve import schema
from zicl.apps.serve.configurations import ClassifierCache, RequestedSettings
from zicl.apps.serve.jobs import JobAnswer, PendingJob
from zicl.apps.serve.queue import Unfinished
from zicl.inputs.pair import Text
from zicl.retrieve.encoder import Vectors

# How many texts are encoded in one turn: another request waits for no more than these.
_GROUP = 16

Embed = Callable[[Sequence[Text]], Vectors]
Steps = Generator[Unfinished, None, Any]


class LongJob(ABC):
    """A job that computes one of its ``steps`` per turn; the generator yields how far it is, and returns the answer."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.size = texts, len(texts)

    @cached_property
    def _running(self) -> Steps:
        return self.steps()

    @abstractmethod
    def steps(self) -> Steps:
        """Compute the answer in steps."""

    def begin(self) -> Unfinished | PendingJob:
        """Compute the next step; no prompt is scored."""
        try:
            return next(self._running)
        except StopIteration as finished:
            answer = finished.value
        return PendingJob(lambda _: answer)


class FitJob(LongJob):
    """Learn from texts; what was learned is kept under the job's ``id``, for later requests."""

    def __init__(self, configurations: ClassifierCache, texts: Sequence[str], settings: RequestedSettings) -> None:
        # As in the library, equal texts count once and their order plays no role.
        super().__init__(sorted(set(texts)))
        self._configurations, self._settings = configurations, settings
        self.id = f"{stable_hash(repr(settings), *self.texts):032x}"

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "fit", self.id

    def steps(self) -> Steps:
        """Encode the texts in groups, then learn from them."""
        found = self._configurations.learned(self.id)
        if found is None:
            # A mistake in the settings is found before anything is encoded.
            ensemble = self._configurations.get(self._settings).ensemble
            vectors = yield from _encode(ensemble.embed, self.texts, self._configurations.check_fits)
            yield Unfinished("learning", self.size, self.size)
            found = self._configurations.learn(self.id, self._settings, self.texts, vectors)
        pile = found.ensemble.pile
        response = schema.FitResponse(
            fit=self.id,
            weight=0.0 if pile is None else pile.weight,
            warnings=list(found.warnings),
            settings=found.settings,
        )
        # Not kept: it would be answered after what was learned is gone.
        return JobAnswer(response, keep=False)


class MapJob(LongJob):
    """Lay texts out in two dimensions, so that similar ones are neighbours."""

    def __init__(self, embed: Callable[[], Embed], texts: Sequence[str]) -> None:
        super().__init__(texts)
        self._embed = embed

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "map", stable_hash(*self.texts)

    def steps(self) -> Steps:
        """Encode the texts in groups, as a fit does, whose vectors are still known; then place them."""
        texts, places = different(self.texts)
        known = yield from _encode(self._embed(), sorted(set(self.texts)))
        vectors = np.stack([known[text] for text in texts])
        layout = choose_layout("auto", len(vectors))
        placing = lay_out_in_steps(vectors, layout)
        while True:
            try:
                yield Unfinished("drawing", *next(placing))
            except StopIteration as finished:
                points = finished.value[places]
                break
        response = schema.MapResponse(
            points=[[round(float(x), 4), round(float(y), 4)] for x, y in points],
            outlying=find_outlying(vectors[places]).tolist(),
            layout="tsne" if layout == "tsne" else "pca",
        )
        return JobAnswer(response)


def _encode(
    embed: Embed, texts: Sequence[str], check: Callable[[Sequence[str], Vectors], None] | None = None
) -> Generator[Unfinished, None, dict[Text, Vectors]]:
    """Return the vectors of different texts, encoded group by group; ``check`` may refuse them by the first vectors."""
    vectors = dict[Text, Vectors]()
    for start in range(0, len(texts), _GROUP):
        yield Unfinished("encoding", start, len(texts))
        group = texts[start : start + _GROUP]
        encoded = embed(group)
        if check is not None and start == 0:
            check(texts, encoded)
        vectors |= zip(group, encoded, strict=True)
    return vectors
