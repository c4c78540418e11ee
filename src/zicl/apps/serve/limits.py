"""What a request may ask for, checked before anything is computed."""

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
    """``body`` is in bytes, ``deadline`` in seconds; ``queue`` counts the texts of all requests that wait."""

    body: int = 1 << 20
    texts: int = 256
    characters: int = 10_000
    labels: int = 100
    k: int = 64
    queue: int = 1024
    deadline: float = 300.0

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
        """The limits as the API tells them."""
        return LimitsInfo(**vars(self))

    def check_texts(self, texts: Sequence[str]) -> list[str]:
        """The texts, stripped; or a refusal that names the first that cannot be used."""
        _at_most("texts", "texts", len(texts), self.texts, "send them in several requests")
        return [self.check_text(text, f"texts.{number}") for number, text in enumerate(texts)]

    def check_text(self, text: str, field: str = "text") -> str:
        """A text, stripped; or a refusal. ``field`` is its place in the request."""
        _at_most(field, "characters", len(text), self.characters, "shorten the text, or split it")
        try:
            return check_text(text, field).strip()
        except TextError as error:
            refused = refusal(error)
            index = int(field.rpartition(".")[2]) if "." in field else None
            raise refused if index is None else refused.at(index) from error

    def check_labels(self, labels: Sequence[object] | None) -> None:
        """A refusal if there are too many labels."""
        if labels is not None:
            _at_most("labels", "labels", len(labels), self.labels, "use fewer labels")

    def check_k(self, k: int | None) -> None:
        """A refusal if too many demonstrations are asked for."""
        if k is not None:
            _at_most("k", "demonstrations", k, self.k, "use a smaller k")


def _at_most(field: str, what: str, found: int, most: int, hint: str) -> None:
    if found > most:
        raise RefusedError(
            OVER_LIMIT, f"{found:,} {what} were given", expected=f"at most {most:,} {what}", hint=hint, field=field
        )
