"""What a way of asking must do, and the checks that every answer passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from zicl.exceptions import ServerError
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs

# Servers write minus infinity as a very low number; a real log-likelihood of one token is far above it.
_LOWEST = -1000.0
# Rounding may lift the log-likelihood of a sure token above 0.
_HIGHEST = 1e-3


@dataclass(frozen=True)
class TokenSplit:
    """How a server splits a text: its tokens, as numbers or as text (None where it does not say), and how many.

    A token that the server puts first but does not show is in the count only.
    """

    tokens: tuple[int | str | None, ...]
    count: int


class ResponseReader(Protocol):
    """Gets the log-likelihoods that a question asks for."""

    name: str

    def read(self, question: ScoreRequest) -> TokenLogprobs:
        """Ask the server: one number for every wanted token, each checked to belong to it."""
        ...


class LogprobBackend(ResponseReader, Protocol):
    """A reader that also shows how the server splits a text, so that tokenizers can be compared."""

    def split(self, text: str) -> TokenSplit:
        """The tokens the server makes of a text."""
        ...


def check_logprobs(numbers: Sequence[Any], wanted: int, server: str) -> TokenLogprobs:
    """The numbers, if each is a log-likelihood and none is missing."""
    if len(numbers) != wanted:
        raise ServerError(
            f"{server} gave {len(numbers)} log-likelihoods where {wanted} were asked for",
            hint="a proxy or the server itself shortens answers: look for a limit on log-probabilities in its options",
        )
    for number in numbers:
        if not isinstance(number, int | float) or not math.isfinite(number) or not _LOWEST < number < _HIGHEST:
            raise ServerError(
                f"{server} gave {number!r} where a log-likelihood was expected",
                hint="the server may have masked a token or overflowed in half precision: see its options",
            )
    return tuple(min(float(number), 0.0) for number in numbers)


def select_part(answer: Any, *path: str | int, server: str) -> Any:
    """What stands at ``path`` in an answer, or an error that says what is missing."""
    found = answer
    for step in path:
        inside = isinstance(found, dict) if isinstance(step, str) else isinstance(found, list) and len(found) > step
        if not inside or (isinstance(step, str) and step not in found):
            raise missing_error(".".join(map(str, path)), server)
        found = found[step]
    if found is None:
        raise missing_error(".".join(map(str, path)), server)
    return found


def missing_error(what: str, server: str) -> ServerError:
    """The error for an answer without the numbers."""
    return ServerError(f"the answer of {server} has no {what}", hint="the server does not give these log-likelihoods")
