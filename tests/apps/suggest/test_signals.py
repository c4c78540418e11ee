"""The signals as functions of numbers: closed forms, and properties that hold for any numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zicl.apps.suggest import signals
from zicl.apps.suggest.signals import Bounds, Signal

SHARES = st.floats(0, 1)
LEVELS = ["good", "look", "warn"]
SCORES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(2, 5)),
    elements=st.floats(-300, 0),
)
NAMES = ("a", "b", "c", "d", "e")


@given(SHARES, SHARES, SHARES, SHARES)
def test_a_worse_value_never_has_a_better_level(look, warn, first, second):
    low, high = sorted((first, second))
    levels = [LEVELS.index(Bounds(look, warn).level(value)) for value in (low, high)]
    assert levels == sorted(levels, reverse=warn <= look)


def test_a_value_on_a_bound_counts_as_the_better_one():
    assert [Bounds(0.1, 0.3).level(value) for value in (0.1, 0.2, 0.3, 0.31)] == ["good", "look", "look", "warn"]
    assert [Bounds(0.9, 0.7).level(value) for value in (0.9, 0.8, 0.7, 0.69)] == ["good", "look", "look", "warn"]


def test_similarity_is_the_median_and_far_the_share_below():
    near, away = signals.NEAR + 0.1, signals.NEAR - 0.1
    assert signals.corpus_similarity([0.1, 0.9, 0.8]).value == pytest.approx(0.8)
    assert signals.far_texts([near, away, near, away]).value == 0.5
    assert signals.far_texts([signals.NEAR]).value == 0
    assert signals.corpus_similarity([0.99]).level == "good"
    assert signals.corpus_similarity([-0.2]).level == "warn"
    assert "zicl corpus build" in signals.far_texts([away]).option
    assert "from_texts" in signals.far_texts([away]).option


def test_sentences_without_a_neighbour():
    assert signals.without_neighbour([True, False, False, False]).value == 0.25
    assert signals.without_neighbour([True]).level == "warn"
    assert "--set retrieval.method=diverse" in signals.without_neighbour([True]).option


def test_evenness_and_the_largest_share_of_known_probabilities():
    even, one = np.log([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.0, -800.0]])
    assert signals.evenness(even, "channel").value == pytest.approx(1)
    assert signals.largest_share(even, NAMES, "channel").value == pytest.approx(0.5)
    assert signals.evenness(one, "direct").value == 0
    found = signals.largest_share(one, NAMES, "direct")
    assert (found.value, found.level) == (1, "warn")
    assert found.meaning.startswith("'a' is the most frequent label; an equal share would be 0.50.")
    assert "--calibrate batch" in found.option
    shares = np.log([[0.7, 0.2, 0.1]])
    entropy = -sum(p * np.log(p) for p in (0.7, 0.2, 0.1)) / np.log(3)
    assert signals.evenness(shares, "channel").value == pytest.approx(entropy)
    assert signals.evenness(shares, "channel").name.endswith("channel")


def test_the_two_bounds_on_the_labels_shares_are_the_same_for_two_labels():
    for share in (0.66, 0.74, 0.84):
        scores = np.log([[share, 1 - share]])
        assert signals.evenness(scores, "x").level == signals.largest_share(scores, NAMES, "x").level


@given(SCORES)
def test_signals_of_scores_stay_in_range_and_ignore_constants(scores):
    moved = scores + np.arange(len(scores))[:, None] * 7.0
    for signal in (
        lambda s: signals.evenness(s, "channel"),
        lambda s: signals.largest_share(s, NAMES, "channel"),
    ):
        found = signal(scores)
        assert 0 <= found.value <= 1
        assert signal(moved).value == pytest.approx(found.value, abs=1e-9)
    assert signals.largest_share(scores, NAMES, "channel").value >= 1 / scores.shape[1] - 1e-9
    assert 0 <= signals.small_margins(scores).value <= 1


@given(SCORES, st.randoms(use_true_random=False))
def test_signals_of_scores_do_not_depend_on_the_order_of_texts_or_labels(scores, random):
    rows, columns = list(range(scores.shape[0])), list(range(scores.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    mixed = scores[rows][:, columns]
    for signal in (lambda s: signals.evenness(s, "x"), lambda s: signals.largest_share(s, NAMES, "x")):
        assert signal(mixed).value == pytest.approx(signal(scores).value, abs=1e-9)


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=6, max_size=6), min_size=2, max_size=4))
def test_agreement_is_the_mean_over_pairs(passes):
    value = signals.agreement(passes)
    assert 0 <= value <= 1
    assert value == pytest.approx(signals.agreement(passes[::-1]))
    assert (value == 1) == all(labels == passes[0] for labels in passes)
    assert signals.agreement([passes[0], passes[0]]) == 1


def test_agreement_of_three_passes():
    passes = [["a", "a"], ["a", "b"], ["b", "b"]]
    assert signals.seed_agreement(passes, ["labels"]).value == pytest.approx((0.5 + 0.0 + 0.5) / 3)
    assert "labelling.assignments=4" in signals.seed_agreement(passes, ["labels", "sentences"]).option
    assert signals.inference_agreement(passes[:2]).value == 0.5
    assert signals.inference_agreement(passes[:2]).option == "--inference both"


def test_cut_texts_and_dropped_demonstrations():
    assert signals.cut_texts([True, False]).value == 0.5
    assert "prompt.tokens_input" in signals.cut_texts([True]).option
    assert signals.dropped_demos([6, 8], [2, 0]).value == pytest.approx(2 / 16)
    assert signals.dropped_demos([0], [0]).value == 0
    assert "--k" in signals.dropped_demos([1], [1]).option


def test_a_small_margin():
    scores = np.log([[0.54, 0.46], [0.56, 0.44], [0.9, 0.1], [0.1, 0.9]])
    found = signals.small_margins(scores)
    assert found.value == 0.25
    assert "--review-below 0.1" in found.option


def test_the_meaning_depends_on_the_level():
    good, bad = signals.cut_texts([False]), signals.cut_texts([True])
    assert isinstance(good, Signal)
    assert (good.level, bad.level) == ("good", "warn")
    assert good.meaning != bad.meaning
    assert good.option == bad.option
