"""SGLang: ``/generate`` gives the log-likelihoods of a prompt from a position on, each with the number of its token."""

from __future__ import annotations

from typing import Any

from zicl.exceptions import ServerError
from zicl.lm.remote.backends.base import LogprobBackend, LogprobReader, check_logprobs, missing_error, select_part
from zicl.lm.remote.backends.trial import TRIAL_TEXT, TokenSplit, check_split_after_first_line, prepends_bos
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs
from zicl.prompt.tokens import Tokenizer


def open_generate(client: Client, model: str, tokenizer: Tokenizer) -> LogprobBackend:
    """Return the backend, if the server reads the trial text as the tokenizer does."""
    backend = GenerateBackend(client, adds_bos=prepends_bos(tokenizer))
    check_split_after_first_line(tokenizer, backend.split(TRIAL_TEXT))
    return backend


class GenerateBackend:
    """Use the native interface, which takes token numbers and caches everything before the position."""

    name = "generate"

    def __init__(self, client: Client, *, adds_bos: bool) -> None:
        self.adds_bos = adds_bos
        self.next_token: LogprobReader | None = None
        self._client, self._host = client, client.address.host

    def read(self, request: ScoreRequest) -> TokenLogprobs:
        """Read the targets, whose numbers must be those that were sent."""
        tokens = request.given.tokens + request.targets.tokens
        # The token at the starting position has no log-likelihood, so start one earlier.
        entries = self._entries({"input_ids": list(tokens)}, len(tokens), len(request.given) - 1)[1:]
        if [entry[1] for entry in entries] != list(request.targets.tokens):
            raise ServerError(
                f"{self._host} gave the log-likelihoods of other tokens than the requested ones",
                hint="the server truncates prompts, or reads them with another tokenizer: see its options",
            )
        return check_logprobs([entry[0] for entry in entries], len(request.targets), self._host)

    def split(self, text: str) -> TokenSplit:
        """Return the token numbers of a text."""
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
        entries = select_part(answer, "meta_info", "input_token_logprobs", server=self._host)
        if not isinstance(entries, list) or not all(isinstance(entry, list) and len(entry) >= 2 for entry in entries):
            raise missing_error("list of input_token_logprobs", self._host)
        return entries
