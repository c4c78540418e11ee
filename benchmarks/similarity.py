"""How near texts are to a corpus of their own kind and to foreign ones: what the bounds of zicl suggest rest on.

    python benchmarks/similarity.py --data DATA           # two tables; some minutes
    python benchmarks/similarity.py --data DATA --json

For every task and every kind of corpus: the median cosine of a text's nearest sentence, and the share of texts whose
nearest sentence is below the cosine that counts as near. The same number of sentences a corpus. The bounds of zicl
suggest are those of the default encoder; --encoder measures another one.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

# The corpora, and for every task the one of its own kind.
CORPORA = ("amazon_reviews", "yelp_reviews", "tweets", "imdb_reviews", "news_bbc", "legal_scotus")
TASKS = {
    "CR": "amazon_reviews",
    "Amz": "amazon_reviews",
    "Yelp": "yelp_reviews",
    "Tweet": "tweets",
    "SST2": "imdb_reviews",
    "AGNews": "news_bbc",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sentences", type=int, default=3000, help="a corpus")
    parser.add_argument("--texts", type=int, default=60, help="a task")
    parser.add_argument("--encoder", default="bge-small-en-v1.5")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not (options.data / "eval").is_dir():
        raise SystemExit(f"{options.data} holds no folder eval: name the data with --data")
    found = measure(options)
    print(json.dumps(found, indent=2) if options.json else tables(found))


def measure(options: Any) -> dict[str, dict[str, dict[str, float]]]:
    import numpy as np

    from zicl.apps.suggest.signals import NEAR
    from zicl.retrieve.encoder import load_encoder

    encoder = load_encoder(options.encoder)
    corpora = {name: encoder.encode(sentences(options.data, name, options.sentences)) for name in CORPORA}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for task in TASKS:
        vectors = encoder.encode(texts(options.data, task, options.texts))
        found[task] = {}
        for name, corpus in corpora.items():
            nearest = (vectors @ corpus.T).max(axis=1)
            far = float((nearest < NEAR).mean())
            found[task][name] = {"median": round(float(np.median(nearest)), 3), "far": round(far, 3)}
    return found


def sentences(data: Path, domain: str, count: int) -> list[str]:
    """The first so many sentences of a seeded order of a domain's documents."""
    from zicl._util.random import rng
    from zicl.corpus.splitter import get_splitter

    with gzip.open(data / f"corpora/{domain}.jsonl.gz", "rt", encoding="utf-8") as stream:
        documents = [json.loads(line)["text"] for line in stream]
    split, found = get_splitter("sentencex"), list[str]()
    for number in rng(100, domain, "similarity").permutation(len(documents)).tolist():
        if len(found) >= count:
            break
        found += split(documents[number])
    return found[:count]


def texts(data: Path, task: str, count: int) -> list[str]:
    lines = (data / f"eval/{task}/test.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines[:count]]


def tables(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """For people: a corpus of a task's own kind is marked."""
    lines = []
    for what, title in (("median", "median cosine of the nearest sentence"), ("far", "share of texts that are far")):
        lines += [f"{title}:", "", f"| | {' | '.join(CORPORA)} |", "|---|" + "---:|" * len(CORPORA)]
        for task, row in found.items():
            shown = [f"{'**' if TASKS[task] == c else ''}{row[c][what]}{'**' if TASKS[task] == c else ''}" for c in row]
            lines.append(f"| {task} | {' | '.join(shown)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
