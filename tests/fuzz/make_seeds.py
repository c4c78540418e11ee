"""Write the seeds of the fuzz targets: small valid inputs, made of the tests' own text."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.conftest import DOCUMENTS
from tests.fuzz import targets
from tests.fuzz.targets import SEPARATOR
from tests.lm.remote.server import VLLM, Davinci, LlamaCpp, Server, SGLang

SEEDS = Path(__file__).parent / "seeds"


def main() -> None:
    """Write all seeds."""
    lines = "".join(
        json.dumps({"id": n, "text": text, "more": [1.5, None]}) + "\n" for n, text in enumerate(DOCUMENTS[:3])
    )
    write("jsonl", "rows", lines.encode())
    write("jsonl", "strings", b'"One lamp."\n\n"Two \\u00fc lamps."\n')
    write("csv", "rows", b'id,text,note\n1,"One, lamp.",a\n2,"Two ""lamps"".","b\nc"\n')
    write("csv", "plain", "\ufefftext\nÜber die Brücke\n".encode())
    write("txt", "paragraphs", "\n\n".join(DOCUMENTS[:2]).encode() + b"<|endoftext|>\nThe end.\n")
    write("gz", "rows", gzip.compress(lines.encode(), mtime=0))
    write("gz", "two", gzip.compress(b'"One."\n', mtime=0) + gzip.compress(b'"Two."\n', mtime=0))
    import zstandard

    write("zst", "rows", zstandard.compress(lines.encode()))
    write("parquet", "rows", parquet({"id": [1, 2], "text": DOCUMENTS[:2]}))
    write("parquet", "types", parquet({"text": ["One lamp."], "list": [[1, 2]], "number": [1.5], "bytes": [b"x"]}))
    write("arrow", "rows", arrow({"id": [1, 2], "text": DOCUMENTS[:2]}))
    write("xlsx", "rows", workbook([["id", "text", "paid", "share"], [1, "One lamp.", True, 0.5], [2, "Two lamps."]]))
    write("labels", "full", LABELS.encode())
    write("labels", "count", b"count = 4\n")
    write("settings", "experiment", EXPERIMENT.encode())
    write("settings", "study", STUDY.encode())
    write("settings", "tasks", b'[mine]\nlabels = ["good", "bad"]\ntest = "mine.csv"\n')
    corpus = targets._corpus()
    write("corpus", "manifest", (corpus / "manifest.json").read_bytes())
    write("index", "manifest", (corpus / "index" / "manifest.json").read_bytes())
    write("sentences", "arrow", (corpus / "sentences.arrow").read_bytes())
    write("gguf", "header", gguf())
    write("onnx", "folder", SEPARATOR.join(onnx()))
    for server in (VLLM, SGLang, LlamaCpp, Davinci):
        write("remote", server.__name__.lower(), SEPARATOR.join(conversation(server)))
    write("remote", "error", b'404{"error": {"message": "no such model", "code": 404}}')
    write("classifier", "pile", classifier())


LABELS = """[[label]]
name = "great"
words = "very good"
synonyms = ["fine", "good"]
description = "praise"

[[label]]
name = "terrible"
"""
EXPERIMENT = """tasks = ["MR"]
methods = ["z-icl", "mine"]
seeds = 2
k = 4
corpus = {path = "c.zicl"}

[method.mine]
retrieval = {method = "nearest", k = 8}
"""
STUDY = """limit = 10

[study.order]
options = {}

[study.order.parts.a]
k = 4
"""


def write(target: str, name: str, content: bytes) -> None:
    """Write a seed."""
    (SEEDS / target).mkdir(parents=True, exist_ok=True)
    (SEEDS / target / name).write_bytes(content)


def parquet(columns: dict[str, object]) -> bytes:
    """A Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, store_schema=False)
    return sink.getvalue().to_pybytes()


def arrow(columns: dict[str, object]) -> bytes:
    """An Arrow file."""
    import pyarrow as pa

    sink, table = pa.BufferOutputStream(), pa.table(columns)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def workbook(rows: list[list[object]]) -> bytes:
    """A workbook with one sheet; its parts are stored, so that fuzzing changes what is in them."""
    from openpyxl import Workbook

    made, packed, stored = Workbook(), io.BytesIO(), io.BytesIO()
    for row in rows:
        made.active.append(row)
    made.save(packed)
    with zipfile.ZipFile(packed) as source, zipfile.ZipFile(stored, "w") as target:
        for part in source.infolist():
            target.writestr(zipfile.ZipInfo(part.filename), source.read(part))
    return stored.getvalue()


def gguf() -> bytes:
    """A GGUF file with two fields and no tensors."""

    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    fields = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        text(b"tokenizer.ggml.add_bos_token") + struct.pack("<I", 7) + b"\x01",
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields)) + b"".join(fields) + bytes(32)


def onnx() -> tuple[bytes, bytes, bytes]:
    """The files of an encoder that looks up a row per token."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "One": 1, "lamp": 2, ".": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    rows = numpy_helper.from_array(np.eye(4, dtype=np.float32), "rows")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["rows", "input_ids"], ["states"])],
        "tiny",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["batch", "length", 4])],
        [rows],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return b'{"pooling": "mean", "max_tokens": 16}', tokenizer.to_str().encode(), model.SerializeToString()


def conversation(kind: Callable[[], Server]) -> list[bytes]:
    """What a server of the tests answers while its model is opened and a prompt is scored."""
    from zicl.lm.remote.client import Client

    server, answers, send = kind(), list[bytes](), Client._exchange

    def recorded(self: Client, method: str, url: str, content: bytes) -> Any:
        status, headers, raw = send(self, method, url, content)
        answers.append(raw if status == 200 else str(status).encode() + raw)
        return status, headers, raw

    with patch.object(Client, "_exchange", recorded):
        lm = targets.remote_model(server.spec)
        targets.remote_score(lm)
        lm.close()
    server.close()
    return answers


def classifier() -> bytes:
    """The classifier.json of the target."""
    import zicl
    from tests.conftest import BagEncoder

    folder = targets.scratch() / "x.zicl-clf"
    texts = [sentence for text in DOCUMENTS for sentence in text.split(". ")]
    zicl.ZICLClassifier(labels=["film", "food", "train"], encoder=BagEncoder()).fit(texts).save(folder)
    return (folder / "classifier.json").read_bytes()


if __name__ == "__main__":
    main()
