"""vLLM: the log-likelihoods of some next tokens, named by number. The prompt stays in the server's prefix cache."""

from __future__ import annotations

from zicl.exceptions import ServerError
from zicl.lm.remote.backends.base import checked, part
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import Numbers, Question

_PREFIX = "token_id:"


class NextToken:
    """Asks for one token and for the log-likelihoods of the wanted ones in its place."""

    name = "logprob_token_ids"

    def __init__(self, client: Client, model: str) -> None:
        self._client, self._model = client, model
        self._host = client.address.host

    def read(self, question: Question) -> Numbers:
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
        found = part(answer, "choices", 0, "logprobs", "top_logprobs", 0, server=self._host)
        absent = [token for token in wanted if not isinstance(found, dict) or f"{_PREFIX}{token}" not in found]
        if absent:
            raise ServerError(
                f"{self._host} gave no log-likelihood for the tokens {absent[:5]}",
                hint="it does not know logprob_token_ids: use a newer vLLM",
            )
        return checked([found[f"{_PREFIX}{token}"] for token in wanted], len(wanted), self._host)
