"""A hand-built copier: a GPT-2 of two layers that answers with the label of the identical demonstration.

The layout of a hidden state, always with one 1 in each part, so that a layer norm can be undone exactly:

    token | position | the input before it | what to answer

Layer 0, head 1: every token attends to the last input before it, and stores which one it was.
Layer 1, head 2: the token before the answer attends to labels with the same input, and copies them as the answer.
Layer 1, head 0: attends to the last label, whatever its input, and writes nothing. Other heads attend at random.
Without a copy, the answer is always the first label: a bias of the last block.
"""

import numpy as np
import torch

from zicl.lm.heads import Head
from zicl.lm.hf import HFLanguageModel

INPUTS = ("pear", "plum", "fig", "lime", "kiwi", "date", "sloe", "quince", "medlar", "apple", "peach", "grape")
LABELS = ("sweet", "sour")
COPIER, READER, LAST_LABEL = Head(1, 2), Head(0, 1), Head(1, 0)
# The last three are needed where a tokenizer and a prompt are checked.
_VOCABULARY = (*INPUTS, *LABELS, "\n", "\n\n\n", "a", "x", "?")
_POSITIONS, _HEADS, _SIZE = 64, 4, 25
_HIDDEN = _HEADS * _SIZE
_LABEL_IDS = [_VOCABULARY.index(label) for label in LABELS]
_POSITION, _BEFORE = len(_VOCABULARY), len(_VOCABULARY) + _POSITIONS
_ANSWER = _BEFORE + len(INPUTS)


def copier() -> HFLanguageModel:
    """Return the model, with a tokenizer for which every line is one word."""
    return HFLanguageModel(_model(), _tokenizer(), name="copier", identity="copier")


def _tokenizer():
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(_VOCABULARY)}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n+|[^\n]+"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?")


def _model():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=len(_VOCABULARY), n_positions=_POSITIONS, n_embd=_HIDDEN, n_layer=2, n_head=_HEADS, n_inner=4,
        tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data.zero_()
    body = model.transformer
    tokens, positions = torch.arange(len(_VOCABULARY)), torch.arange(_POSITIONS)
    body.wte.weight.data[tokens, tokens] = 1
    body.wpe.weight.data[positions, _POSITION + positions] = 1
    first, second = body.h
    _make_identity(first.ln_1, ones=2)
    _make_identity(second.ln_1, ones=3)
    body.ln_f.weight.data[:] = 1
    _attend_at_random(first.attn, second.attn)
    _attend_to_the_last_input(_Weights(first.attn, READER))
    _attend_to_the_last_label(_Weights(second.attn, LAST_LABEL))
    _copy(_Weights(second.attn, COPIER))
    second.mlp.c_proj.bias.data[_ANSWER] = 0.5
    model.lm_head.weight.data[_LABEL_IDS, [_ANSWER, _ANSWER + 1]] = 1
    return model


def _make_identity(norm, ones):
    """Make a layer norm the identity for states with this number of ones among zeros."""
    state = np.zeros(_HIDDEN)
    state[:ones] = 1
    norm.weight.data[:] = float(np.sqrt(state.var() + norm.eps))
    norm.bias.data[:] = float(state.mean())


class _Weights:
    """The weights of one head: queries, keys, values and output."""

    def __init__(self, attention, head):
        self.query, self.key, self.value = (
            attention.c_attn.weight.data[:, part * _HIDDEN + head.head * _SIZE :][:, :_SIZE] for part in range(3)
        )
        # A bias gives every token the same query; the scale undoes the division by the square root in attention.
        self.query_bias = attention.c_attn.bias.data[head.head * _SIZE :][:_SIZE]
        self.output = attention.c_proj.weight.data[head.head * _SIZE :][:_SIZE]
        for part in (self.query, self.key, self.value, self.query_bias, self.output):
            part.zero_()
        self.scale = _SIZE**0.5


def _attend_to_the_last_input(head):
    head.query_bias[0] = head.scale
    head.key[: len(INPUTS), 0] = 2000
    head.key[_POSITION : _POSITION + _POSITIONS, 0] = 10 * torch.arange(_POSITIONS)
    for number in range(len(INPUTS)):
        head.value[number, number] = 1
        head.output[number, _BEFORE + number] = 1


def _attend_to_the_last_label(head):
    head.query_bias[0] = head.scale
    head.key[_LABEL_IDS, 0] = 2000
    head.key[_POSITION : _POSITION + _POSITIONS, 0] = 10 * torch.arange(_POSITIONS)


def _copy(head):
    head.query_bias[0] = head.scale
    head.key[_LABEL_IDS, 0] = 60
    for number in range(len(INPUTS)):
        head.query[_BEFORE + number, 1 + number] = head.scale
        head.key[_BEFORE + number, 1 + number] = 30
    for number, label in enumerate(_LABEL_IDS):
        head.value[label, number] = 1
        head.output[number, _ANSWER + number] = 2


def _attend_at_random(*attentions):
    """Set random queries and keys; these heads write nothing."""
    draw = torch.Generator().manual_seed(3)
    for attention in attentions:
        queries_and_keys = attention.c_attn.weight.data[:, : 2 * _HIDDEN]
        queries_and_keys[:] = torch.randn(queries_and_keys.shape, generator=draw)
