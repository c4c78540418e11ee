"""The encoder expert: what it compares a text with, and what it subtracts."""

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import BagEncoder, BatchDependentEncoder
from zicl.prompt.labels import Label, Labels
from zicl.retrieve.embedding import GROUP, BatchEmbedder
from zicl.score.ensemble import Ensemble
from zicl.score.experts import BIAS_SHARE, PHRASES, SCALE, EncoderExpert, neutral_sentences

LABELS = Labels((Label("great", synonyms=("good",), description="The meal was great."), Label("terrible")))


class CountingEncoder(BagEncoder):
    """Counts the texts that are encoded."""

    def __init__(self):
        self.encoded = []

    def encode(self, texts):
        self.encoded += texts
        return super().encode(texts)


def expert(plain=False):
    return EncoderExpert(BatchEmbedder(BagEncoder()), BagEncoder.identity, "bag", plain)


def test_a_plain_expert_is_the_cosine_to_the_description_or_the_words():
    encode = BagEncoder().encode
    vectors = encode(["The soup was cold.", "A bold little film."])
    expected = SCALE * vectors @ encode(["The meal was great.", "terrible"]).T
    np.testing.assert_allclose(expert(plain=True).scores(vectors, LABELS), expected, atol=1e-5)


def test_a_label_is_the_mean_of_its_description_and_its_words_minus_a_share_of_its_bias():
    encode = BagEncoder().encode
    words = [encode([phrase.format(word) for phrase in PHRASES]).mean(axis=0) for word in ("great", "good")]
    mean = np.mean([encode(["The meal was great."])[0], *words], axis=0)
    targets, bias = expert().label_vectors(LABELS)
    np.testing.assert_allclose(targets[0], mean / np.linalg.norm(mean), atol=1e-6)
    neutral = encode(neutral_sentences()) @ targets.T
    np.testing.assert_allclose(bias, BIAS_SHARE * neutral.mean(axis=0), atol=1e-6)


def test_the_words_of_a_label_that_a_text_is_near():
    encode = BagEncoder().encode
    vector = encode(["The meal was good."])[0]
    found = expert().nearest_words(vector, LABELS)
    assert list(found) == ["great", "terrible"]
    good = encode([phrase.format("good") for phrase in PHRASES]).mean(axis=0)
    described = encode(["The meal was great."])[0]
    expected = {"good": good @ vector / np.linalg.norm(good), "The meal was great.": described @ vector}
    assert {words: cosine for words, cosine in found["great"] if words in expected} == pytest.approx(expected, abs=1e-5)
    assert [cosine for _, cosine in found["great"]] == sorted((c for _, c in found["great"]), reverse=True)


def test_a_description_that_repeats_a_word_counts_beside_it():
    encode = BagEncoder().encode
    twice = Labels((Label("great", description="great"), Label("terrible")))
    words = encode([phrase.format("great") for phrase in PHRASES]).mean(axis=0)
    mean = np.mean([encode(["great"])[0], words], axis=0)
    np.testing.assert_allclose(expert().label_vectors(twice)[0][0], mean / np.linalg.norm(mean), atol=1e-6)


def test_one_expert_alone_is_that_expert():
    texts, asked = ["The soup was cold.", "A bold little film."], expert()
    results = Ensemble(LABELS, encoder_expert=asked).run(texts)
    values = [[score.value for score in result.scores] for result in results]
    np.testing.assert_allclose(values, asked.scores(BagEncoder().encode(texts), LABELS), atol=1e-9)
    assert results[0].prepared is None
    assert list(results[0].terms) == ["encoder"]
    assert "one encoding by bag" in asked.cost


def test_permuted_labels_give_permuted_answers():
    vectors = BagEncoder().encode(["The soup was cold.", "A bold little film."])
    permuted = Labels(LABELS.items[::-1])
    np.testing.assert_allclose(expert().scores(vectors, permuted)[:, ::-1], expert().scores(vectors, LABELS))


def test_options_of_a_text_are_compared_as_they_are():
    options = Labels.of(2).among(["a cold soup", "a warm bath"])
    vectors = BagEncoder().encode(["a cold soup"])
    assert expert().scores(vectors, options)[0] == pytest.approx(expert(plain=True).scores(vectors, options)[0])


def test_a_call_that_is_repeated_encodes_nothing_again():
    encoder = CountingEncoder()
    embed = BatchEmbedder(encoder)
    first = embed(["a", "b", "a"])
    assert encoder.encoded == ["a", "b"]
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal(embed(["a", "b", "b"])[:2], first[:2])
    assert encoder.encoded == ["a", "b"]
    assert embed([]).shape == (0, 32)


def test_a_vector_depends_on_its_group_alone_to_the_last_digit():
    texts = [f"the text number {n}" for n in range(2 * GROUP + 3)]
    fresh, used = BatchEmbedder(BatchDependentEncoder()), BatchEmbedder(BatchDependentEncoder())
    used(texts[5:9])
    used(texts[::-1])
    np.testing.assert_array_equal(used(texts), fresh(texts))
    np.testing.assert_array_equal(fresh(texts)[GROUP : 2 * GROUP], used(texts[GROUP : 2 * GROUP]))


def test_known_vectors_are_used_for_texts_and_not_for_labels():
    asked = replace(expert(), known={"great": np.ones(32, dtype=np.float32)})
    vectors = asked.text_vectors(["The soup was cold.", "great", "The soup was cold."])
    np.testing.assert_array_equal(vectors[1], np.ones(32))
    np.testing.assert_array_equal(vectors[[0, 2]], BagEncoder().encode(["The soup was cold."] * 2))
    np.testing.assert_array_equal(asked.label_vectors(LABELS)[0], expert().label_vectors(LABELS)[0])
