"""Find a backend for a server by asking about a trial text with known tokens.

A backend is used only if the server splits the text as the tokenizer does, gives a number for every token, and gives
different continuations different numbers. If none is usable, the server is refused, with the reason of each backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from zicl.exceptions import ServerError, TokenizationError, ZICLError
from zicl.lm.remote.backends.base import LogprobBackend, LogprobReader
from zicl.lm.remote.backends.echo import open_echo
from zicl.lm.remote.backends.sglang import open_generate
from zicl.lm.remote.backends.trial import (
    DIFFERENT,
    EQUAL,
    WrongTokenizerError,
    diverging_requests,
    prepends_bos,
    trial_logprobs,
    trial_requests,
)
from zicl.lm.remote.backends.vllm import NextTokenReader, open_prompt_logprobs
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs
from zicl.prompt.tokens import Segment, Tokenizer

# Tried in this order: backends that name tokens by number cannot mistake one for another.
BACKENDS: tuple[Callable[[Client, str, Tokenizer], LogprobBackend], ...] = (
    open_prompt_logprobs,
    open_generate,
    partial(open_echo, form="tokens"),
    partial(open_echo, form="text"),
    partial(open_echo, form="text behind bos"),
)
NEEDED = (
    "what works: vLLM (prompt_logprobs), SGLang (/generate), llama-cpp-python's server (with --logits_all true), or "
    "another server whose /completions takes echo with logprobs, as davinci-002 does; chat interfaces do not"
)


@dataclass(frozen=True)
class ProbeResult:
    """The backends of a server: for any ``sequence`` and for a ``next_token``; at least one of them is there.

    ``logprobs`` are the log-likelihoods of the trial text, by which the model is recognised again.
    """

    sequence: LogprobReader | None
    next_token: LogprobReader | None
    adds_bos: bool
    logprobs: TokenLogprobs

    @property
    def backend_names(self) -> str:
        """The names of the backends in use."""
        return " + ".join(reader.name for reader in (self.sequence, self.next_token) if reader is not None)


def probe_server(client: Client, model: str, tokenizer: Tokenizer, *, compared: bool = False) -> ProbeResult:
    """Try the backends in turn and return the first that works; refuse a server for which none does.

    ``compared`` says that the tokenizer is known to be the server's, which next tokens alone cannot show.
    """
    reasons: list[str] = []
    for open_backend in BACKENDS:
        try:
            backend = open_backend(client, model, tokenizer)
            requests = trial_requests(tokenizer, adds_bos=backend.adds_bos)
            logprobs = trial_logprobs(backend, requests)
        except (ServerError, TokenizationError) as error:
            _raise_if_general(error)
            reasons.append(error.message)
            continue
        next_token = backend.next_token
        if next_token is not None:
            request = _next_token_request(tokenizer, requests)
            place = len(request.given) - len(requests[0].given)
            expected = logprobs[place], logprobs[len(requests[0].targets) + place]
            next_token = next_token if _read_next_token(next_token, request, expected) else None
        return ProbeResult(backend, next_token, backend.adds_bos, logprobs)
    if compared:
        adds_bos, reader = prepends_bos(tokenizer), NextTokenReader(client, model)
        request = _next_token_request(tokenizer, trial_requests(tokenizer, adds_bos=adds_bos))
        if numbers := _read_next_token(reader, request):
            return ProbeResult(None, reader, adds_bos, numbers)
    raise ServerError(
        f"{client.address.host} gives no log-likelihoods for {model!r}: {'; '.join(dict.fromkeys(reasons))}",
        hint=NEEDED,
    )


def _raise_if_general(error: ZICLError) -> None:
    """Raise errors that every backend would get: no connection, no key, another tokenizer."""
    no_access = isinstance(error, ServerError) and (not error.reached or error.status in (401, 402, 403, 429))
    if no_access or isinstance(error, WrongTokenizerError):
        raise error


def _next_token_request(tokenizer: Tokenizer, requests: list[ScoreRequest]) -> ScoreRequest:
    """Return a request for the first tokens in which two continuations differ, at the position where they do."""
    first, second = diverging_requests(tokenizer, requests)
    tokens = first.targets.tokens[0], second.targets.tokens[0]
    return ScoreRequest(Segment("", first.given.tokens), Segment("", tokens), next_token=True)


def _read_next_token(
    reader: LogprobReader, request: ScoreRequest, expected: Sequence[float] | None = None
) -> TokenLogprobs | None:
    """Return the log-likelihoods of next tokens, if the server supports it and they are the expected ones."""
    try:
        numbers = reader.read(request)
    except ServerError as error:
        _raise_if_general(error)
        return None
    if abs(numbers[0] - numbers[1]) < DIFFERENT:
        return None
    agree = expected is None or all(abs(a - b) < EQUAL for a, b in zip(numbers, expected, strict=True))
    return numbers if agree else None
