import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import SynonymError
from zicl.prompt.labelers import RandomLabels, original_words, random_words, synonym_words
from zicl.prompt.labels import Labels

LABELS = Labels.of({"great": ["good", "fine"], "terrible": "bad"})


def test_every_synonym_is_shown_sometimes_and_no_original():
    words = {drawn.words for drawn in RandomLabels(synonym_words(LABELS)).label(range(200), 0, "x")}
    assert words == {"good", "fine", "bad"}


def test_missing_synonyms_are_all_named():
    with pytest.raises(SynonymError, match="a, b"):
        synonym_words(Labels.of({"a": (), "b": (), "c": "d"}))


@given(st.integers(0, 5), st.text(), st.integers(1, 20))
def test_nearer_demonstrations_keep_their_labels_when_k_grows(seed, key, k):
    drawer = RandomLabels(original_words(LABELS))
    assert drawer.label(range(k), seed, key) == drawer.label(range(20), seed, key)[:k]


def test_labels_are_drawn_uniformly():
    drawn = [d.label for key in range(300) for d in RandomLabels(original_words(LABELS)).label(range(4), 0, str(key))]
    assert 0.45 < drawn.count("great") / len(drawn) < 0.55


def test_random_words_are_one_to_one_and_one_map_a_seed():
    words = [f"word{n}" for n in range(50)] + ["great"]
    maps = [random_words(LABELS, words, seed) for seed in range(20)]
    assert all(len({shown for (shown,) in m.values()}) == 2 for m in maps)
    assert all(("great",) not in m.values() for m in maps)
    assert maps[0] == random_words(LABELS, words, 0)
    assert len({tuple(m.values()) for m in maps}) > 10
