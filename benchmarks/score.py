"""Scoring speed as ratios, all in one run on the same real prompts (k = 16) of the default model.

    python benchmarks/score.py            # a table
    python benchmarks/score.py --json     # {"direct": {"2": {"vs_padded": …, "vs_lm_eval": …, "of_limit": …}, …

Peers, on the same token ids: the authors' way (every label a row padded to 1,024 tokens, all logits);
lm-evaluation-harness (batch size 1, and the best of 4 and 8). The limit is the machine's measured float32
matrix-multiply rate times the operations of the distinct tokens.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from machine import Watch, best_of, matmul_rate, verdict

LABEL_SETS = {
    "2": ["terrible", "great"],
    "5": ["terrible", "bad", "okay", "good", "great"],
}
PADDED_TO = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--padded", type=int, default=3, help="prompts scored the authors' way, which is slow")
    parser.add_argument("--rounds", type=int, default=2, help="the quickest of so many, run in turn")
    parser.add_argument("--only", choices=("direct", "channel"), help="one inference alone")
    parser.add_argument("--labels", choices=tuple(LABEL_SETS), help="one label set alone")
    parser.add_argument("--shared", type=int, default=100, help="inputs that share their demonstrations")
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(arguments.threads)
    from zicl.apps.demo import example_index, reviews
    from zicl.lm.load import load_lm

    lm = load_lm(offline=True)
    peer = plain_model(lm)
    index = example_index()
    texts = [text for text, _ in reviews("rotten_tomatoes")][:: 8530 // arguments.shared][: arguments.shared]
    others, result, rates = 0.0, {}, list[float]()
    for inference in (arguments.only,) if arguments.only else ("direct", "channel"):
        result[inference] = {}
        for name, labels in LABEL_SETS.items():
            if arguments.labels not in (None, name):
                continue
            row, load, rate = measure(lm, peer, index, labels, inference, texts, arguments)
            result[inference][name] = row
            others = max(others, load)
            rates.append(rate)
            say(f"{inference} {name} labels: {row}")
    result["machine"] = {
        "gflops": [round(rate / 1e9, 1) for rate in rates],
        "threads": arguments.threads,
        "other_load": round(others, 3),
        "verdict": verdict(max(others, (max(rates) / min(rates) - 1) / 2)),
    }
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def plain_model(lm: Any) -> Any:
    """The same weights as transformers loads them, for the peers: nothing of ours in it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(lm.forward.model.config._name_or_path, dtype="float32").eval()


def measure(lm: Any, plain: Any, index: Any, labels: list[str], inference: str, texts: list[str], options: Any) -> Any:
    """One cell of the table."""
    prompts = prepare(lm, index, labels, inference, texts[: options.prompts], "z-icl")
    shared = prepare(lm, index, labels, inference, texts, "random-inputs")
    peer = lm_eval_runs(lm, plain, prompts)
    runs = {
        "ours": lambda: lm.score(prompts),
        "ours_shared": lambda: shared_afresh(lm, shared),
        "padded": lambda: authors_way(plain, prompts[: options.padded]),
        "padded_shared": lambda: authors_way(plain, shared[: options.padded]),
        **peer,
    }
    found, rate = interleaved(runs, options.rounds)
    ours, ours_shared, padded, padded_shared = (found[n] for n in ("ours", "ours_shared", "padded", "padded_shared"))
    one, best_size = found["lm_eval 1"], min((4, 8), key=lambda size: found[f"lm_eval {size}"].seconds)
    batched = found[f"lm_eval {best_size}"]
    each, each_shared = ours.seconds / len(prompts), ours_shared.seconds / len(shared)
    limit = sum(operations(lm, prompt) for prompt in prompts) / rate / len(prompts)
    row = {
        "vs_padded": round(padded.seconds / options.padded / each, 2),
        "vs_padded_shared": round(padded_shared.seconds / options.padded / each_shared, 2),
        "vs_lm_eval": round(min(one.seconds, batched.seconds) / len(prompts) / each, 2),
        "vs_lm_eval_1": round(one.seconds / len(prompts) / each, 2),
        "lm_eval_best_batch": best_size,
        "of_limit": round(limit / each, 3),
        "seconds": round(each, 3),
        "seconds_shared": round(each_shared, 4),
        "tokens": round(sum(distinct(p) for p in prompts) / len(prompts)),
        "peak_mb": {"zicl": round(ours.peak_mb), "padded": round(padded.peak_mb), "lm_eval": round(batched.peak_mb)},
    }
    return row, max(w.others for w in found.values()), rate


def prepare(lm: Any, index: Any, labels: list[str], inference: str, texts: Sequence[str], method: str) -> list[Any]:
    """Real prompts, as the classifier writes them."""
    from zicl import Labelling, Scoring, ZICLClassifier

    # Only with one draw of labels for all do prompts with the same sentences begin alike.
    labelling = Labelling(shared=True) if method == "random-inputs" else None
    scoring = Scoring(inference=inference)
    pipeline = ZICLClassifier(index, labels, lm, method=method, scoring=scoring, labelling=labelling).fit().pipeline_
    return [pipeline.prepare(text).prompt for text in texts]


def shared_afresh(lm: Any, prompts: Sequence[Any]) -> None:
    """Prompts that share their demonstrations, with no prefix left over from an earlier run."""
    lm._last_prefix = None
    lm.score(prompts)


def authors_way(model: Any, prompts: Sequence[Any]) -> list[list[float]]:
    """Every label a row of its own, padded to 1,024 tokens, all logits of all of them."""
    import torch

    scores = []
    with torch.inference_mode():
        for prompt in prompts:
            rows = [prompt.tokens(i) for i in range(len(prompt.branches))]
            width = max(PADDED_TO, *map(len, rows))
            ids = torch.tensor([[*row, *([0] * (width - len(row)))] for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            losses = torch.nn.functional.cross_entropy(
                logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1), reduction="none"
            ).view(len(rows), -1)
            scores.append(
                [
                    -float(losses[i, len(row) - len(b.scored) - 1 : len(row) - 1].sum())
                    for i, (row, b) in enumerate(zip(rows, prompt.branches, strict=True))
                ]
            )
    return scores


def interleaved(runs: dict[str, Any], rounds: int) -> tuple[dict[str, Watch], float]:
    """Every run in turn, some rounds, the quickest of each: a machine that slows down slows all of them.

    The machine's multiplication rate is measured beside each of ours, and its best counts as well.
    """
    found: dict[str, list[Watch]] = {name: [] for name in runs}
    rates = []
    for _ in range(rounds):
        for name, run in runs.items():
            if name.startswith("ours"):
                rates.append(matmul_rate())
            found[name].append(best_of(run, 1))
    return {name: min(watches, key=lambda w: w.seconds) for name, watches in found.items()}, max(rates)


def lm_eval_runs(lm: Any, plain: Any, prompts: Sequence[Any]) -> dict[str, Any]:
    """lm-evaluation-harness on the same token ids with batch sizes 1, 4 and 8; its scores are compared with ours."""
    import logging

    logging.disable(logging.WARNING)
    from lm_eval.models.huggingface import HFLM

    asked = [
        (
            ("", ""),
            list(prompt.prefix.tokens + prompt.stem.tokens + branch.given.tokens),
            list(branch.scored.tokens),
        )
        for prompt in prompts
        for branch in prompt.branches
    ]
    ours = [float(row.sum()) for rows in lm.score(prompts) for row in rows]

    def run(size: int) -> None:
        peer = HFLM(pretrained=plain, tokenizer=lm.tokenizer._tokenizer, batch_size=size)
        found = peer._loglikelihood_tokens(asked, disable_tqdm=True)
        worst = max(abs(a - b) for a, (b, _) in zip(ours, found, strict=True))
        if worst > 1e-2:
            raise SystemExit(f"lm_eval disagrees by {worst}: the comparison would mean nothing")

    return {f"lm_eval {size}": lambda size=size: run(size) for size in (1, 4, 8)}


def distinct(prompt: Any) -> int:
    """Tokens that are fed when every shared one is fed once."""
    from zicl.lm.packing import pack

    return len(pack([prompt]))


def operations(lm: Any, prompt: Any) -> float:
    """Multiply-adds, twice, of the distinct tokens: layers, attention to ancestors, projection of scored places."""
    from zicl.lm.linear import PackedLinear
    from zicl.lm.packing import pack

    config, tree = lm.forward.config, pack([prompt])
    head = lm.forward.head.weight.numel()
    embeddings = lm.forward.model.get_input_embeddings().weight.numel()
    # Packed weights are no parameters.
    packed = (each for each in lm.forward.model.modules() if isinstance(each, PackedLinear))
    body = sum(p.numel() for p in lm.forward.model.parameters()) - embeddings
    body += sum(each.in_features * each.out_features for each in packed)
    if lm.forward.head.weight is not lm.forward.model.get_input_embeddings().weight:
        body -= head
    seen = float((tree.positions + 1).sum())
    width = config.num_attention_heads * config.head_dim
    places = {place for rows in tree.places for row in rows for place in row}
    return 2 * (body * len(tree) + 2 * seen * width * config.num_hidden_layers + head * len(places))


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    names = ("vs_padded", "vs_padded_shared", "vs_lm_eval_1", "vs_lm_eval", "of_limit", "seconds", "seconds_shared")
    lines = ["| inference, labels | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for inference in ("direct", "channel"):
        for labels, row in result.get(inference, {}).items():
            lines.append(f"| {inference}, {labels} | " + " | ".join(str(row[name]) for name in names) + " |")
    return "\n".join([*lines, "", json.dumps(result["machine"])])


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
