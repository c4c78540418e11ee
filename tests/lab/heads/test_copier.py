"""The hand-built copier: it copies, its copying head is found, and without that head it does not copy."""

import numpy as np
import pytest

from tests.conftest import BagEncoder
from tests.lab.heads.copier import COPIER, INPUTS, LABELS, LAST_LABEL, READER, copier
from zicl.config import Scoring
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.training import TrainingIndex
from zicl.lab.heads.find import balanced_pipeline, find_heads, mark_labels
from zicl.lab.heads.scores import random_like
from zicl.lm.heads import silence_heads
from zicl.prompt.builder import LabelledText, PromptBuilder
from zicl.prompt.labelers import GoldLabels, original_words
from zicl.prompt.labels import Labels
from zicl.prompt.template import get_template
from zicl.retrieve.strategies.nearest import Nearest
from zicl.score.pipeline import Pipeline


@pytest.fixture(scope="module")
def lm():
    return copier()


@pytest.fixture(scope="module")
def builder(lm):
    return PromptBuilder(lm.tokenizer, get_template("none"), "direct", context=lm.context)


@pytest.fixture(scope="module")
def pipeline(lm, builder):
    """Nearest labelled examples as demonstrations; the nearest of each input is the input itself."""
    draw = np.random.default_rng(1)
    answers = [LABELS[int(n)] for n in draw.permutation([0, 1] * 6)]
    examples = [Example(word, word, label) for word, label in zip(INPUTS, answers, strict=True)]
    labels, encoder = Labels.of(LABELS), BagEncoder()
    nearest = Pipeline(
        labels=labels,
        builder=builder,
        lm=lm,
        scoring=Scoring(inference="direct"),
        k=12,
        index=TrainingIndex("fruit", examples, lambda: encoder, lambda text: encoder.encode([text])[0]),
        retriever=Nearest(exclude_self=False),
        labeler=GoldLabels(original_words(labels), answers),
    )
    return balanced_pipeline(nearest, answers, exclude_self=False)


def answers(lm, builder):
    """Return the answers for every input, with it as one of the demonstrations, under each label in turn."""
    prompts, draw = [], np.random.default_rng(2)
    for word in INPUTS:
        others = [str(other) for other in draw.permutation([w for w in INPUTS if w != word])[:7]]
        place = int(draw.integers(8))
        around = [LABELS[int(n)] for n in draw.integers(2, size=7)]
        for label in LABELS:
            shown = [LabelledText(*each) for each in zip(others, around, strict=True)]
            shown.insert(place, LabelledText(word, label))
            prompts.append(builder.build(word, shown, LABELS))
    return [LABELS[int(np.argmax([row.sum() for row in scores]))] for scores in lm.score(prompts)]


def test_the_model_is_scored_as_trees_and_copies_the_identical_demonstration(lm, builder):
    assert lm.supports_trees
    assert answers(lm, builder) == list(LABELS) * len(INPUTS)


def test_the_finder_ranks_the_copying_head_first(lm, pipeline):
    examples = pipeline.index.examples
    prompts = [mark_labels(pipeline.prepare(each.text), pipeline.builder, each.label) for each in examples]
    scores = find_heads(lm, prompts, task="fruit")
    assert scores.top(1) == (COPIER,)
    assert scores[COPIER] > 0.99
    assert scores.values.size == 8
    others = np.delete(scores.values.ravel(), 4 * COPIER.layer + COPIER.head)
    assert others.max() < 0.5


def test_without_the_copying_head_the_shown_label_does_not_matter(lm, builder):
    with silence_heads(lm, [COPIER]):
        assert answers(lm, builder) == [LABELS[0]] * (2 * len(INPUTS))
    assert answers(lm, builder) == list(LABELS) * len(INPUTS)


def test_without_other_heads_it_still_copies(lm, builder):
    for drawn in random_like([COPIER], (2, 4), draws=5):
        with silence_heads(lm, drawn):
            assert answers(lm, builder) == list(LABELS) * len(INPUTS)
    with silence_heads(lm, [LAST_LABEL]):
        assert answers(lm, builder) == list(LABELS) * len(INPUTS)


def test_the_copying_head_needs_the_head_that_reads_inputs(lm, builder, pipeline):
    with silence_heads(lm, [READER]):
        assert answers(lm, builder) != list(LABELS) * len(INPUTS)
        examples = pipeline.index.examples
        prompts = [mark_labels(pipeline.prepare(each.text), pipeline.builder, each.label) for each in examples]
        assert find_heads(lm, prompts)[COPIER] < 0.2
