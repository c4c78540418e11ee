"""SGLang: ``/generate`` gives the log-likelihoods of a prompt from a place on, each with its token's number."""

from __future__ import annotations

from typing import Any

from zicl.exceptions import ServerError
from zicl.lm.remote.backends.base import TokenSplit, check_logprobs, missing_error, select_part
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs


class GenerateBackend:
    """Asks the server's own interface, which takes token numbers and keeps what stands before the place cached."""

    name = "generate"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._host = client.address.host

    def read(self, question: ScoreRequest) -> TokenLogprobs:
        """One request a question."""
        tokens = question.given.tokens + question.wanted.tokens
        # The token at the place itself has no number: nothing before it was looked at. So one earlier.
        entries = self._entries({"input_ids": list(tokens)}, len(tokens), len(question.given) - 1)[1:]
        if [entry[1] for entry in entries] != list(question.wanted.tokens):
            raise ServerError(
                f"{self._host} gave the log-likelihoods of other tokens than those asked for",
                hint="the server cuts prompts, or reads them with another tokenizer: see its options",
            )
        return check_logprobs([entry[0] for entry in entries], len(question.wanted), self._host)

    def split(self, text: str) -> TokenSplit:
        """The numbers the server gives to a text."""
        entries = self._entries({"text": text}, len(text), 0)
        return TokenSplit(tuple(entry[1] for entry in entries), len(entries))

    def _entries(self, prompt: dict[str, Any], tokens: int, start: int) -> list[list[Any]]:
        body = {
            **prompt,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True,
            "logprob_start_len": start,
        }
        answer = self._client.post(f"{self._client.address.root}/generate", body, tokens=tokens)
        found = select_part(answer, "meta_info", "input_token_logprobs", server=self._host)
        if not isinstance(found, list) or not all(isinstance(entry, list) and len(entry) >= 2 for entry in found):
            raise missing_error("list of input_token_logprobs", self._host)
        return found
