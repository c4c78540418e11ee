"""Echo: the completions interface repeats the prompt with the log-likelihood of each of its tokens.

The prompt is sent as token numbers if the server accepts them. A server that accepts only text splits it by itself:
then its tokens must begin where ours do, which the offsets of the tokens in the text show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from zicl.exceptions import ServerError, TokenizationError
from zicl.lm.remote.backends.base import LogprobBackend, LogprobReader, check_logprobs, missing_error, select_part
from zicl.lm.remote.backends.trial import (
    EQUAL,
    TRIAL_TEXT,
    TokenSplit,
    check_split,
    diverging_requests,
    same_tokens,
    trial_logprobs,
    trial_requests,
)
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs
from zicl.prompt.tokens import Tokenizer

# tokens: token numbers. text: as text, to which the server may prepend a BOS token. text behind bos: as text that
# begins with the BOS token spelled out.
Form = Literal["tokens", "text", "text behind bos"]


def open_echo(client: Client, model: str, tokenizer: Tokenizer, *, form: Form) -> LogprobBackend:
    """Return the backend, if the server echoes the trial text in this form with the right numbers."""
    server_adds_bos = check_split(tokenizer, EchoBackend(client, model, "text").split(TRIAL_TEXT))
    if form == "text behind bos" and (server_adds_bos or tokenizer.bos is None):
        raise ServerError("there is no other beginning-of-sequence token to put first")
    adds_bos, bos = server_adds_bos or form == "text behind bos", None
    if adds_bos and form != "tokens" and tokenizer.bos is not None:
        bos = (tokenizer.bos, tokenizer.decode((tokenizer.bos,)))
    backend = EchoBackend(client, model, form, adds_bos=adds_bos, bos=bos)
    requests = trial_requests(tokenizer, adds_bos=adds_bos)
    # The checks below are about numbers that make sense.
    trial_logprobs(backend, requests)
    sent = requests[0].given.tokens + requests[0].targets.tokens
    if form == "tokens" and not same_tokens(tokenizer, backend.echo(requests[0]).tokens, sent):
        raise ServerError(f"{client.address.host} repeats other tokens than the numbers that were sent")
    # The most likely token at a position does not depend on the token that is there. If it does, the numbers are those
    # of the next position, as with llama-cpp-python if there is no first token that it can leave out.
    best = [backend.best_next(request) for request in diverging_requests(tokenizer, requests)]
    if abs(best[0] - best[1]) > EQUAL:
        raise ServerError(f"{client.address.host} gives log-likelihoods that are one token off in its {backend.name}")
    return backend


@dataclass(frozen=True)
class EchoResponse:
    """The lists of an answer, one entry per token of the prompt, and the number of tokens that the server counts."""

    tokens: list[str]
    offsets: list[int]
    logprobs: list[Any]
    best: list[Any]
    count: int


class EchoBackend:
    """Request an echo and one generated token, which is dropped: to some servers, none at all means no limit.

    ``bos`` is the token, as number and text, that the server reads before a text.
    """

    def __init__(
        self,
        client: Client,
        model: str,
        form: Form = "tokens",
        *,
        adds_bos: bool = False,
        bos: tuple[int, str] | None = None,
    ) -> None:
        self.name, self.adds_bos = f"echo of {form}", adds_bos
        self.next_token: LogprobReader | None = None
        self._client, self._model, self._form, self._bos = client, model, form, bos
        self._host = client.address.host

    def read(self, request: ScoreRequest) -> TokenLogprobs:
        """Read the targets after checking where they begin."""
        echoed = self.echo(request)
        start, count = self._start(request, echoed), len(request.targets)
        return check_logprobs(echoed.logprobs[start : start + count], count, self._host)

    def best_next(self, request: ScoreRequest) -> float:
        """Return the log-likelihood of the most likely token at the position of the first target."""
        echoed = self.echo(request)
        best = echoed.best[self._start(request, echoed)]
        if not isinstance(best, dict) or not best:
            raise missing_error("top_logprobs", self._host)
        return max(check_logprobs(list(best.values()), len(best), self._host))

    def split(self, text: str) -> TokenSplit:
        """Return the texts of the tokens that the server makes of a text."""
        echoed = self._post(text, len(text), len(text))
        return TokenSplit(tuple(echoed.tokens), echoed.count)

    def echo(self, request: ScoreRequest) -> EchoResponse:
        """Return what the server repeats of a request."""
        prompt = request.given + request.targets
        if self._form == "tokens":
            return self._post(list(prompt.tokens), len(prompt))
        return self._post(self._spelled_bos(request) + prompt.text, len(prompt), len(prompt.text))

    def _spelled_bos(self, request: ScoreRequest) -> str:
        """Return the first token as text, if the server has to read it from the text."""
        if self._bos is None:
            return ""
        if request.given.tokens[:1] != (self._bos[0],):
            raise TokenizationError(
                f"{self._host} reads a beginning-of-sequence token before every text, and this prompt has none",
                hint='leave prompt.bos at "auto"',
            )
        return self._bos[1] if self._form == "text behind bos" else ""

    def _start(self, request: ScoreRequest, echoed: EchoResponse) -> int:
        """Return where the targets begin, after checking that the server split the text as we did."""
        if self._form == "tokens":
            return len(request.given)
        expected = len(request.given) - (self._bos is not None), len(request.targets)
        joint = len(request.given.text)
        start = sum(offset < joint for offset in echoed.offsets)
        if start >= len(echoed.offsets) or echoed.offsets[start] != joint:
            raise TokenizationError(
                f"{self._host} reads a token that spans the boundary between given and scored text: "
                f"{echoed.tokens[start - 1]!r}",
                hint="use a server that takes token numbers (vLLM, SGLang), or a template whose lines end differently",
            )
        if (start, len(echoed.offsets) - start) != expected:
            raise TokenizationError(
                f"{self._host} reads {start} + {len(echoed.offsets) - start} tokens where the tokenizer "
                f"writes {expected[0]} + {expected[1]}",
                hint="the text contains a special token spelled out, or the tokenizer is not the server's",
            )
        return start

    def _post(self, prompt: str | list[int], tokens: int, length: int | None = None) -> EchoResponse:
        """Send a prompt of this many tokens; of a text, the tokens of the last ``length`` characters are shown."""
        body = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": 1,
            "echo": True,
        }
        answer = self._client.post(f"{self._client.address.base}/completions", body, tokens=tokens)
        logprobs = select_part(answer, "choices", 0, "logprobs", server=self._host)
        lists = [select_part(logprobs, key, server=self._host) for key in ("tokens", "text_offset", "token_logprobs")]
        if not all(isinstance(one, list) for one in lists) or not all(isinstance(at, int) for at in lists[1]):
            raise missing_error("lists of tokens, their offsets and numbers", self._host)
        lists.append(logprobs.get("top_logprobs") or [None] * len(lists[0]))
        if not isinstance(lists[-1], list) or len({len(one) for one in lists}) != 1:
            raise ServerError(
                f"{self._host} gave lists of different lengths for one prompt",
                hint="look for a limit on the length of answers in the options of the server, or of a proxy before it",
            )
        # Offsets count from the first token that is shown. The tokens after the prompt were generated.
        first = min(lists[1], default=0)
        lists[1] = [offset - first for offset in lists[1]]
        count = len(prompt) if length is None else sum(offset < length for offset in lists[1])
        repeats = not isinstance(prompt, str) or str(answer["choices"][0].get("text")).startswith(prompt)
        if not repeats or len(lists[0]) - count not in (0, 1):
            raise missing_error("echo: it does not repeat the prompt, token for token", self._host)
        usage = answer.get("usage")
        used = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        tokens_, offsets, numbers, best = (one[:count] for one in lists)
        return EchoResponse(tokens_, offsets, numbers, best, used if isinstance(used, int) else count)
