"""Prompts: text and tokens agree, limits hold, and the golden files hold their exact form."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import byte_tokenizer
from zicl.exceptions import LabelError, PromptError
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import LabelledText, PromptBuilder, TokenLimits, demonstration_order
from zicl.prompt.template import get_template

GOLDEN = Path(__file__).parent / "golden"
TINY = PlainTokenizer(byte_tokenizer(), "tiny")
WORDS = ("great", "terrible")
# Shaped as the paper's figure: three demonstrations, great / terrible, shown as good / bad.
EXAMPLE = [
    LabelledText("The usher handed out blankets before the show.", "good"),
    LabelledText("Half the row left during the second song.", "bad"),
    LabelledText("We laughed all the way to the station.", "good"),
]
TEST_INPUT = "A warm and funny evening at the theatre."


def builder(inference="direct", template="review", tokenizer=TINY, **more):
    return PromptBuilder(tokenizer, get_template(template), inference, **more)


def text_of(prompt):
    return [prompt.text(i) for i in range(len(prompt.branches))]


@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_golden_tiny(inference):
    check_golden(f"tiny-{inference}.json", builder(inference).build(TEST_INPUT, EXAMPLE, WORDS))


@pytest.mark.real
@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_golden_smollm2(inference, real_lm):
    check_golden(
        f"smollm2-{inference}.json",
        builder(inference, tokenizer=real_lm.tokenizer).build(TEST_INPUT, EXAMPLE, WORDS),
    )


def check_golden(name, prompt):
    """Compare with a golden file; ZICL_WRITE_GOLDEN=1 writes it anew, to be read over before it is committed."""
    found = {
        "prefix": {"text": prompt.prefix.text, "tokens": list(prompt.prefix.tokens)},
        "stem": {"text": prompt.stem.text, "tokens": list(prompt.stem.tokens)},
        "branches": [
            {
                part: {"text": getattr(b, part).text, "tokens": list(getattr(b, part).tokens)}
                for part in ("given", "scored")
            }
            for b in prompt.branches
        ],
    }
    path = GOLDEN / name
    if os.environ.get("ZICL_WRITE_GOLDEN"):
        path.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(path.read_text())


def test_direct_and_channel_as_text():
    assert text_of(builder("direct").build("In.", [LabelledText("Demo.", "good")], WORDS)) == [
        "Review: Demo.\nSentiment: good\n\n\nReview: In.\nSentiment: great",
        "Review: Demo.\nSentiment: good\n\n\nReview: In.\nSentiment: terrible",
    ]
    assert text_of(builder("channel").build("In.", [LabelledText("Demo.", "good")], WORDS)) == [
        "Sentiment: good\nReview: Demo.\n\n\nSentiment: great\nReview: In.",
        "Sentiment: good\nReview: Demo.\n\n\nSentiment: terrible\nReview: In.",
    ]
    assert text_of(builder("direct", "none").build("In.", [], WORDS))[0] == "In.\ngreat"


sentences = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(lambda t: t.strip())


@given(
    text=sentences,
    demos=st.lists(st.tuples(sentences, st.sampled_from(["good", "bad"])), max_size=8),
    inference=st.sampled_from(["direct", "channel"]),
    per_demo=st.integers(40, 80),
    all_demos=st.integers(0, 300),
    limit=st.integers(5, 40),
    bos=st.booleans(),
)
def test_text_tokens_and_limits_agree(text, demos, inference, per_demo, all_demos, limit, bos):
    text = text.strip()
    shown = [LabelledText(sentence.strip(), words) for sentence, words in demos]
    made = builder(inference, limits=TokenLimits(per_demo, all_demos, limit), bos=bos)
    prompt = made.build(text, shown, WORDS)
    for number in range(2):
        tokens = prompt.tokens(number)
        assert TINY.decode(tokens[1:] if bos else tokens) == prompt.text(number)
        assert (tokens[0] == TINY.bos) == bos
    assert len(prompt.prefix) - bos <= all_demos
    assert prompt.kept + prompt.dropped == len(demos)
    # One more demonstration would not have fitted: only the farthest ones were dropped.
    if prompt.dropped:
        more = builder(inference, limits=TokenLimits(per_demo, 10**6, limit), bos=bos).build(
            text, shown[prompt.dropped - 1 :], WORDS
        )
        assert len(more.prefix) - bos > all_demos
    for demo in shown[prompt.dropped :]:
        assert demo.words in prompt.prefix.text
    assert prompt.input_cut == (len(TINY.encode(text)) > limit)
    if not prompt.input_cut:
        assert text in prompt.text(0)


def test_the_context_of_the_model_is_kept():
    demos = [LabelledText("The second act drags terribly. " * 2, "bad")] * 8
    for inference in ("direct", "channel"):
        prompt = builder(inference, context=90).build(TEST_INPUT, demos, WORDS)
        assert prompt.dropped > 0
        assert max(len(prompt.tokens(i)) for i in range(2)) <= 90
    with pytest.raises(PromptError, match="leave no room"):
        builder(context=10).build(TEST_INPUT, [], WORDS)


def test_labels_with_the_same_tokens_are_an_error():
    from tokenizers.normalizers import NFC

    normalising = byte_tokenizer()
    normalising.backend_tokenizer.normalizer = NFC()
    with pytest.raises(LabelError, match="are the same tokens"):
        builder(tokenizer=PlainTokenizer(normalising, "x")).build("In.", [], ("caf\u00e9", "cafe\u0301"))


def test_bos_needs_a_token():
    tokenizer = PlainTokenizer(byte_tokenizer(), "x")
    tokenizer.bos = None
    with pytest.raises(PromptError, match="beginning-of-sequence"):
        builder(tokenizer=tokenizer, bos=True).build("In.", [], WORDS)


@given(
    demos=st.lists(st.tuples(sentences, st.sampled_from(["good", "bad"])), max_size=6),
    inference=st.sampled_from(["direct", "channel"]),
    all_demos=st.integers(0, 300),
    bos=st.booleans(),
)
def test_a_prompt_says_where_each_demonstration_ends(demos, inference, all_demos, bos):
    shown = [LabelledText(sentence.strip(), words) for sentence, words in demos]
    made = builder(inference, limits=TokenLimits(60, all_demos, 40), bos=bos)
    prompt = made.build("In.", shown, WORDS)
    assert len(prompt.ends) == prompt.kept
    kept = [shown[number] for number in prompt.shown]
    for count, end in enumerate(prompt.ends, start=1):
        assert made.build("In.", kept[:count], WORDS).prefix.tokens == prompt.prefix.tokens[:end]


@given(st.integers(0, 64), st.integers(0, 100), st.text(max_size=8))
def test_every_order_has_every_demonstration_once(count, seed, item):
    for order in ("nearest-last", "nearest-first", "shuffled"):
        assert sorted(demonstration_order(order, count, seed, item)) == list(range(count))
    assert demonstration_order("shuffled", count, seed, item) == demonstration_order("shuffled", count, seed, item)


def test_shuffles_depend_on_seed_and_item():
    assert demonstration_order("shuffled", 16, 0, "a") != demonstration_order("shuffled", 16, 1, "a")
    assert demonstration_order("shuffled", 16, 0, "a") != demonstration_order("shuffled", 16, 0, "b")


@pytest.mark.parametrize("inference", ["direct", "channel"])
@given(limit=st.integers(40, 140), words=st.sampled_from([("great", "bad"), ("great", "terribly boring")]))
def test_a_limit_for_the_prompt_cuts_every_label_from_the_left(inference, limit, words):
    """As the authors' code does: each label keeps its last tokens, whatever they belong to."""
    whole, cut = (
        builder(inference, limits=TokenLimits(prompt=prompt)).build(TEST_INPUT, EXAMPLE, words)
        for prompt in (None, limit)
    )
    for number in range(len(words)):
        assert cut.tokens(number) == whole.tokens(number)[-limit:]
        assert cut.branches[number].scored == whole.branches[number].scored
        assert TINY.decode(cut.tokens(number)) == cut.text(number)
    assert cut.kept + cut.dropped == len(EXAMPLE) == whole.kept
    assert cut.kept == len(cut.shown)
    excess = [max(0, len(whole.tokens(number)) - limit) for number in range(len(words))]
    assert cut.kept == sum(end > min(excess) for end in whole.ends)
    if len(set(excess)) == 1 and cut.ends:
        assert cut.ends[-1] == len(cut.prefix)


def test_a_limit_that_cuts_what_is_scored_is_an_error():
    with pytest.raises(PromptError, match="leaves no room"):
        builder("channel", limits=TokenLimits(prompt=5)).build(TEST_INPUT, EXAMPLE, WORDS)


def test_a_cut_prompt_keeps_its_beginning_of_sequence_token():
    words = ("great", "terribly boring")
    whole, cut = (
        builder("direct", bos=True, limits=TokenLimits(prompt=limit)).build(TEST_INPUT, EXAMPLE, words)
        for limit in (None, 60)
    )
    for number in range(2):
        assert cut.tokens(number) == (TINY.bos, *whole.tokens(number)[-59:])
