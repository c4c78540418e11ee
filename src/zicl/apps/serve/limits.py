"""Limits of a request, checked before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zicl.apps.serve.problems import OVER_LIMIT, RefusedError, refusal
from zicl.apps.serve.schema import LimitsInfo
from zicl.exceptions import TextError, UsageError
from zicl.inputs.texts import check_text


@dataclass(frozen=True)
class RequestLimits:
    """``body`` is in bytes, ``deadline`` in seconds; ``queue`` counts all waiting texts, a long job as one."""

    body: int = 1 << 20
    texts: int = 256
    characters: int = 10_000
    labels: int = 100
    k: int = 64
    queue: int = 1024
    deadline: float = 300.0
    pile: int = 2000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (value > 0 and math.isfinite(value)):
                raise UsageError(f"the limit {name} is {value}; expected a number above 0")
        if self.texts > self.queue:
            raise UsageError(
                f"a request may hold {self.texts} texts, and only {self.queue} may wait",
                hint="raise --queue, or lower --max-texts",
            )

    def info(self) -> LimitsInfo:
        """Return the limits for /v1/info."""
        return LimitsInfo(**vars(self))

    def check_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the texts, stripped; refuse the first that cannot be used."""
        _at_most("texts", "texts", len(texts), self.texts, "send them in several requests")
        return [self.check_text(text, index) for index, text in enumerate(texts)]

    def check_pile(self, texts: Sequence[str]) -> list[str]:
        """Return texts that are learned from or laid out together, stripped."""
        _at_most("texts", "texts", len(texts), self.pile, "send a sample of them")
        return [self.check_text(text, index) for index, text in enumerate(texts)]

    def check_text(self, text: str, index: int | None = None) -> str:
        """Return a text, stripped, or refuse it. ``index`` is its place among several."""
        field = "text" if index is None else f"texts.{index}"
        _at_most(field, "characters", len(text), self.characters, "shorten the text, or split it")
        try:
            return check_text(text, field).strip()
        except TextError as error:
            refused = refusal(error)
            raise refused if index is None else refused.at(index) from error

    def check_labels(self, labels: Sequence[object] | None) -> None:
        """Refuse too many labels."""
        if labels is not None:
            _at_most("labels", "labels", len(labels), self.labels, "use fewer labels")

    def check_k(self, k: int | None) -> None:
        """Refuse too many demonstrations."""
        if k is not None:
            _at_most("k", "demonstrations", k, self.k, "use a smaller k")


def _at_most(field: str, what: str, count: int, most: int, hint: str) -> None:
    if count > most:
        raise RefusedError(
            OVER_LIMIT, f"{count:,} {what} were given", expected=f"at most {most:,} {what}", hint=hint, field=field
        )
