"""Finding heads: labels marked in prompts, balanced demonstrations, and scores averaged over prompts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import BagEncoder, byte_tokenizer
from zicl.corpus.store import Sentence
from zicl.exceptions import ConfigError, LabelError, PromptError, RetrievalError
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.training import TrainingIndex
from zicl.lab.heads.find import MarkedPrompt, NearestPerLabel, find_heads, first_token_after, mark_labels
from zicl.lm.heads import Head, last_token_attention
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import LabelledText, PromptBuilder, TokenLimits
from zicl.prompt.labels import Labels
from zicl.prompt.template import Template, get_template
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.nearest import Nearest
from zicl.score.results import Demonstration, PreparedInput

TINY = PlainTokenizer(byte_tokenizer(), "tiny")
LABELS = Labels.of(["great", "terrible", "so-so"])
TEMPLATES = [
    get_template("review"),
    get_template("none"),
    Template("{input}", "({label})"),
    Template("I: {input}", "\u00e9 \u2192{label} \u2190", "\n\n", "\n"),
]


def prepared(builder, text, shown):
    demos = [LabelledText(sentence, LABELS[label].words) for sentence, label in shown]
    prompt = builder.build(text, demos, LABELS.words)
    rows = [
        Demonstration(Sentence(n, d.text, n, 0, "d", "s"), None, None, label, d.words, kept=n >= prompt.dropped)
        for n, (d, (_, label)) in enumerate(zip(demos, shown, strict=True))
    ]
    return PreparedInput(text, tuple(rows), prompt, LABELS, builder.inference)


sentences = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80).map(str.strip).filter(bool)
tricky = st.sampled_from(["great", "\ngreat\n\n\n", "Sentiment: great", "(terrible)"]).map(str.strip)


@given(
    text=sentences | tricky,
    shown=st.lists(st.tuples(sentences | tricky, st.sampled_from(LABELS.names)), min_size=1, max_size=8),
    template=st.sampled_from(TEMPLATES),
    per_demo=st.integers(50, 90),
    all_demos=st.integers(100, 400),
    bos=st.booleans(),
    answer=st.sampled_from(LABELS.names),
)
def test_each_key_is_the_position_of_a_label(text, shown, template, per_demo, all_demos, bos, answer):
    builder = PromptBuilder(TINY, template, "direct", TokenLimits(per_demo, all_demos, 30), bos=bos)
    ready = prepared(builder, text, shown)
    marked = mark_labels(ready, builder, answer)
    kept = [demo for demo in ready.demos if demo.kept]
    assert marked.shown == tuple(demo.label for demo in kept)
    assert list(marked.keys) == sorted(set(marked.keys))
    tokens = marked.tokens[1:] if bos else marked.tokens
    field = template.label.partition("{label}")[0].rstrip()
    for key, demo in zip(marked.keys, kept, strict=True):
        before, after = TINY.decode(tokens[: key - bos]), TINY.decode(tokens[key - bos :])
        # The token may begin with the space before the label, but not later than the label.
        assert after.removeprefix(" ").startswith(demo.words)
        assert before.rstrip(" ").endswith(template.joint + field)
        assert before + after == TINY.decode(tokens)
    # The answer follows the last token.
    full = ready.prompt.tokens(LABELS.names.index(answer))
    assert full[: len(marked.tokens)] == marked.tokens
    assert TINY.decode(full[len(marked.tokens) :]).removeprefix(" ").startswith(LABELS[answer].words)


def test_the_first_token_may_contain_the_space_before_the_label():
    class Letters:
        def decode(self, tokens):
            return "".join(tokens)

    assert first_token_after(Letters(), ["\n", "Sentiment", ":", " great"], "\nSentiment: ") == 3
    assert first_token_after(Letters(), ["\n", "Sentiment", ": ", "gr", "eat"], "\nSentiment: ") == 3
    assert first_token_after(Letters(), ["\ngre", "at"], "\n") == 0
    with pytest.raises(PromptError, match="ends with"):
        first_token_after(Letters(), ["\n"], "\n")


def test_weights_of_two_classes():
    marked = MarkedPrompt((1, 2, 3, 4), (0, 1, 2), ("a", "b", "a"), "a", 2)
    assert marked.weights.tolist() == [1, -1, 1]


def test_prompts_without_an_answer_to_find():
    direct, channel = (PromptBuilder(TINY, get_template("review"), kind) for kind in ("direct", "channel"))
    shown = [("A lamp.", "great")]
    with pytest.raises(ConfigError, match="direct prompts"):
        mark_labels(prepared(channel, "In.", shown), channel, "great")
    with pytest.raises(LabelError, match="no label 'good'"):
        mark_labels(prepared(direct, "In.", shown), direct, "good")
    with pytest.raises(PromptError, match="shows no label"):
        mark_labels(prepared(direct, "In.", []), direct, "great")


def training(labels):
    encoder = BagEncoder()
    examples = [Example(str(n), f"soup number {n} of {label}", label) for n, label in enumerate(labels)]
    return TrainingIndex("Soup", examples, lambda: encoder, lambda text: encoder.encode([text])[0])


@given(st.lists(st.sampled_from("abc"), max_size=20), st.integers(1, 3))
def test_demonstrations_are_the_nearest_of_each_label(more, each):
    labels = ["a", "b", "c"] * each + more
    index, query = training(labels), Query("soup of a")
    found = NearestPerLabel(tuple(labels)).retrieve(index, query, 3 * each)
    assert Counter(labels[item.row] for item in found) == {"a": each, "b": each, "c": each}
    assert [item.similarity for item in found] == sorted((item.similarity for item in found), reverse=True)
    every = Nearest().retrieve(index, query, len(labels))
    for label in "abc":
        first = [item.row for item in every if labels[item.row] == label][:each]
        assert [item.row for item in found if labels[item.row] == label] == first


def test_too_few_examples_of_a_label():
    with pytest.raises(RetrievalError, match="of 'b' there are 1 examples"):
        NearestPerLabel(("a", "a", "a", "b")).retrieve(training(["a", "a", "a", "b"]), Query("soup"), 4)


@pytest.fixture
def prompts():
    draw = np.random.default_rng(2)
    tokens = [tuple(draw.integers(2, 400, n).tolist()) for n in (30, 50, 90)]
    return [
        MarkedPrompt(each, (4, 9, 20), ("a", "b", "c"), answer, 3) for each, answer in zip(tokens, "aba", strict=True)
    ]


def test_the_score_is_attention_to_the_answer_minus_attention_to_others_averaged_over_prompts(lm, prompts):
    seen = []
    found = find_heads(lm, prompts, task="toy", progress=seen.append)
    assert seen == [1, 1, 1]
    assert (found.model, found.identity, found.task, found.prompts) == (lm.name, lm.identity, "toy", 3)
    for layer, head in [(0, 0), (2, 3)]:
        each = []
        for prompt in prompts:
            row = last_token_attention(lm, prompt.tokens)[layer, head].astype(float)
            weight = {key: row[key] for key in prompt.keys}
            same = {"a": 4, "b": 9}[prompt.answer]
            each.append(weight.pop(same) - sum(weight.values()) / 2)
        assert found[Head(layer, head)] == pytest.approx(np.mean(each), abs=1e-9)
    # No prompt's score depends on the others or on their order.
    alone = [find_heads(lm, [prompt]).values for prompt in prompts]
    assert np.abs(np.mean(alone, axis=0) - found.values).max() < 1e-12
    assert np.abs(find_heads(lm, prompts[::-1]).values - found.values).max() < 1e-12


def test_without_prompts(lm):
    with pytest.raises(ConfigError, match="no prompts"):
        find_heads(lm, [])
