"""Long texts are cut before they are tokenized, and the tokens that are kept are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, byte_tokenizer
from zicl.inputs.beginnings import beginning
from zicl.inputs.pair import Pair
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.builder import LabelledText, PromptBuilder, TokenLimits
from zicl.prompt.template import Template


def word_pieces():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        DOCUMENTS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False)
    )
    return lambda text: tokenizer.encode(text).ids


def metaspace():
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(DOCUMENTS, trainer)
    return lambda text: tokenizer.encode(text).ids


ENCODERS = {
    "bytes": PlainTokenizer(byte_tokenizer(), "bytes").encode,
    "pieces": word_pieces(),
    "metaspace": metaspace(),
}
# Words, long words, runs of blanks, letters without a blank, accents, signs and what tokenizers drop.
words = st.sampled_from(
    ["lamp", "train", "z" * 99, "z" * 101, "q" * 700, "冬の港", "é", "e\u0301", "\u0301", "!?", "12"]
)
gaps = st.sampled_from(["", " ", "  ", "\n", "\n\n", "\t", " " * 50, "\x07", "\u00a0"])
pieces = st.lists(st.tuples(words, gaps), min_size=1, max_size=12).map(lambda p: "".join(a + b for a, b in p))


@pytest.mark.parametrize("name", list(ENCODERS))
@given(start=pieces, repeated=pieces, limit=st.integers(1, 200))
def test_the_kept_tokens_are_those_of_the_complete_text(name, start, repeated, limit):
    encode = ENCODERS[name]
    text = start + repeated * (1 + 12_000 // len(repeated))
    cut = beginning(text, limit, lambda part: len(encode(part)))
    assert text.startswith(cut)
    complete = encode(text)
    assert list(encode(cut))[:limit] == list(complete)[:limit]
    # Whether there were more is the same too.
    assert (len(encode(cut)) > limit) == (len(complete) > limit)


def test_a_text_of_megabytes_is_not_tokenized():
    counted = []

    def count(text):
        counted.append(len(text))
        return len(text.split())

    assert len(beginning("lamp " * 10_000_000, 256, count)) < 5000
    assert len(beginning("a" * 50_000_000, 256, count)) == 4096 * 256
    assert sum(counted) < 3_000_000


class Counted(PlainTokenizer):
    """Records how many characters it encodes."""

    longest = 0

    def encode(self, text):
        self.longest = max(self.longest, len(text))
        return super().encode(text)


@pytest.mark.parametrize("inference", ["direct", "channel"])
@given(long=pieces, short=pieces)
def test_prompts_of_long_texts_are_the_same(inference, long, short):
    """What is built of a long text is what is built of twice as much of it."""
    tokenizer = Counted(byte_tokenizer(), "bytes")
    builder = PromptBuilder(tokenizer, Template("I: {input}", "L: {label}"), inference, TokenLimits(20, 200, 30))
    text = long * (1 + 40_000 // len(long))
    for one, other in ((text, text * 2), (Pair(short, text), Pair(short, text * 2))):
        demos, others = [LabelledText(one, "great")], [LabelledText(other, "great")]
        built = builder.build(one, demos, ["great", "bad"])
        assert built == builder.build(other, others, ["great", "bad"])
        assert built.input_cut
        assert built.demos_cut == 1
    assert tokenizer.longest < 20_000
