"""Tiny models built in code, and text written for this project. Nothing here reaches the network."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ZICL_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

# Fixtures of every folder.
pytest_plugins = ("tests.browser", "tests.program")

settings.register_profile("zicl", deadline=None, max_examples=40)
settings.load_profile("zicl")
# One thread: with two, small operations take fifty times as long while another process uses a core.
torch.set_num_threads(1)

# Written for this project: a pile of raw text about films, food and trains, in paragraphs.
DOCUMENTS = [
    "The lamp on the stage kept failing. Nobody in the hall complained about it. The actors simply moved closer.",
    "We took the slow train north. It stopped at every village. An old man sold pears through the window.",
    "The soup was cold and thin. I sent it back twice. The waiter smiled and brought the same bowl.",
    "A bold little film about a lighthouse. The keeper never speaks. Her silence carries every scene.",
    "The second act drags terribly. The villain explains his plan three times. I counted the ceiling tiles.",
    "Our guide knew each bird by its call. We heard eleven before noon. The children kept a list.",
    "The bread here is worth the walk. They bake it at four in the morning. By nine it is gone.",
    "His new phone lasted one week. The screen went dark during a call. The shop blamed the weather.",
    "She sang as if nobody listened. The whole room held its breath. Even the barman stopped pouring.",
    "The ending felt rushed and cheap. All the clues led nowhere. The director must have run out of film.",
]


@pytest.fixture(autouse=True)
def _threads(request):
    """Use both cores for the real models, whose operations are large."""
    torch.set_num_threads(2 if request.node.get_closest_marker("real") else 1)


class BagEncoder:
    """Words hashed into a unit vector: an encoder with no weights, for the logic around it."""

    name, dimension = "bag", 32
    identity = hashlib.sha256(b"bag").hexdigest()

    def encode(self, texts):
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
                rows[row, digest[0] % self.dimension] += 1 if digest[1] % 2 else -1
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows[:, 0] += (norms[:, 0] == 0).astype(np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


class BatchDependentEncoder(BagEncoder):
    """Its last digits depend on the texts that are encoded together, as those of real encoders do."""

    def __init__(self):
        self.encoded = []

    def encode(self, texts):
        self.encoded += texts
        digest = hashlib.blake2b("\n".join(texts).encode(), digest_size=1).digest()
        return super().encode(texts) + np.float32(1e-6 * digest[0] / 256)


def byte_tokenizer(**special):
    """A byte-level BPE tokenizer trained on the documents above."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*DOCUMENTS, "Review: Sentiment: great terrible good bad\n\n\n"] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", **special)


def tiny_model(family: str):
    """A randomly initialised model of a family, small enough to build in milliseconds."""
    import transformers as hf

    torch.manual_seed(5)
    small = {"vocab_size": 400, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    gpt = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 512, **small}
    llama = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
        "max_position_embeddings": 512, **small,
    }  # fmt: skip
    configs = {
        "gpt2": lambda: hf.GPT2Config(**gpt),
        "gptj": lambda: hf.GPTJConfig(rotary_dim=4, **gpt),
        "neox": lambda: hf.GPTNeoXConfig(**llama),
        "llama": lambda: hf.LlamaConfig(num_key_value_heads=2, **llama),
        "gemma3": lambda: hf.Gemma3TextConfig(
            num_key_value_heads=1,
            head_dim=8,
            sliding_window=16,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            **llama,
        ),
        "bloom": lambda: hf.BloomConfig(hidden_size=32, n_layer=2, n_head=4, **small),
    }
    model = hf.AutoModelForCausalLM.from_config(configs[family]())
    # Random initial weights are so small that every label ties; larger ones make the differences real.
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and "embed" not in name:
            parameter.data.mul_(6)
    return model.eval()


def tiny_lm(family: str = "llama", batch_size: int = 8):
    from zicl.lm.hf import HFLanguageModel

    return HFLanguageModel(
        tiny_model(family),
        byte_tokenizer(),
        name=f"tiny-{family}",
        identity=f"tiny-{family}",
        batch_size=batch_size,
    )


@pytest.fixture(scope="session")
def lm():
    return tiny_lm()


@pytest.fixture(scope="session")
def lm_folder(tmp_path_factory) -> Path:
    """A tiny language model saved as anyone's model folder."""
    folder = tmp_path_factory.mktemp("models") / "tiny-lm"
    tiny_model("llama").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory) -> Path:
    """A tiny sentence-transformers model saved as anyone's encoder folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as st
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("models")
    words = sorted({word.strip(".").lower() for text in DOCUMENTS for word in text.split()})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *words]))
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(words) + 6,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    body = st.Transformer(str(folder / "bert"), max_seq_length=64)
    model = SentenceTransformer(modules=[body, st.Pooling(16)], device="cpu")
    model.save(str(folder / "tiny-encoder"), create_model_card=False)
    return folder / "tiny-encoder"


@pytest.fixture
def jsonl(tmp_path) -> Path:
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS), encoding="utf-8")
    return path


@pytest.fixture
def index(tmp_path, jsonl):
    """A searchable corpus of the documents, with the bag encoder."""
    return make_index(tmp_path / "raw.zicl", jsonl)


def make_index(folder: Path, *paths: Path, domains=None, kind="flat", **options):
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.shards import BuildOptions
    from zicl.corpus.sources import find_sources
    from zicl.retrieve.builder import build_index
    from zicl.retrieve.index import Index

    corpus = build_corpus(find_sources(paths, domains), folder, BuildOptions(**options))
    build_index(corpus, BagEncoder(), kind=kind)
    return Index.open(folder, encoder=BagEncoder())


@pytest.fixture(scope="session")
def real_lm():
    """The default language model, as the set-up fetched it."""
    from zicl.lm.load import load_lm

    return load_lm(offline=True)
