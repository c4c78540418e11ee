"""Request plans: in any tree, every scored token gets the number that belongs to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import PromptError
from zicl.lm.remote.requests import ScoreRequest, is_direct, plan_along_trie, plan_by_branch
from zicl.prompt.builder import Branch, Prompt
from zicl.prompt.tokens import EMPTY, Segment

token = st.integers(0, 30)
tokens = st.lists(token, min_size=1, max_size=5).map(tuple)
branches = st.lists(st.tuples(st.lists(token, max_size=2).map(tuple), tokens), min_size=1, max_size=8)


def likelihood(before, token):
    """A number that belongs to a token behind others, and to no other pair."""
    return -float(hash((tuple(before), token)) % 99_991) / 100


def answers(request: ScoreRequest):
    given, targets = request.given.tokens, request.targets.tokens
    if request.next_token:
        return tuple(likelihood(given, token) for token in targets)
    return tuple(likelihood(given + targets[:n], token) for n, token in enumerate(targets))


@given(tokens, branches)
def test_both_plans_find_the_number_of_every_token(prefix, drawn):
    prompt = Prompt(
        Segment("", prefix), EMPTY, tuple(Branch(Segment("", given), Segment("", scored)) for given, scored in drawn)
    )
    expected = [
        [likelihood(prefix + given + scored[:n], token) for n, token in enumerate(scored)] for given, scored in drawn
    ]
    for plan in (plan_by_branch(prompt), plan_along_trie(prompt)):
        rows = plan.branch_scores({request: answers(request) for request in plan.requests})
        assert [row.tolist() for row in rows] == [np.float32(row).tolist() for row in expected]
        assert all(len(q.targets) <= 20 for q in plan.requests if q.next_token)


def test_very_many_next_tokens_are_asked_for_in_parts():
    lines = tuple(Branch(EMPTY, Segment("", (n,))) for n in range(45))
    plan = plan_along_trie(Prompt(Segment("", (1,)), EMPTY, lines))
    assert [len(request.targets) for request in plan.requests] == [20, 20, 5]


def test_nothing_to_score_is_an_error():
    with pytest.raises(PromptError):
        plan_by_branch(Prompt(EMPTY, EMPTY, (Branch(EMPTY, Segment("", (1,))),)))


def test_inferences_are_told_apart():
    def prompt(*pairs, probes=0):
        return Prompt(EMPTY, EMPTY, tuple(Branch(Segment("", g), Segment("", s)) for g, s in pairs), probes=probes)

    assert is_direct(prompt(((), (1,)), ((), (2,))))
    assert is_direct(prompt(((5,), (1,)), ((5,), (2,)), ((6,), (1,)), ((6,), (2,)), probes=1))
    assert not is_direct(prompt(((1,), (7,)), ((2,), (7,))))
    assert not is_direct(prompt(((1,), (7,)), ((2,), (7,)), ((1,), (8,)), ((2,), (8,)), probes=1))
