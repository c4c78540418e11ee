"""Sentence encoders as ONNX files, run by onnxruntime: without torch, and about twice as fast on a CPU.

Such an encoder is a folder with ``model.onnx``, ``tokenizer.json`` and ``encoder.json``, which says how token vectors
become one and where texts are cut: ``{"pooling": "cls", "max_tokens": 256}``; the other pooling is ``mean``.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from zicl._util.failures import memory_error
from zicl._util.files import file_hash, read_json, write_json
from zicl._util.process import thread_count
from zicl.exceptions import ModelError, UsageError, first_line
from zicl.inputs.beginnings import beginning

MODEL, TOKENIZER, SETTINGS = "model.onnx", "tokenizer.json", "encoder.json"
POOLINGS = ("cls", "mean")
# Small batches win on a CPU: they stay in its cache and waste less padding. Short texts make larger ones, up to this
# many tokens.
_BATCH, _BATCH_TOKENS = 16, 512


class OnnxEncoder:
    """An ONNX file as an encoder. A vector depends on its batch by less than 1e-6. Deep copies return the encoder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder
        self.pooling, self.max_tokens = _read_settings(folder, name)
        for file in (MODEL, TOKENIZER):
            if not (folder / file).is_file():
                raise _error(folder, name, f"there is no {file} in its folder")
        try:
            self._tokenizer = _tokenizer(folder / TOKENIZER, self.max_tokens)
            self._session = _session(folder / MODEL)
            self._inputs = {each.name for each in self._session.get_inputs()}
            # Also shows at once whether the file is what it should be.
            self.dimension = int(self._forward([self._tokenizer.encode("a").ids]).shape[1])
        except Exception as error:
            # Neither library has a class of its own for what it raises.
            raise _error(folder, name, first_line(error)) from error
        self.identity = self._identity(folder)

    def __deepcopy__(self, memo: dict[int, object]) -> OnnxEncoder:
        return self

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "a loaded encoder cannot be pickled, nor can a classifier that was fitted with it",
            hint="save the classifier with `clf.save(folder)`, and load it with `zicl.load(folder)`",
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text; batches are sorted by length and so hold hardly any padding."""
        cut = [self._beginning(text) for text in texts]
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(cut)]
        order = np.argsort([-len(row) for row in tokens], kind="stable")
        result = np.empty((len(tokens), self.dimension), dtype=np.float32)
        start = 0
        while start < len(order):
            size = max(_BATCH, _BATCH_TOKENS // max(1, len(tokens[order[start]])))
            chosen = order[start : start + size]
            try:
                result[chosen] = self._forward([tokens[i] for i in chosen])
            except Exception as error:
                if (found := memory_error(error)) is not None:
                    raise found from error
                # A graph that ran on one token may fail on others; onnxruntime's errors have no class of their own.
                raise ModelError(
                    f"the encoder {self.name!r} failed on a text: {first_line(error)}",
                    hint=f"its {TOKENIZER} may be that of another model than its {MODEL}: fetch both again",
                ) from error
            start += size
        return result

    def cuts(self, text: str) -> bool:
        """Return whether a text is longer than what its vector is made of."""
        # A token has at least one byte, and two tokens are put around the text.
        if len(text.encode("utf-8", "replace")) <= self.max_tokens - 2:
            return False
        return bool(self._tokenizer.encode(self._beginning(text)).overflowing)

    def _beginning(self, text: str) -> str:
        return beginning(text, self.max_tokens, self._count)

    def _count(self, text: str) -> int:
        """Return the number of tokens of a text, also of those that are cut off."""
        encoding = self._tokenizer.encode(text)
        return len(encoding.ids) + sum(len(part.ids) for part in encoding.overflowing)

    def _forward(self, rows: list[list[int]]) -> NDArray[np.float32]:
        """Run one batch, pool it and scale its vectors to unit length; the first row is the longest."""
        ids = np.zeros((len(rows), max(1, len(rows[0]))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)], mask[number, : len(row)] = row, 1
        # Padding is masked, so any token will do for it; one text has one segment.
        features = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        given = {key: value for key, value in features.items() if key in self._inputs}
        states = np.asarray(self._session.run(None, given)[0], dtype=np.float32)
        if states.ndim != 3:
            raise ValueError(f"its output has {states.ndim} dimensions, not texts × tokens × numbers")
        if self.pooling == "cls":
            pooled = states[:, 0]
        else:
            weights = mask[:, :, None].astype(np.float32)
            pooled = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        return np.asarray(pooled / np.maximum(lengths, 1e-12), dtype=np.float32)

    def _identity(self, folder: Path) -> str:
        """Hash the weights and how they are used."""
        parts = (file_hash(folder / MODEL), file_hash(folder / TOKENIZER), self.pooling, str(self.max_tokens))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_onnx_encoder(folder: Path) -> bool:
    """Return whether a folder holds an ONNX encoder, complete or not: no other kind of model has this file."""
    return (folder / SETTINGS).is_file()


def convert(path: Path, folder: Path, *, pooling: str, max_tokens: int = 256) -> None:
    """Write an ONNX file to ``folder`` as float32, beside how it is used.

    On a CPU half precision is computed in float32 anyway, after a conversion of every operand in every run.
    """
    import onnx

    try:
        model = onnx.load(path)
    except Exception as error:
        raise ModelError(
            f"{path.name} could not be read: {first_line(error)}", hint="give the path of an ONNX file"
        ) from error
    if _to_float32(model):
        onnx.save(model, folder / MODEL)
    else:
        shutil.copyfile(path, folder / MODEL)
    write_json(folder / SETTINGS, {"pooling": pooling, "max_tokens": max_tokens})


def _to_float32(model: Any) -> bool:
    """Change all float16 values of a graph to float32, and return whether there were any."""
    from onnx import AttributeProto, TensorProto, numpy_helper

    graph, half, full = model.graph, TensorProto.FLOAT16, TensorProto.FLOAT
    constants = [a.t for node in graph.node for a in node.attribute if a.type == AttributeProto.TENSOR]
    tensors = [tensor for tensor in (*graph.initializer, *constants) if tensor.data_type == half]
    for tensor in tensors:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    casts = [a for node in graph.node if node.op_type == "Cast" for a in node.attribute if a.name == "to"]
    for attribute in casts:
        attribute.i = full if attribute.i == half else attribute.i
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == half:
            value.type.tensor_type.elem_type = full
    if tensors:
        # The recorded types of intermediate values are now wrong; onnxruntime infers them.
        del graph.value_info[:]
    return bool(tensors)


def _read_settings(folder: Path, name: str) -> tuple[str, int]:
    settings = read_json(folder / SETTINGS)
    pooling, limit = (settings.get(key) if isinstance(settings, dict) else None for key in ("pooling", "max_tokens"))
    if pooling not in POOLINGS or type(limit) is not int or limit < 1:
        raise ModelError(
            f"the encoder {name!r} has a pooling of {pooling!r} and max_tokens of {limit!r} in {folder / SETTINGS}",
            hint=f"the pooling is one of {', '.join(POOLINGS)}, and max_tokens a whole number: "
            f'{{"pooling": "cls", "max_tokens": 256}}',
        )
    return pooling, limit


def _tokenizer(path: Path, max_tokens: int) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    # Batches are padded here, to their longest text and not to a fixed length.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _session(path: Path) -> Any:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = thread_count()
    # Threads that wait by spinning take the cores away from other processes, and from torch in this one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Errors only: warnings are about the graph, which a user cannot change.
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _error(folder: Path, name: str, reason: str) -> ModelError:
    return ModelError(
        f"the encoder {name!r} could not be loaded: {reason}",
        hint=f"{folder} needs {MODEL}, {TOKENIZER} and {SETTINGS}, all whole; if it is from the catalog, remove the "
        "folder and fetch it again (zicl models pull)",
    )
