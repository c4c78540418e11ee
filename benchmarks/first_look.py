"""A first look at accuracy: SST2, a corpus of 60,000 film-review sentences, every zero-shot variant.

    python benchmarks/first_look.py --data PATH            # PATH holds eval/SST2 and corpora/imdb_reviews
    python benchmarks/first_look.py --data PATH --report   # the tables, from the stored rows alone

Rows (ids and numbers, no text) go to benchmarks/results/first_look.jsonl as they come, and a run that
was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zicl import ZICLClassifier

RESULTS = Path(__file__).parent / "results" / "first_look.jsonl"
VARIANTS = {
    "no-demos": ("physical", 0, "original"),
    "random inputs": ("random", 16, "original"),
    "naive (nearest, original)": ("nearest", 16, "original"),
    "nearest, synonyms": ("nearest", 16, "synonyms"),
    "physical, original": ("physical", 16, "original"),
    "Z-ICL (physical, synonyms)": ("physical", 16, "synonyms"),
}
ORACLES = ("ICL-gold", "ICL-random")
# name, number of sentences, inference, BOS, with the oracles
RUNS = [
    ("planning", 60, "channel", "on", True),
    ("ours", 100, "channel", "auto", False),
    ("ours", 100, "direct", "auto", False),
]
LABELS = ("terrible", "great")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build"), help="where the corpus is built")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not arguments.report:
        run(arguments)
    report()


def run(arguments: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(arguments.threads)
    from zicl import ZICLClassifier
    from zicl.config import Labelling, PromptSettings, Retrieval, Scoring
    from zicl.lm.load import load_lm
    from zicl.retrieve.index import Index

    index = Index.open(build_corpus(arguments))
    lm = load_lm()
    test = read(arguments.data / "eval/SST2/test.jsonl")
    train = read(arguments.data / "eval/SST2/train.jsonl")
    done = {(r["run"], r["inference"], r["variant"], r["id"]) for r in rows()}
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as stream:
        for name, count, inference, bos, oracles in RUNS:
            for variant in (*VARIANTS, *(ORACLES if oracles else ())):
                retrieval, k, words = VARIANTS.get(variant, ("physical", 0, "original"))
                classifier = ZICLClassifier(
                    index,
                    list(LABELS),
                    lm,
                    retrieval=Retrieval(method=retrieval, k=k),
                    labelling=Labelling(words=words),
                    prompt=PromptSettings(bos=bos),
                    scoring=Scoring(inference=inference),
                    method="z-icl",
                ).fit()
                todo = [r for r in sample(test, count) if (name, inference, variant, r["id"]) not in done]
                shared = 16 if k == 0 or retrieval == "random" else 1
                for start in range(0, len(todo), shared):
                    chunk = todo[start : start + shared]
                    scores = score(classifier, chunk, variant, train)
                    for record, values in zip(chunk, scores, strict=True):
                        row = {"run": name, "inference": inference, "variant": variant, "id": record["id"]}
                        stream.write(json.dumps({**row, "gold": record["label"], "log_likelihood": values}) + "\n")
                    stream.flush()
                print(name, inference, variant, "done", flush=True)


def score(classifier: ZICLClassifier, chunk: list[dict], variant: str, train: list[dict]) -> list[dict[str, float]]:
    texts = [record["text"] for record in chunk]
    if variant not in ORACLES:
        return [{s.label: round(s.log_likelihood, 5) for s in r.scores} for r in classifier.classify(texts)]
    from zicl.prompt.builder import LabelledText

    demos = [LabelledText(text, label) for text, label in shots(train, variant)]
    pipeline = classifier.pipeline_
    prompts = [pipeline.builder.build(text, demos, LABELS) for text in texts]
    found = pipeline.lm.score(prompts)
    return [{name: round(float(row.sum()), 5) for name, row in zip(LABELS, rows_, strict=True)} for rows_ in found]


def shots(train: list[dict], variant: str) -> list[tuple[str, str]]:
    """Sixteen training examples, drawn once, with their own or with random labels."""
    from zicl._util.random import rng

    chosen = [train[int(n)] for n in rng(0, "shots").choice(len(train), 16, replace=False)]
    random = rng(0, "shot labels").integers(2, size=16)
    gold = variant == "ICL-gold"
    return [(r["text"], r["label"] if gold else LABELS[int(n)]) for r, n in zip(chosen, random, strict=True)]


def build_corpus(arguments: argparse.Namespace) -> Path:
    from zicl.corpus.builder import build_corpus as build
    from zicl.corpus.shards import BuildOptions
    from zicl.corpus.sources import find_sources
    from zicl.corpus.store import Corpus
    from zicl.retrieve.builder import build_index
    from zicl.retrieve.encoder import load_encoder

    place = arguments.work / "first-look.zicl"
    if (place / "index").exists():
        return place
    if place.exists():
        corpus = Corpus.open(place)
    else:
        source = find_sources([], {"imdb": [arguments.data / "corpora/imdb_reviews.jsonl.gz"]})
        corpus = build(source, place, BuildOptions(max_paragraphs=5600, seed=100))
    print(f"{len(corpus):,} sentences", flush=True)
    build_index(
        corpus,
        load_encoder("all-minilm-l6-v2"),
        report=lambda stage, done, total=None, note="": print(stage, done, total, flush=True),
    )
    return place


def sample(records: list[dict], count: int) -> list[dict]:
    """The same sentences for every variant, a larger sample containing the smaller."""
    from zicl._util.random import rng

    order = rng(100, "first look").permutation(len(records))
    return [records[int(n)] for n in order[:count]]


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows() -> list[dict]:
    return read(RESULTS) if RESULTS.exists() else []


def report() -> None:
    """Accuracy with its standard error, and the share of each prediction."""
    cells = defaultdict(list)
    for row in rows():
        predicted = max(row["log_likelihood"], key=row["log_likelihood"].get)
        cells[row["run"], row["inference"], row["variant"]].append((predicted == row["gold"], predicted))
    heading = None
    for (name, inference, variant), found in cells.items():
        if heading != (name, inference):
            heading = (name, inference)
            print(f"\n{name}, {inference}\n\n| variant | n | accuracy | ± | answers 'great' |\n|---|---|---|---|---|")
        share = sum(right for right, _ in found) / len(found)
        error = math.sqrt(share * (1 - share) / len(found))
        great = sum(predicted == "great" for _, predicted in found) / len(found)
        print(f"| {variant} | {len(found)} | {100 * share:.1f} | {100 * error:.1f} | {great:.0%} |")


if __name__ == "__main__":
    main()
