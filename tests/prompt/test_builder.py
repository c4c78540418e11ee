"""Prompts: text and tokens agree, limits hold, and the golden files hold their exact form."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import byte_tokenizer
from zicl.exceptions import ConfigError, LabelError, PromptError, TokenizationError, UnknownNameError
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import LabelledText, PromptBuilder, TokenLimits
from zicl.prompt.template import Template, get_template
from zicl.prompt.tokens import tokenize, truncate

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
    # One more demonstration would not have fitted: only whole farthest ones were dropped.
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


@given(sentences, st.integers(1, 20))
def test_a_cut_decodes_to_itself_and_is_a_beginning(text, limit):
    found = truncate(TINY, text, limit)
    assert len(found) <= limit
    assert TINY.decode(found.tokens) == found.text
    assert text.startswith(found.text)


def test_special_tokens_written_in_a_text_stay_text():
    found = tokenize(TINY, "a <s> in the text </s>")
    assert TINY.bos not in found.tokens
    assert TINY.decode(found.tokens) == "a <s> in the text </s>"


def test_labels_that_tokenise_alike_are_an_error():
    from tokenizers.normalizers import NFC

    normalising = byte_tokenizer()
    normalising.backend_tokenizer.normalizer = NFC()
    with pytest.raises(LabelError, match="are the same tokens"):
        builder(tokenizer=PlainTokenizer(normalising, "x")).build("In.", [], ("caf\u00e9", "cafe\u0301"))


def test_a_lossy_tokenizer_is_an_error_not_a_wrong_number():
    class Lossy(PlainTokenizer):
        def decode(self, tokens):
            return super().decode(tokens).lower()

    with pytest.raises(TokenizationError, match="does not give this text back"):
        tokenize(Lossy(byte_tokenizer(), "x"), "Upper")


def test_bos_needs_a_token():
    tokenizer = PlainTokenizer(byte_tokenizer(), "x")
    tokenizer.bos = None
    with pytest.raises(PromptError, match="beginning-of-sequence"):
        builder(tokenizer=tokenizer, bos=True).build("In.", [], WORDS)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("Review:", "x {label}"), "exactly once"),
        (("Review: {input} ", "{label}"), "white space"),
        (("{input}", "{label}{label}"), "once"),
    ],
)
def test_bad_templates(lines, message):
    with pytest.raises(ConfigError, match=message):
        Template(*lines)


def test_unknown_template():
    with pytest.raises(UnknownNameError, match="did you mean 'review'"):
        get_template("reviews")
    with pytest.raises(ConfigError, match="white space"):
        Template(joint=" and ")


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
