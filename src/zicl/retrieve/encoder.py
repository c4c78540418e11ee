"""Sentence encoders: ONNX files and any sentence-transformers model, with unit vectors and batches sorted by length."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zicl._util.catalog import catalog, find_asset
from zicl._util.hub import can_reach_hub, check_model_name, not_fetched
from zicl._util.process import quiet
from zicl.exceptions import ModelNotFoundError, first_line
from zicl.inputs.beginnings import beginning
from zicl.retrieve.onnx import OnnxEncoder, is_onnx_encoder

Vectors = NDArray[np.float32]
DEFAULT_ENCODER = "bge-small-en-v1.5"
# Small batches win on a CPU: they stay in its cache and waste less padding.
_BATCH = 32


class Encoder(Protocol):
    """Turns texts into unit vectors; ``identity`` is a hash of the weights and of how they are used."""

    name: str
    identity: str
    dimension: int

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in float32."""
        ...

    def __hash__(self) -> int: ...


def cuts(encoder: Encoder, text: str) -> bool:
    """Return whether an encoder reads only the beginning of a text; one that cannot say so reads it all."""
    return bool(getattr(encoder, "cuts", lambda _: False)(text))


class SentenceEncoder:
    """A sentence-transformers model as an encoder. Deep copies return the encoder itself."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model.eval(), name
        size = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        self.dimension = int(size())
        self.identity = _identity(model)

    def __deepcopy__(self, memo: dict[int, object]) -> SentenceEncoder:
        return self

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text; batches are sorted by length and so hold hardly any padding."""
        if not texts:
            # Tokenizers refuse an empty list.
            return np.empty((0, self.dimension), dtype=np.float32)
        texts = [self._beginning(text) for text in texts]
        if not self._is_plain():
            vectors = self.model.encode(texts, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False)
            return np.asarray(vectors, dtype=np.float32)
        import torch

        tokenizer = self.model.tokenizer
        tokens = tokenizer(texts, truncation=True, max_length=self.model.max_seq_length)["input_ids"]
        lengths = np.array([len(row) for row in tokens])
        order = np.argsort(-lengths, kind="stable")
        result = np.empty((len(texts), self.dimension), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), _BATCH):
                chosen = order[start : start + _BATCH]
                result[chosen] = self._forward([tokens[i] for i in chosen], int(lengths[chosen[0]]))
        return result

    def cuts(self, text: str) -> bool:
        """Return whether a text is longer than what its vector is made of."""
        most = getattr(self.model, "max_seq_length", None)
        if most is None or len(text.encode("utf-8", "replace")) <= most - 2 or not self._is_plain():
            return False
        return len(self.model.tokenizer(self._beginning(text), verbose=False)["input_ids"]) > int(most)

    def _beginning(self, text: str) -> str:
        from transformers import PreTrainedTokenizerBase

        tokenizer, limit = self.model.tokenizer, getattr(self.model, "max_seq_length", None)
        if not limit or not isinstance(tokenizer, PreTrainedTokenizerBase):
            return text
        return beginning(text, limit, lambda cut: len(tokenizer(cut, verbose=False)["input_ids"]))

    def _forward(self, rows: list[list[int]], width: int) -> Vectors:
        import torch

        padding = self.model.tokenizer.pad_token_id or 0
        features = {
            "input_ids": torch.tensor([row + [padding] * (width - len(row)) for row in rows]),
            "attention_mask": torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows]),
        }
        output = self.model({name: value.to(self.model.device) for name, value in features.items()})
        vectors = torch.nn.functional.normalize(output["sentence_embedding"].float(), dim=-1)
        return np.asarray(vectors.cpu().numpy(), dtype=np.float32)

    def _is_plain(self) -> bool:
        """Return whether encoding is just tokenise, run and pool; models with a default prompt do more."""
        from transformers import PreTrainedTokenizerBase

        has_prompt = getattr(self.model, "default_prompt_name", None) is not None
        return not has_prompt and isinstance(self.model.tokenizer, PreTrainedTokenizerBase)


def load_encoder(name: str = DEFAULT_ENCODER, *, offline: bool = False, device: str | None = None) -> Encoder:
    """Load an encoder by catalog name, folder or hub id. An ONNX encoder always runs on the CPU.

    SimCSE models get the pooling that their authors published.
    """
    # Corpora and classifiers may have recorded a name without an owner, which sentence-transformers completes.
    if name in catalog():
        check_model_name(name, "encoder")
    asset = find_asset(name, offline=offline)
    source = str(asset) if asset else name
    if is_onnx_encoder(Path(source)):
        return OnnxEncoder(Path(source), name)
    return _load_sentence_encoder(name, source, offline=offline, device=device)


def _load_sentence_encoder(name: str, source: str, *, offline: bool, device: str | None) -> SentenceEncoder:
    # Imported only here: it takes seconds, and ONNX encoders do without.
    from sentence_transformers import SentenceTransformer

    is_folder = Path(source).is_dir()
    local = offline or is_folder or not can_reach_hub(source)
    try:
        with quiet() if local else contextlib.nullcontext():
            if "simcse" in Path(name).name.lower():
                model = SentenceTransformer(modules=_simcse(source, local), device=device)
            else:
                model = SentenceTransformer(source, device=device, local_files_only=local)
    except (OSError, ValueError) as error:
        if local and not is_folder:
            raise not_fetched(f"the encoder {name!r}", error) from error
        raise ModelNotFoundError(
            f"the encoder {name!r} could not be loaded: {first_line(error)}",
            hint="name a catalog model (zicl models list), a folder, or the id of a sentence-transformers model",
        ) from error
    return SentenceEncoder(model, name)


def _simcse(source: str, offline: bool) -> list[Any]:
    """Pool the first token's state; the supervised models pass it through the pooler they were trained with."""
    import torch
    from sentence_transformers.sentence_transformer import modules as models
    from transformers import AutoModel

    body = models.Transformer(source, max_seq_length=256, config_args={"local_files_only": offline})
    width = (
        body.get_embedding_dimension()
        if hasattr(body, "get_embedding_dimension")
        else body.get_word_embedding_dimension()
    )
    modules = [body, models.Pooling(width, pooling_mode="cls")]
    if "unsup" not in Path(source).name.lower():
        dense = models.Dense(width, width, activation_function=torch.nn.Tanh())
        pooler = AutoModel.from_pretrained(source, local_files_only=offline, dtype=torch.float32).pooler.dense
        dense.linear.load_state_dict(pooler.state_dict())
        modules.append(dense)
    return modules


def _identity(model: Any) -> str:
    """Hash the weights and how they are used: the same wherever the model was loaded from."""
    digest = hashlib.sha256(f"{getattr(model, 'max_seq_length', None)}".encode())
    tokenizer = getattr(model, "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    digest.update((backend.to_str() if backend is not None else type(tokenizer).__name__).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().float().contiguous().numpy().tobytes())
    for module in model:
        digest.update(type(module).__name__.encode())
        digest.update(str(getattr(module, "pooling_mode", "")).encode())
    return digest.hexdigest()
