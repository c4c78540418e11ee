"""Compare a model behind an inference server with the same model in this process, in one run: texts a second.

    python benchmarks/remote.py --lm http://127.0.0.1:8000/v1#smollm2          # a table
    python benchmarks/remote.py --lm … --json > benchmarks/results/vllm.json

Z-ICL (k = 16, 2 labels) on the same texts, first with one and then with the other, in turn; every round has texts of
its own, so that no cache knows them. The server runs on the same cores, and waits while this process computes.
docs/how-to/vllm.md says how to start it.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from typing import Any

import numpy as np
from machine import best_of

LABELS = ["terrible", "great"]
INFERENCES = ("direct", "channel")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lm", required=True, help="address of the served default model")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=16, help="texts of a round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--requests", type=int, default=8, help="requests in flight at once")
    options = parser.parse_args()

    import torch

    torch.set_num_threads(options.threads)
    from zicl.apps.demo import example_index, reviews
    from zicl.lm.load import load_lm
    from zicl.lm.remote.settings import RemoteSettings

    index, here = example_index(offline=True), load_lm(offline=True)
    settings = RemoteSettings(tokenizer="smollm2-135m", requests=options.requests, recall=False)
    served = load_lm(options.lm, offline=True, remote=settings)
    every = [text for text, _ in reviews("rotten_tomatoes", offline=True)]
    texts = every[:: len(every) // (2 * options.rounds * options.texts + 2)]
    result: dict[str, Any] = {"served": served.revision, "server": version(options.lm)}
    for inference in INFERENCES:
        result[inference] = compare(index, here, served, inference, [texts.pop() for _ in range(2)], texts, options)
        print(f"{inference}: {result[inference]}", file=sys.stderr, flush=True)
        texts = texts[options.rounds * options.texts :]
    result["machine"] = {"threads": options.threads, "requests": options.requests}
    print(json.dumps(result, indent=2) if options.json else table(result))


def compare(
    index: Any, here: Any, served: Any, inference: str, first: list[str], texts: list[str], options: Any
) -> dict[str, Any]:
    """Label the texts of every round with both models in turn, after a few to warm up."""
    from zicl import Scoring, ZICLClassifier

    scoring, seconds, scores = Scoring(inference=inference), dict[str, float](), dict[str, list[Any]]()
    models = {"here": here, "served": served}
    classifiers = {
        name: ZICLClassifier(index, LABELS, lm, method="z-icl", scoring=scoring).fit() for name, lm in models.items()
    }
    for classifier in classifiers.values():
        classifier.classify(first)
    sent = served.usage
    for number in range(options.rounds):
        part = texts[number * options.texts :][: options.texts]
        for name, classifier in classifiers.items():
            index.clear_cache()
            found = scores.setdefault(name, [])
            watch = best_of(lambda c=classifier, part=part, found=found: found.extend(c.classify(part)), 1)
            seconds[name] = seconds.get(name, 0.0) + watch.seconds
    count = options.rounds * options.texts
    tables = [np.array([[score.value for score in each.scores] for each in scores[name]]) for name in models]
    return {
        "texts": count,
        "here_texts_a_second": round(count / seconds["here"], 3),
        "served_texts_a_second": round(count / seconds["served"], 3),
        "of_here": round(seconds["here"] / seconds["served"], 3),
        "tokens_sent_a_text": round((served.usage.tokens_in - sent.tokens_in) / count),
        "same_label": sum(a.label == b.label for a, b in zip(*scores.values(), strict=True)),
        "largest_difference_of_a_score": round(float(np.abs(tables[0] - tables[1]).max()), 6),
    }


def version(address: str) -> str:
    """The version of vLLM, if the server says one."""
    root = address.partition("#")[0].removesuffix("/v1")
    try:
        with urllib.request.urlopen(f"{root}/version", timeout=10) as answer:
            return f"vLLM {json.load(answer)['version']}"
    except (OSError, ValueError, KeyError):
        return "unknown"


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    names = list(result[INFERENCES[0]])
    lines = [f"| {result['served']} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {each} | " + " | ".join(str(result[each][name]) for name in names) + " |" for each in INFERENCES]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
