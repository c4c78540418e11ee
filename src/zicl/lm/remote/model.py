"""A language model on a server: plan the requests of prompts, send them in parallel, return checked scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

from zicl._util.progress import Progress
from zicl.exceptions import ServerError
from zicl.lm.remote.backends.base import LogprobReader
from zicl.lm.remote.budget import TokenUsage
from zicl.lm.remote.cache import ScoreCache
from zicl.lm.remote.client import Client
from zicl.lm.remote.probe import NEEDED, ProbeResult
from zicl.lm.remote.requests import RequestPlan, ScoreRequest, TokenLogprobs, is_direct, plan_along_trie, plan_by_branch
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.tokens import Tokenizer


class RemoteLanguageModel:
    """A model on a server that scores prompt trees; ``open_remote`` returns one."""

    def __init__(
        self,
        client: Client,
        probed: ProbeResult,
        tokenizer: Tokenizer,
        cache: ScoreCache,
        *,
        name: str,
        identity: str,
        revision: str,
        context: int | None,
    ) -> None:
        self.name, self.identity, self.revision = name, identity, revision
        self.context, self.adds_bos = context, probed.adds_bos
        self.tokenizer = tokenizer
        self._client, self._probed, self._cache = client, probed, cache

    def __deepcopy__(self, memo: dict[int, object]) -> RemoteLanguageModel:
        """Return the same object: scikit-learn's ``clone`` must not copy connections."""
        return self

    @property
    def way(self) -> str:
        """The names of the backends in use."""
        return self._probed.backend_names

    @property
    def usage(self) -> TokenUsage:
        """The usage and the cost so far."""
        return self._client.meter.usage

    def close(self) -> None:
        """Close the connections and the cache."""
        self._client.close()
        self._cache.close()

    def score(self, prompts: Sequence[Prompt], progress: Progress | None = None) -> list[BranchScores]:
        """Return the log-likelihood of each scored token, in the order of the prompts."""
        plans = [self._plan(prompt) for prompt in prompts]
        readers = {request: reader for reader, plan in plans for request in plan.requests}
        answers = self._cache.find(readers) if self._client.settings.recall else {}
        self._client.meter.from_cache(len(answers))
        on_answer = _count_prompts([plan for _, plan in plans], answers, progress)
        missing, stop = [request for request in readers if request not in answers], Event()
        with ThreadPoolExecutor(self._client.settings.requests, "zicl-remote") as pool:
            futures = {pool.submit(self._send, readers[request], request, stop): request for request in missing}
            try:
                for future in as_completed(futures):
                    answers[futures[future]] = future.result()
                    on_answer(futures[future])
            except BaseException:
                # Send nothing more; wait for the requests in flight and keep their answers.
                stop.set()
                raise
        return [plan.branch_scores(answers) for _, plan in plans]

    def sent(self, prompt: Prompt) -> int:
        """Return how many tokens are sent to score a prompt."""
        return sum(request.sent for request in self._plan(prompt)[1].requests)

    def _plan(self, prompt: Prompt) -> tuple[LogprobReader, RequestPlan]:
        if self._probed.next_token is not None and is_direct(prompt):
            return self._probed.next_token, plan_along_trie(prompt)
        if self._probed.sequence is None:
            raise ServerError(
                f"{self.name} gives log-likelihoods of next tokens only: enough for direct inference, not for channel",
                hint=f"use --inference direct, or another server; {NEEDED}",
            )
        return self._probed.sequence, plan_by_branch(prompt)

    def _send(self, reader: LogprobReader, request: ScoreRequest, stop: Event) -> TokenLogprobs:
        with self._client.until(stop):
            logprobs = reader.read(request)
        if self._client.settings.recall:
            # At once, so that an error of another request loses nothing.
            self._cache.store(request, logprobs)
        return logprobs


def _count_prompts(
    plans: Sequence[RequestPlan], answers: dict[ScoreRequest, TokenLogprobs], progress: Progress | None
) -> Callable[[ScoreRequest], None]:
    """Report prompts whose requests are all answered; return the function to call for each further answer."""
    pending = [set(plan.requests) - answers.keys() for plan in plans]
    waiting: dict[ScoreRequest, list[set[ScoreRequest]]] = {}
    for requests in pending:
        for request in requests:
            waiting.setdefault(request, []).append(requests)

    def report(done: int) -> None:
        if progress is not None and done:
            progress(done)

    def on_answer(request: ScoreRequest) -> None:
        for requests in waiting[request]:
            requests.remove(request)
        report(sum(not requests for requests in waiting[request]))

    report(sum(not requests for requests in pending))
    return on_answer
