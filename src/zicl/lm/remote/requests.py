"""What is asked in one request, and how a prompt becomes such questions.

by branch     one question a label: the log-likelihood of every scored token behind all that stands before it
along a trie  one question for every place where labels can go on: the log-likelihood of each next token there
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zicl.exceptions import PromptError
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.tokens import Segment

# Next tokens asked for at once: as many as servers allow without being told otherwise.
_AT_ONCE = 20


@dataclass(frozen=True)
class ScoreRequest:
    """The log-likelihoods of the tokens ``wanted`` behind ``given``: in a row, or ``following`` it each by itself."""

    given: Segment
    wanted: Segment
    following: bool = False

    def __len__(self) -> int:
        return len(self.given) + len(self.wanted)


TokenLogprobs = tuple[float, ...]


@dataclass(frozen=True)
class RequestPlan:
    """A prompt's questions, and for every scored token of every branch which number of which answer is its own."""

    questions: tuple[ScoreRequest, ...]
    places: tuple[tuple[tuple[int, int], ...], ...]

    def rows(self, answers: Mapping[ScoreRequest, TokenLogprobs]) -> BranchScores:
        """The scores of the branches."""
        found = [answers[question] for question in self.questions]
        return tuple(np.array([found[q][n] for q, n in row], dtype=np.float32) for row in self.places)


def is_direct(prompt: Prompt) -> bool:
    """Whether the labels stand behind one text, so that they share all but their own tokens."""
    labels = len(prompt.branches) // (prompt.probes + 1)
    return len({branch.given.tokens for branch in prompt.branches[:labels]}) == 1


def by_branch(prompt: Prompt) -> RequestPlan:
    """One question a branch."""
    front = prompt.prefix + prompt.stem
    questions = [ScoreRequest(front + branch.given, branch.scored) for branch in prompt.branches]
    if not all(question.given.tokens and question.wanted.tokens for question in questions):
        raise PromptError(
            "a branch has nothing to score, or nothing stands before its first scored token",
            hint="give the model a demonstration, a given part or a beginning-of-sequence token",
        )
    places = tuple(tuple((q, n) for n in range(len(question.wanted))) for q, question in enumerate(questions))
    return RequestPlan(tuple(questions), places)


def along_trie(prompt: Prompt) -> RequestPlan:
    """One question for every node of the labels' trie; a node with very many next tokens gets several."""
    nodes: dict[tuple[int, ...], list[int]] = {}
    paths = []
    for question in by_branch(prompt).questions:
        before, path = question.given.tokens, []
        for token in question.wanted.tokens:
            following = nodes.setdefault(before, [])
            if token not in following:
                following.append(token)
            path.append((before, token))
            before = (*before, token)
        paths.append(path)
    questions, at = _node_questions(nodes)
    return RequestPlan(tuple(questions), tuple(tuple(at[step] for step in path) for path in paths))


def _node_questions(
    nodes: Mapping[tuple[int, ...], Sequence[int]],
) -> tuple[list[ScoreRequest], dict[tuple[tuple[int, ...], int], tuple[int, int]]]:
    questions: list[ScoreRequest] = []
    at: dict[tuple[tuple[int, ...], int], tuple[int, int]] = {}
    for before, following in nodes.items():
        for start in range(0, len(following), _AT_ONCE):
            some = following[start : start + _AT_ONCE]
            at |= {(before, token): (len(questions), n) for n, token in enumerate(some)}
            questions.append(ScoreRequest(Segment("", before), Segment("", tuple(some)), following=True))
    return questions, at
