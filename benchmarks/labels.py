"""What many labels cost: 150 against 5 under direct inference, as a ratio in one run on the same prompts.

    python benchmarks/labels.py            # a line
    python benchmarks/labels.py --json

The labels are two-word topics made for this script. Both label sets go through the label trie.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from typing import Any

from machine import best_of, matmul_rate

AREAS = ("card", "account", "transfer", "loan", "rent", "travel", "health", "garden", "kitchen", "engine",
         "library", "school", "museum", "harbour", "market")  # fmt: skip
MATTERS = ("fee", "delay", "limit", "refund", "question", "update", "damage", "renewal", "opening", "loss")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3, help="the quickest of so many, run in turn")
    options = parser.parse_args()

    import torch

    torch.set_num_threads(options.threads)
    from zicl.apps.demo import example_index, reviews
    from zicl.lm.load import load_lm

    lm, index = load_lm(offline=True), example_index()
    texts = [text for text, _ in reviews("rotten_tomatoes")][:: 8530 // options.prompts][: options.prompts]
    many = [f"{area} {matter}" for area, matter in product(AREAS, MATTERS)]
    sets = {str(len(labels)): prepare(lm, index, labels, texts) for labels in (many[::30], many)}
    found = {name: float("inf") for name in sets}
    rates = []
    for _ in range(options.rounds):
        rates.append(matmul_rate())
        for name, prompts in sets.items():
            found[name] = min(found[name], best_of(lambda prompts=prompts: lm.score(prompts), 1).seconds)
    few, all_ = found.values()
    result = {
        "labels": {name: round(seconds / options.prompts, 3) for name, seconds in found.items()},
        "ratio": round(all_ / few, 3),
        "gflops": [round(rate / 1e9, 1) for rate in rates],
    }
    print(json.dumps(result, indent=2) if options.json else f"150 labels cost {result['ratio']} times 5: {result}")


def prepare(lm: Any, index: Any, labels: list[str], texts: list[str]) -> list[Any]:
    """Prompts as the classifier writes them. The demonstrations' labels are the words themselves, a few of them."""
    from zicl import Labelling, Scoring, ZICLClassifier

    settings = {"scoring": Scoring(inference="direct"), "labelling": Labelling(words="original")}
    pipeline = ZICLClassifier(index, labels, lm, **{"method": "z-icl", **settings}).fit().pipeline_
    return [pipeline.prepare(text).prompt for text in texts]


if __name__ == "__main__":
    main()
