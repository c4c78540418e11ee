"""vLLM: ``prompt_logprobs`` gives every token of a prompt with its number and its log-likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zicl.exceptions import ServerError
from zicl.lm.remote.backends.base import TokenSplit, check_logprobs, missing_error, select_part
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs


class PromptLogprobsBackend:
    """Asks for the log-likelihoods of a prompt given as token numbers."""

    name = "prompt_logprobs"

    def __init__(self, client: Client, model: str) -> None:
        self._client, self._model = client, model
        self._host = client.address.host

    def read(self, question: ScoreRequest) -> TokenLogprobs:
        """One request a question."""
        tokens = question.given.tokens + question.wanted.tokens
        entries = self._entries(list(tokens), len(tokens), 0)
        if len(entries) != len(tokens):
            raise ServerError(
                f"{self._host} gave {len(entries)} positions for a prompt of {len(tokens)} tokens",
                hint="the server cuts prompts: start it with a longer context (--max-model-len)",
            )
        start = len(question.given)
        wanted = zip(entries[start:], question.wanted.tokens, strict=True)
        return check_logprobs([self._own(entry, token) for entry, token in wanted], len(question.wanted), self._host)

    def split(self, text: str) -> TokenSplit:
        """The numbers the server gives to a text; of the first token it gives none."""
        # With 0 a position holds its own token and no other.
        entries = self._entries(text, len(text), 0)
        numbers = [None if entry is None else _only(entry, self._host) for entry in entries]
        return TokenSplit(tuple(numbers), len(numbers))

    def _entries(self, prompt: str | list[int], tokens: int, others: int) -> Sequence[dict[str, Any] | None]:
        body = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": others,
        }
        answer = self._client.post(f"{self._client.address.base}/completions", body, tokens=tokens)
        found = select_part(answer, "choices", 0, "prompt_logprobs", server=self._host)
        if not isinstance(found, list):
            raise missing_error("list of prompt_logprobs", self._host)
        return found

    def _own(self, entry: dict[str, Any] | None, token: int) -> Any:
        """The log-likelihood under the token's own number: another number would be another token's."""
        if not isinstance(entry, dict) or str(token) not in entry:
            raise ServerError(
                f"{self._host} gave no log-likelihood for token {token}",
                hint="the server reads the prompt with another tokenizer than the one named",
            )
        return select_part(entry, str(token), "logprob", server=self._host)


def _only(entry: dict[str, Any], server: str) -> int:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise missing_error("single token in a position of prompt_logprobs", server)
    return int(next(iter(entry)))


# -- vLLM: the log-likelihoods of some next tokens, named by number. The prompt stays in the server's prefix cache.


_PREFIX = "token_id:"


class NextTokenBackend:
    """Asks for one token and for the log-likelihoods of the wanted ones in its place."""

    name = "logprob_token_ids"

    def __init__(self, client: Client, model: str) -> None:
        self._client, self._model = client, model
        self._host = client.address.host

    def read(self, question: ScoreRequest) -> TokenLogprobs:
        """One request a question; every wanted number must come back."""
        wanted = question.wanted.tokens
        body = {
            "model": self._model,
            "prompt": list(question.given.tokens),
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": len(wanted),
            "logprob_token_ids": list(wanted),
            # Two tokens can look alike as text; their numbers never do.
            "return_tokens_as_token_ids": True,
        }
        answer = self._client.post(f"{self._client.address.base}/completions", body, tokens=len(question.given))
        found = select_part(answer, "choices", 0, "logprobs", "top_logprobs", 0, server=self._host)
        absent = [token for token in wanted if not isinstance(found, dict) or f"{_PREFIX}{token}" not in found]
        if absent:
            raise ServerError(
                f"{self._host} gave no log-likelihood for the tokens {absent[:5]}",
                hint="it does not know logprob_token_ids: use a newer vLLM",
            )
        return check_logprobs([found[f"{_PREFIX}{token}"] for token in wanted], len(wanted), self._host)
