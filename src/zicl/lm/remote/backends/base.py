"""The interface of a backend, and the checks that every answer passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from zicl.exceptions import ServerError
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs

# Servers write minus infinity as a very low number; the real log-likelihood of a token is far above it.
_LOWEST = -1000.0
# Rounding may lift the log-likelihood of a certain token above 0.
_HIGHEST = 1e-3


class LogprobReader(Protocol):
    """A way to get the log-likelihoods of a request; ``name`` is a part of the identity of the model."""

    name: str

    def read(self, request: ScoreRequest) -> TokenLogprobs:
        """Send the request; return one number per target token, each checked to belong to it."""
        ...


class LogprobBackend(LogprobReader, Protocol):
    """A reader for any sequence of target tokens.

    ``adds_bos`` says whether prompts must begin with the beginning-of-sequence token. ``next_token`` is a reader for
    requests of next tokens, if the server may have a faster interface for these.
    """

    adds_bos: bool
    next_token: LogprobReader | None


def check_logprobs(numbers: Sequence[Any], count: int, server: str) -> TokenLogprobs:
    """Return the numbers if there are ``count`` of them and each is a log-likelihood."""
    if len(numbers) != count:
        raise ServerError(
            f"{server} gave {len(numbers)} log-likelihoods where {count} were requested",
            hint="look for a limit on log-probabilities in the options of the server, or of a proxy before it",
        )
    for number in numbers:
        if not isinstance(number, int | float) or not math.isfinite(number) or not _LOWEST < number < _HIGHEST:
            raise ServerError(
                f"{server} gave {number!r} where a log-likelihood was expected",
                hint="the server may give logits (vLLM: --logprobs-mode), mask tokens, or overflow in half precision: "
                "see its options",
            )
    return tuple(min(float(number), 0.0) for number in numbers)


def select_part(answer: Any, *path: str | int, server: str) -> Any:
    """Return the value at ``path`` in an answer, or raise an error that says what is missing."""
    value = answer
    for step in path:
        inside = isinstance(value, dict) if isinstance(step, str) else isinstance(value, list) and len(value) > step
        if not inside or (isinstance(step, str) and step not in value):
            raise missing_error(".".join(map(str, path)), server)
        value = value[step]
    if value is None:
        raise missing_error(".".join(map(str, path)), server)
    return value


def missing_error(what: str, server: str) -> ServerError:
    """Return the error for an answer without the numbers."""
    return ServerError(f"the answer of {server} has no {what}", hint="the server does not give these log-likelihoods")
