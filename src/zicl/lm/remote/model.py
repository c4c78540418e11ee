"""The remote backend: prompts become questions, questions become requests, and no number is taken on trust."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

from zicl.exceptions import ServerError
from zicl.lm.base import BranchScores, Progress
from zicl.lm.remote.backends.base import Reader
from zicl.lm.remote.budget import Spent
from zicl.lm.remote.cache import Answers
from zicl.lm.remote.client import Client
from zicl.lm.remote.probe import NEEDED, Found
from zicl.lm.remote.requests import Numbers, Plan, Question, along_trie, by_branch, is_direct
from zicl.prompt.builder import Prompt
from zicl.prompt.tokens import Tokenizer


class RemoteLanguageModel:
    """A model behind a server that scores prompt trees."""

    def __init__(
        self,
        client: Client,
        found: Found,
        tokenizer: Tokenizer,
        answers: Answers,
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
    def spent(self) -> Spent:
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
        waiting = _Waiting(plans, answers, progress)
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

    def _ask(self, reader: Reader, question: Question, stop: Event) -> Numbers:
        with self._client.until(stop):
            numbers = reader.read(question)
        if self._client.settings.recall:
            # Here and not when all are there: an error of another question, or a stop, loses nothing.
            self._answers.keep(question, numbers)
        return numbers

    def _plan(self, prompt: Prompt) -> tuple[Reader, Plan]:
        whole, following = self._found.whole, self._found.following
        if following is not None and is_direct(prompt):
            return following, along_trie(prompt)
        if whole is None:
            raise ServerError(
                f"{self.name} gives log-likelihoods of next tokens only: enough for direct inference, not for channel",
                hint=f"--inference direct, or another server; {NEEDED}",
            )
        return whole, by_branch(prompt)


class _Waiting:
    """Says when all questions of a prompt are answered."""

    def __init__(
        self, plans: Sequence[tuple[Reader, Plan]], known: dict[Question, Numbers], progress: Progress | None
    ) -> None:
        self._progress = progress
        self._left = [len(set(plan.questions) - known.keys()) for _, plan in plans]
        self._prompts: dict[Question, list[int]] = {}
        for number, (_, plan) in enumerate(plans):
            for question in set(plan.questions) - known.keys():
                self._prompts.setdefault(question, []).append(number)
        self._say(sum(left == 0 for left in self._left))

    def answered(self, question: Question) -> None:
        """One more is known."""
        for number in self._prompts[question]:
            self._left[number] -= 1
        self._say(sum(self._left[number] == 0 for number in self._prompts[question]))

    def _say(self, done: int) -> None:
        if self._progress is not None and done:
            self._progress(done)
