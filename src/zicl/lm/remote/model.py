"""The remote backend: prompts become questions, questions become requests, and no number is taken on trust."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import PurePath
from threading import Event
from typing import Any

from zicl._util.catalog import OFFLINE
from zicl._util.files import home
from zicl._util.progress import Progress
from zicl.exceptions import ConfigError, ModelError, ModelNotFoundError, OfflineError, ServerError
from zicl.lm.remote.backends.base import ResponseReader
from zicl.lm.remote.budget import TokenUsage
from zicl.lm.remote.cache import ScoreCache
from zicl.lm.remote.client import Client
from zicl.lm.remote.probe import NEEDED, ProbeResult, probe_server
from zicl.lm.remote.requests import RequestPlan, ScoreRequest, TokenLogprobs, along_trie, by_branch, is_direct
from zicl.lm.remote.settings import RemoteSettings, ServerAddress, find_api_key, parse_address
from zicl.lm.remote.tokenizer import compare, identity, server_tokenizer
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.tokens import Tokenizer


class RemoteLanguageModel:
    """A model behind a server that scores prompt trees."""

    def __init__(
        self,
        client: Client,
        found: ProbeResult,
        tokenizer: Tokenizer,
        answers: ScoreCache,
        *,
        name: str,
        identity: str,
        revision: str,
        context: int | None,
    ) -> None:
        self.name, self.identity, self.revision = name, identity, revision
        self.context, self.adds_bos = context, found.adds_bos
        self.tokenizer = tokenizer
        self._client, self._found, self._answers = client, found, answers

    def __deepcopy__(self, memo: dict[int, object]) -> RemoteLanguageModel:
        """A handle: scikit-learn's ``clone`` must not copy connections."""
        return self

    @property
    def way(self) -> str:
        """How the server gives log-likelihoods."""
        return self._found.way

    @property
    def spent(self) -> TokenUsage:
        """What was asked and paid for so far."""
        return self._client.meter.spent

    def close(self) -> None:
        """Close the connections and the file of answers."""
        self._client.close()
        self._answers.close()

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """The log-likelihood of each scored token, in the order asked."""
        plans = [self._plan(prompt) for prompt in prompts]
        readers = {question: reader for reader, plan in plans for question in plan.questions}
        answers = self._answers.find(readers) if self._client.settings.recall else {}
        self._client.meter.remembered(len(answers))
        waiting = _PendingRequests(plans, answers, progress)
        todo, stop = [question for question in readers if question not in answers], Event()
        with ThreadPoolExecutor(self._client.settings.requests, "zicl-remote") as pool:
            futures = {pool.submit(self._ask, readers[question], question, stop): question for question in todo}
            try:
                for future in as_completed(futures):
                    answers[futures[future]] = future.result()
                    waiting.answered(futures[future])
            except BaseException:
                # Nothing more is sent; what is under way is waited for and kept.
                stop.set()
                raise
        return [plan.rows(answers) for _, plan in plans]

    def sent(self, prompt: Prompt) -> int:
        """How many tokens a server is sent to score a prompt."""
        questions = self._plan(prompt)[1].questions
        return sum(len(each.given) + (0 if each.following else len(each.wanted)) for each in questions)

    def _ask(self, reader: ResponseReader, question: ScoreRequest, stop: Event) -> TokenLogprobs:
        with self._client.until(stop):
            numbers = reader.read(question)
        if self._client.settings.recall:
            # Here and not when all are there: an error of another question, or a stop, loses nothing.
            self._answers.keep(question, numbers)
        return numbers

    def _plan(self, prompt: Prompt) -> tuple[ResponseReader, RequestPlan]:
        whole, following = self._found.whole, self._found.following
        if following is not None and is_direct(prompt):
            return following, along_trie(prompt)
        if whole is None:
            raise ServerError(
                f"{self.name} gives log-likelihoods of next tokens only: enough for direct inference, not for channel",
                hint=f"--inference direct, or another server; {NEEDED}",
            )
        return whole, by_branch(prompt)


class _PendingRequests:
    """Says when all questions of a prompt are answered."""

    def __init__(
        self,
        plans: Sequence[tuple[ResponseReader, RequestPlan]],
        known: dict[ScoreRequest, TokenLogprobs],
        progress: Progress | None,
    ) -> None:
        self._progress = progress
        self._left = [len(set(plan.questions) - known.keys()) for _, plan in plans]
        self._prompts: dict[ScoreRequest, list[int]] = {}
        for number, (_, plan) in enumerate(plans):
            for question in set(plan.questions) - known.keys():
                self._prompts.setdefault(question, []).append(number)
        self._say(sum(left == 0 for left in self._left))

    def answered(self, question: ScoreRequest) -> None:
        """One more is known."""
        for number in self._prompts[question]:
            self._left[number] -= 1
        self._say(sum(self._left[number] == 0 for number in self._prompts[question]))

    def _say(self, done: int) -> None:
        if self._progress is not None and done:
            self._progress(done)


# -- From an address to a language model: permission, model, tokenizer, probe, cache.


# Raised when what is stored would no longer mean the same.
_FORMAT = 1


def open_remote(
    spec: str,
    settings: RemoteSettings | None = None,
    *,
    offline: bool = False,
    load_tokenizer: Callable[[str], Tokenizer],
    sleep: Callable[[float], object] | None = None,
) -> RemoteLanguageModel:
    """The model at an address, ready to score; refused if it cannot give log-likelihoods."""
    address, settings = parse_address(spec), settings or RemoteSettings()
    _check_permission(address, settings, offline=offline)
    client = Client(address, settings, find_api_key(address), sleep=sleep)
    try:
        with client.hurried():
            return _open(client, settings, load_tokenizer)
    except BaseException:
        client.close()
        raise


def _check_permission(address: ServerAddress, settings: RemoteSettings, *, offline: bool) -> None:
    """What is sent to this machine's own loopback address does not leave it; all else needs a yes."""
    if address.loopback:
        return
    if offline or os.environ.get(OFFLINE):
        raise OfflineError(f"{address.host} is on the network, which was ruled out", hint="leave out --offline")
    if not settings.allow_text:
        raise ConfigError(
            f"corpus sentences and the texts to be labelled would be sent to {address.host}",
            hint="if they may leave this machine, say so: --allow-remote-text",
        )


def _open(client: Client, settings: RemoteSettings, load_tokenizer: Callable[[str], Tokenizer]) -> RemoteLanguageModel:
    card = _model_card(client)
    model = str(card["id"])
    shown = ServerAddress(client.address.base, model).shown
    tokenizer, compared = _tokenizer(client, model, settings, load_tokenizer)
    found = probe_server(client, model, tokenizer, compared=compared)
    who = f"{_FORMAT}|{client.address.base}|{model}|{identity(tokenizer)}"
    return RemoteLanguageModel(
        client,
        found,
        tokenizer,
        ScoreCache(home() / "answers" / "remote.sqlite", f"{who}|{found.way}", found.probe),
        name=str(shown),
        identity=hashlib.sha256(f"{model}|{found.way}|{identity(tokenizer)}".encode()).hexdigest(),
        revision=f"{shown.model} by {found.way}",
        context=settings.context or _context(card),
    )


def _model_card(client: Client) -> dict[str, Any]:
    """What the server says of the model that was asked for."""
    wanted = client.address.model
    try:
        answer = client.get(f"{client.address.base}/models")
    except ServerError as error:
        if error.status not in (404, 405) or not wanted:
            raise
        return {"id": wanted}
    listed = answer.get("data") if isinstance(answer, dict) else None
    cards = {str(c["id"]): c for c in listed or [] if isinstance(c, dict) and "id" in c}
    named = [name for name in cards if wanted in (name, PurePath(name).name)]
    if not wanted and len(cards) == 1:
        named = list(cards)
    if len(named) != 1:
        what = f"no model {wanted!r}" if wanted else "no model was named, and the server has not exactly one"
        raise ModelNotFoundError(
            f"{client.address.host}: {what}",
            hint=f"name one behind #: {', '.join(sorted(cards)[:10]) or 'the server lists none'}",
        )
    return cards[named[0]]


def _context(card: dict[str, Any]) -> int | None:
    """The tokens a prompt may have: one place is for the token that has to be asked for."""
    found = card.get("max_model_len") or card.get("context_length")
    return found - 1 if isinstance(found, int) and found > 1 else None


def _tokenizer(
    client: Client, model: str, settings: RemoteSettings, load_tokenizer: Callable[[str], Tokenizer]
) -> tuple[Tokenizer, bool]:
    """The named tokenizer or the server's own, and whether it is known to be the server's."""
    own = server_tokenizer(client, model, f"the server's own tokenizer of {model}")
    if settings.tokenizer is None:
        if own is None:
            raise ModelError(
                f"{client.address.host} does not let one ask for tokens, and no tokenizer was named",
                hint="name the model's tokenizer: --tokenizer with a catalog name, hf:ID, folder or gguf:FILE",
            )
        return own, True
    named = load_tokenizer(settings.tokenizer)
    if own is not None:
        compare(named, own)
    return named, own is not None
