"""vLLM: ``prompt_logprobs`` gives every token of a prompt with its number and its log-likelihood.

For next tokens, ``logprob_token_ids`` gives those of chosen tokens, while the prompt stays in the prefix cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zicl.exceptions import ServerError
from zicl.lm.remote.backends.base import LogprobBackend, LogprobReader, check_logprobs, missing_error, select_part
from zicl.lm.remote.backends.trial import TRIAL_TEXT, TokenSplit, check_split_after_first_line, prepends_bos
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs
from zicl.prompt.tokens import Tokenizer

_PREFIX = "token_id:"


def open_prompt_logprobs(client: Client, model: str, tokenizer: Tokenizer) -> LogprobBackend:
    """Return the backend, if the server reads the trial text as the tokenizer does."""
    backend = PromptLogprobsBackend(client, model, adds_bos=prepends_bos(tokenizer))
    check_split_after_first_line(tokenizer, backend.split(TRIAL_TEXT))
    return backend


class PromptLogprobsBackend:
    """Request the log-likelihoods of a prompt that is sent as token numbers."""

    name = "prompt_logprobs"

    def __init__(self, client: Client, model: str, *, adds_bos: bool) -> None:
        self.adds_bos = adds_bos
        self.next_token: LogprobReader | None = NextTokenReader(client, model)
        self._client, self._model, self._host = client, model, client.address.host

    def read(self, request: ScoreRequest) -> TokenLogprobs:
        """Read each target under its number: another number would be that of another token."""
        tokens = request.given.tokens + request.targets.tokens
        entries = self._entries(list(tokens), len(tokens))
        if len(entries) != len(tokens):
            raise ServerError(
                f"{self._host} gave {len(entries)} positions for a prompt of {len(tokens)} tokens",
                hint="the server truncates prompts: start it with a longer context (--max-model-len)",
            )
        numbers = []
        for entry, token in zip(entries[len(request.given) :], request.targets.tokens, strict=True):
            if not isinstance(entry, dict) or str(token) not in entry:
                raise ServerError(
                    f"{self._host} gave no log-likelihood for token {token}",
                    hint="the server reads the prompt with another tokenizer than the one named",
                )
            numbers.append(select_part(entry, str(token), "logprob", server=self._host))
        return check_logprobs(numbers, len(request.targets), self._host)

    def split(self, text: str) -> TokenSplit:
        """Return the token numbers of a text; the server gives none for the first token."""
        numbers: list[int | None] = []
        for entry in self._entries(text, len(text)):
            names = [] if entry is None else list(entry) if isinstance(entry, dict) else None
            if names is None or len(names) != (entry is not None) or not all(map(_is_number, names)):
                raise missing_error("single token in a position of prompt_logprobs", self._host)
            numbers.append(int(names[0]) if names else None)
        return TokenSplit(tuple(numbers), len(numbers))

    def _entries(self, prompt: str | list[int], tokens: int) -> Sequence[dict[str, Any] | None]:
        body = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
            # With 0, a position holds the token of the prompt and no alternatives.
            "prompt_logprobs": 0,
        }
        answer = self._client.post(f"{self._client.address.base}/completions", body, tokens=tokens)
        entries = select_part(answer, "choices", 0, "prompt_logprobs", server=self._host)
        if not isinstance(entries, list):
            raise missing_error("list of prompt_logprobs", self._host)
        return entries


def _is_number(name: str) -> bool:
    return name.isdecimal() and len(name) < 20


class NextTokenReader:
    """Generate one token, and request the log-likelihoods of the targets in its place."""

    name = "logprob_token_ids"

    def __init__(self, client: Client, model: str) -> None:
        self._client, self._model, self._host = client, model, client.address.host

    def read(self, request: ScoreRequest) -> TokenLogprobs:
        """Read the log-likelihood of each target, all of which must be in the answer."""
        targets = request.targets.tokens
        body = {
            "model": self._model,
            "prompt": list(request.given.tokens),
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": len(targets),
            "logprob_token_ids": list(targets),
            # Two tokens may have the same text, but never the same number.
            "return_tokens_as_token_ids": True,
            # The model may bring another, which changes the numbers in --logprobs-mode processed_logprobs.
            "repetition_penalty": 1.0,
        }
        answer = self._client.post(f"{self._client.address.base}/completions", body, tokens=len(request.given))
        numbers = select_part(answer, "choices", 0, "logprobs", "top_logprobs", 0, server=self._host)
        absent = [token for token in targets if not isinstance(numbers, dict) or f"{_PREFIX}{token}" not in numbers]
        if absent:
            raise ServerError(
                f"{self._host} gave no log-likelihood for the tokens {absent[:5]}",
                hint="use a newer vLLM: this one does not know logprob_token_ids",
            )
        return check_logprobs([numbers[f"{_PREFIX}{token}"] for token in targets], len(targets), self._host)
