"""Echo: the completions interface repeats the prompt, with the log-likelihood of every token of it.

The prompt goes as token numbers where the server takes them. Where it takes only text, the server splits it by
itself: then its tokens must begin where ours do, which their offsets in the text show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from zicl.exceptions import ServerError, TokenizationError
from zicl.lm.remote.backends.base import TokenSplit, check_logprobs, missing_error, select_part
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs

# tokens: numbers, as they are. text: as text, a first token is the server's own matter.
# text behind bos: as text that begins with the beginning-of-sequence token written out.
Form = Literal["tokens", "text", "text behind bos"]


@dataclass(frozen=True)
class EchoResponse:
    """The lists of an answer, one entry a token, without the one that was generated."""

    tokens: list[str]
    offsets: list[int]
    numbers: list[Any]
    best: list[Any]
    count: int


class EchoBackend:
    """Asks for one token more than the prompt and drops it: none at all means no limit to some servers."""

    def __init__(self, client: Client, model: str, form: Form = "tokens", bos: tuple[int, str] | None = None) -> None:
        self.name = f"echo of {form}"
        self._client, self._model, self._form, self._bos = client, model, form, bos
        self._host = client.address.host

    def read(self, question: ScoreRequest) -> TokenLogprobs:
        """One request a question."""
        echoed = self.ask(question)
        start = self._start(question, echoed)
        return check_logprobs(echoed.numbers[start : start + len(question.wanted)], len(question.wanted), self._host)

    def ask(self, question: ScoreRequest) -> EchoResponse:
        """What the server repeats of a question."""
        whole = question.given + question.wanted
        if self._form == "tokens":
            return self._ask(list(whole.tokens), len(whole))
        return self._ask(self._front(question) + whole.text, len(whole), len(whole.text))

    def best_next(self, question: ScoreRequest) -> float:
        """The log-likelihood of the most likely token in the place of the first wanted one."""
        echoed = self.ask(question)
        best = echoed.best[self._start(question, echoed)]
        if not isinstance(best, dict) or not best:
            raise missing_error("top_logprobs", self._host)
        return max(check_logprobs(list(best.values()), len(best), self._host))

    def split(self, text: str) -> TokenSplit:
        """The texts of the tokens the server makes of a text."""
        echoed = self._ask(text, len(text), len(text))
        return TokenSplit(tuple(echoed.tokens), echoed.count)

    def _front(self, question: ScoreRequest) -> str:
        """What stands before the text: the first token, written out where the server reads it so."""
        if self._bos is None:
            return ""
        if question.given.tokens[:1] != (self._bos[0],):
            raise TokenizationError(
                f"{self._host} reads a beginning-of-sequence token before every text, and this prompt has none",
                hint='leave prompt.bos as it is ("auto")',
            )
        return self._bos[1] if self._form == "text behind bos" else ""

    def _start(self, question: ScoreRequest, echoed: EchoResponse) -> int:
        """Where the wanted tokens begin, after checking that the server split the text as we did."""
        given, wanted = len(question.given), len(question.wanted)
        if self._form == "tokens":
            return given
        shown = given - (self._bos is not None)
        joint = len(question.given.text)
        begin = sum(offset < joint for offset in echoed.offsets)
        if begin >= len(echoed.offsets) or echoed.offsets[begin] != joint:
            raise TokenizationError(
                f"{self._host} reads a token that spans the joint between given and scored text: "
                f"{echoed.tokens[begin - 1]!r}",
                hint="use a server that takes token numbers (vLLM, SGLang), or a template whose lines end otherwise",
            )
        if (begin, len(echoed.offsets) - begin) != (shown, wanted):
            raise TokenizationError(
                f"{self._host} reads {begin} + {len(echoed.offsets) - begin} tokens where the tokenizer "
                f"writes {shown} + {wanted}",
                hint="the text holds a special token written out, or the tokenizer is not the server's",
            )
        return begin

    def _ask(self, prompt: str | list[int], tokens: int, length: int | None = None) -> EchoResponse:
        """Send a prompt of so many tokens; of a text, the last ``length`` characters are shown by token."""
        body = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": 1,
            "echo": True,
        }
        answer = self._client.post(f"{self._client.address.base}/completions", body, tokens=tokens)
        found = select_part(answer, "choices", 0, "logprobs", server=self._host)
        lists = [select_part(found, key, server=self._host) for key in ("tokens", "text_offset", "token_logprobs")]
        if not all(isinstance(one, list) for one in lists) or not all(isinstance(at, int) for at in lists[1]):
            raise missing_error("lists of tokens, their offsets and numbers", self._host)
        lists.append(found.get("top_logprobs") or [None] * len(lists[0]))
        if len({len(one) for one in lists}) != 1:
            raise ServerError(
                f"{self._host} gave lists of different lengths for one prompt",
                hint="a proxy or the server itself shortens answers: look for a limit in its options",
            )
        # What follows the prompt was generated. Offsets count from the first token that is shown.
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
