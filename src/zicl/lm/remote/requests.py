"""Turn a prompt into requests for log-likelihoods, and their answers into the scores of its branches.

by branch     one request per branch: the log-likelihood of every scored token, given everything before it
along a trie  one request per node of the labels' trie: the log-likelihood of each next token there
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from zicl.exceptions import PromptError
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.tokens import Segment

# Next tokens per request: the default limit of servers.
_MAX_NEXT_TOKENS = 20

TokenLogprobs = tuple[float, ...]


@dataclass(frozen=True)
class ScoreRequest:
    """A request for the log-likelihoods of the ``targets`` after ``given``.

    The targets are a sequence, or with ``next_token`` alternatives for the one next token.
    """

    given: Segment
    targets: Segment
    next_token: bool = False

    @property
    def sent(self) -> int:
        """The number of prompt tokens that are sent."""
        return len(self.given) + (0 if self.next_token else len(self.targets))


@dataclass(frozen=True)
class RequestPlan:
    """The requests of a prompt; for every scored token of every branch, the request and the index in its answer."""

    requests: tuple[ScoreRequest, ...]
    places: tuple[tuple[tuple[int, int], ...], ...]

    def branch_scores(self, answers: Mapping[ScoreRequest, TokenLogprobs]) -> BranchScores:
        """Return the scores of the branches."""
        logprobs = [answers[request] for request in self.requests]
        return tuple(np.array([logprobs[r][n] for r, n in row], dtype=np.float32) for row in self.places)


def is_direct(prompt: Prompt) -> bool:
    """Return whether all labels follow the same text, so that branches differ in the scored tokens alone."""
    labels = len(prompt.branches) // (prompt.probes + 1)
    return len({branch.given.tokens for branch in prompt.branches[:labels]}) == 1


def plan_by_branch(prompt: Prompt) -> RequestPlan:
    """Plan one request per branch."""
    front = prompt.prefix + prompt.stem
    requests = [ScoreRequest(front + branch.given, branch.scored) for branch in prompt.branches]
    if not all(request.given.tokens and request.targets.tokens for request in requests):
        raise PromptError(
            "a branch has nothing to score, or no token before its first scored one",
            hint="give the model a demonstration, a given part or a beginning-of-sequence token",
        )
    places = tuple(tuple((r, n) for n in range(len(request.targets))) for r, request in enumerate(requests))
    return RequestPlan(tuple(requests), places)


def plan_along_trie(prompt: Prompt) -> RequestPlan:
    """Plan one request per node of the labels' trie; a node with very many next tokens gets several."""
    nodes: dict[tuple[int, ...], list[int]] = {}
    paths = []
    for request in plan_by_branch(prompt).requests:
        before, path = request.given.tokens, []
        for token in request.targets.tokens:
            next_tokens = nodes.setdefault(before, [])
            if token not in next_tokens:
                next_tokens.append(token)
            path.append((before, token))
            before = (*before, token)
        paths.append(path)
    requests: list[ScoreRequest] = []
    place: dict[tuple[tuple[int, ...], int], tuple[int, int]] = {}
    for before, next_tokens in nodes.items():
        for start in range(0, len(next_tokens), _MAX_NEXT_TOKENS):
            chunk = next_tokens[start : start + _MAX_NEXT_TOKENS]
            place |= {(before, token): (len(requests), n) for n, token in enumerate(chunk)}
            requests.append(ScoreRequest(Segment("", before), Segment("", tuple(chunk)), next_token=True))
    return RequestPlan(tuple(requests), tuple(tuple(place[step] for step in path) for path in paths))
