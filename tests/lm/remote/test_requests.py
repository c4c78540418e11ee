"""Plans: whatever the tree, every scored token gets the number that belongs to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import PromptError
from zicl.lm.remote.requests import ScoreRequest, along_trie, by_branch, is_direct
from zicl.prompt.builder import Branch, Prompt
from zicl.prompt.tokens import EMPTY, Segment

token = st.integers(0, 30)
tokens = st.lists(token, min_size=1, max_size=5).map(tuple)
branches = st.lists(st.tuples(st.lists(token, max_size=2).map(tuple), tokens), min_size=1, max_size=8)


def likelihood(before, token):
    """A number that belongs to a token behind others, and to no other pair."""
    return -float(hash((tuple(before), token)) % 99_991) / 100


def answers(question: ScoreRequest):
    given, wanted = question.given.tokens, question.wanted.tokens
    if question.following:
        return tuple(likelihood(given, token) for token in wanted)
    return tuple(likelihood(given + wanted[:n], token) for n, token in enumerate(wanted))


@given(tokens, branches)
def test_both_plans_find_the_number_of_every_token(prefix, drawn):
    prompt = Prompt(
        Segment("", prefix), EMPTY, tuple(Branch(Segment("", given), Segment("", scored)) for given, scored in drawn)
    )
    expected = [
        [likelihood(prefix + given + scored[:n], token) for n, token in enumerate(scored)] for given, scored in drawn
    ]
    for plan in (by_branch(prompt), along_trie(prompt)):
        rows = plan.rows({question: answers(question) for question in plan.questions})
        assert [row.tolist() for row in rows] == [np.float32(row).tolist() for row in expected]
        assert all(len(q.wanted) <= 20 for q in plan.questions if q.following)


def test_very_many_next_tokens_are_asked_for_in_parts():
    lines = tuple(Branch(EMPTY, Segment("", (n,))) for n in range(45))
    plan = along_trie(Prompt(Segment("", (1,)), EMPTY, lines))
    assert [len(question.wanted) for question in plan.questions] == [20, 20, 5]


def test_nothing_to_score_is_an_error():
    with pytest.raises(PromptError):
        by_branch(Prompt(EMPTY, EMPTY, (Branch(EMPTY, Segment("", (1,))),)))


def test_inferences_are_told_apart():
    def prompt(*pairs, probes=0):
        return Prompt(EMPTY, EMPTY, tuple(Branch(Segment("", g), Segment("", s)) for g, s in pairs), probes=probes)

    assert is_direct(prompt(((), (1,)), ((), (2,))))
    assert is_direct(prompt(((5,), (1,)), ((5,), (2,)), ((6,), (1,)), ((6,), (2,)), probes=1))
    assert not is_direct(prompt(((1,), (7,)), ((2,), (7,))))
    assert not is_direct(prompt(((1,), (7,)), ((2,), (7,)), ((1,), (8,)), ((2,), (8,)), probes=1))
