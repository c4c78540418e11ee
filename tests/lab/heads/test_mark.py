"""The places of displayed labels, in prompts that are cut, dropped from and written with every template."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import byte_tokenizer
from zicl.corpus.store import Sentence
from zicl.exceptions import ConfigError, LabelError, PromptError
from zicl.lab.heads.find import MarkedPrompt, first_token_behind, mark_labels
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import LabelledText, PromptBuilder, TokenLimits
from zicl.prompt.labels import Labels
from zicl.prompt.template import Template, get_template
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
def test_each_key_is_where_its_label_begins(text, shown, template, per_demo, all_demos, bos, answer):
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
        # The label's token may begin with the space before it, never later than the label.
        assert after.removeprefix(" ").startswith(demo.words)
        assert before.rstrip(" ").endswith(template.joint + field)
        assert before + after == TINY.decode(tokens)
    # What follows the last token is the answer.
    whole = ready.prompt.tokens(LABELS.names.index(answer))
    assert whole[: len(marked.tokens)] == marked.tokens
    assert TINY.decode(whole[len(marked.tokens) :]).removeprefix(" ").startswith(LABELS[answer].words)


def test_a_space_is_a_part_of_the_label_or_not():
    class Letters:
        def decode(self, tokens):
            return "".join(tokens)

    assert first_token_behind(Letters(), ["\n", "Sentiment", ":", " great"], "\nSentiment: ") == 3
    assert first_token_behind(Letters(), ["\n", "Sentiment", ": ", "gr", "eat"], "\nSentiment: ") == 3
    assert first_token_behind(Letters(), ["\ngre", "at"], "\n") == 0
    with pytest.raises(PromptError, match="ends with"):
        first_token_behind(Letters(), ["\n"], "\n")


def test_the_weights_of_two_classes():
    marked = MarkedPrompt((1, 2, 3, 4), (0, 1, 2), ("a", "b", "a"), "a", 2)
    assert marked.weights.tolist() == [1, -1, 1]


def test_prompts_that_have_no_answer_to_look_for():
    direct, channel = (PromptBuilder(TINY, get_template("review"), kind) for kind in ("direct", "channel"))
    shown = [("A lamp.", "great")]
    with pytest.raises(ConfigError, match="direct prompts"):
        mark_labels(prepared(channel, "In.", shown), channel, "great")
    with pytest.raises(LabelError, match="no label 'good'"):
        mark_labels(prepared(direct, "In.", shown), direct, "good")
    with pytest.raises(PromptError, match="shows no label"):
        mark_labels(prepared(direct, "In.", []), direct, "great")
