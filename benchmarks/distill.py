"""Distillation: accuracy and speed of the distilled classifier beside the language model, in one run.

    python benchmarks/distill.py --data PATH           # a table; about a quarter of an hour on two cores
    python benchmarks/distill.py --data PATH --json

PATH holds eval/TASK/{test,train}.jsonl and corpora/DOMAIN.jsonl.gz. Both classifiers see the training texts without
their labels; the test labels only measure accuracy. Where a task has few training texts, raw documents of its domain
are added. The language model's probabilities are kept in --work: an interrupted run, or one with a larger --sample,
computes only the missing ones. The speed of both is measured on the test texts, in this run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

from machine import best_of, verdict, watch

# The label words of a task, its template, and the domain with texts of the same kind.
TASKS = {
    "AGNews": (["world", "sports", "business", "technology"], "text", None),
    "Yelp": (["negative", "positive"], "review", "yelp_reviews"),
}
DOMAINS = ("news_bbc", "news_nasdaq", "yelp_reviews", "hotel_reviews")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--work", type=Path, default=Path("build/distill"), help="where to keep the corpus and probabilities"
    )
    parser.add_argument("--tasks", nargs="+", choices=tuple(TASKS), default=list(TASKS))
    parser.add_argument("--texts", type=int, default=800, help="unlabelled texts per task")
    parser.add_argument("--sample", type=int, default=240, help="texts that the language model classifies, per task")
    parser.add_argument("--test", type=int, default=100, help="test texts for the language model, per task")
    parser.add_argument("--paragraphs", type=int, default=500, help="paragraphs of the corpus, per domain")
    parser.add_argument("--k", type=int, default=16, help="demonstrations")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not (options.data / "eval").is_dir():
        raise SystemExit(f"{options.data} holds no folder eval: name the data with --data")

    import torch

    torch.set_num_threads(options.threads)
    from zicl.lm.load import load_lm

    index, lm = build_index(options), load_lm()
    result: dict[str, Any] = {name: measure(name, index, lm, options) for name in options.tasks}
    result["machine"] = {
        "threads": options.threads,
        "verdict": verdict(max(row.pop("others") for row in result.values())),
    }
    print(json.dumps(result, indent=2) if options.json else table(result))


def measure(name: str, index: Any, lm: Any, options: Any) -> dict[str, Any]:
    """Distil for one task, and run both classifiers on test texts."""
    from zicl import PromptSettings, Retrieval, ZICLClassifier
    from zicl.apps.distill.run import distill

    labels, template, domain = TASKS[name]
    texts, raw = unlabelled(name, domain, options)
    test = read(options.data / "eval" / name / "test.jsonl")
    test_texts = [row["text"] for row in test[: options.test]]
    teacher = ZICLClassifier(
        index, labels, lm, retrieval=Retrieval(k=options.k), prompt=PromptSettings(template=template), method="z-icl"
    ).fit()
    say(f"{name}: {len(texts)} texts, {min(options.sample, len(texts))} for the language model")
    student = distill(
        teacher, texts, sample=options.sample, work=options.work / name, overwrite=True, report=say_stage(name)
    )
    with watch() as slow:
        teacher_labels = [prediction.label for prediction in teacher.classify(test_texts)]
    predictions: list[Any] = []
    fast = best_of(lambda: predictions.append(student.classify([row["text"] for row in test])), 2)
    student_labels = [prediction.label for prediction in predictions[0]]
    gold, origin = [row["label"] for row in test], student.origin
    teacher_rate, student_rate = len(test_texts) / slow.seconds, len(test) / fast.seconds
    return {
        "texts": len(texts),
        "raw_documents_among_them": raw,
        "learned_from": origin.trained,
        "held_out_agreement": round(origin.agreement.value, 3),
        "held_out_rows": origin.agreement.rows,
        "held_out_majority": round(origin.agreement.majority, 3),
        "strength": origin.strength,
        "test_rows": len(test_texts),
        "lm_accuracy": proportion_equal(teacher_labels, gold),
        "distilled_accuracy": proportion_equal(student_labels[: len(test_texts)], gold),
        "test_agreement": proportion_equal(student_labels[: len(test_texts)], teacher_labels),
        "test_majority": round(max(map(teacher_labels.count, teacher_labels)) / len(teacher_labels), 3),
        "all_test_rows": len(test),
        "distilled_accuracy_all": proportion_equal(student_labels, gold),
        "lm_rows_per_second": round(teacher_rate, 2),
        "distilled_rows_per_second": round(student_rate, 1),
        "times_faster": round(student_rate / teacher_rate, 1),
        "others": max(slow.others, fast.others),
    }


def unlabelled(name: str, domain: str | None, options: Any) -> tuple[list[str], int]:
    """Return the first training texts, filled up with documents of the domain, and the number of the latter."""
    texts = [row["text"] for row in read(options.data / "eval" / name / "train.jsonl")][: options.texts]
    if domain is None or len(texts) >= options.texts:
        return texts, 0
    with gzip.open(options.data / "corpora" / f"{domain}.jsonl.gz", "rt", encoding="utf-8") as stream:
        raw = [json.loads(line)["text"] for line in stream][: options.texts - len(texts)]
    return texts + raw, len(raw)


def build_index(options: Any) -> Any:
    """Open a corpus of news and reviews; it is built on first use."""
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.shards import BuildOptions
    from zicl.corpus.sources import find_sources
    from zicl.corpus.store import Corpus
    from zicl.retrieve import builder as build
    from zicl.retrieve.encoder import load_encoder
    from zicl.retrieve.index import Index

    path = options.work / f"corpus-{options.paragraphs}.zicl"
    if not path.exists():
        sources = find_sources([], {name: [options.data / "corpora" / f"{name}.jsonl.gz"] for name in DOMAINS})
        build_corpus(sources, path, BuildOptions(max_paragraphs=options.paragraphs, seed=100))
    if not (path / build.FOLDER).exists():
        build.build_index(Corpus.open(path), load_encoder("all-minilm-l6-v2"), report=say_stage("corpus"))
    return Index.open(path)


def proportion_equal(predicted: list[str], expected: list[str]) -> float:
    """Return the proportion of equal labels, among as many as were predicted."""
    return round(sum(a == b for a, b in zip(predicted, expected, strict=False)) / len(predicted), 3)


def table(result: dict[str, Any]) -> str:
    """Return the figures as a Markdown table."""
    names = ("lm_accuracy", "distilled_accuracy", "test_agreement", "test_majority", "held_out_agreement",
             "held_out_majority", "distilled_accuracy_all", "lm_rows_per_second", "distilled_rows_per_second",
             "times_faster")  # fmt: skip
    tasks = [name for name in result if name != "machine"]
    lines = ["| | " + " | ".join(tasks) + " |", "|---" * (len(tasks) + 1) + "|"]
    for name in ("texts", "learned_from", "test_rows", *names):
        lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(str(result[task][name]) for task in tasks) + " |")
    return "\n".join([*lines, "", json.dumps(result["machine"])])


def say_stage(name: str) -> Any:
    """Return a progress report that prints every ten per cent."""
    last = [""]

    def report(stage: str, done: float, total: float | None = None, note: str = "") -> None:
        text = f"{name}: {stage} {int(10 * done / total) * 10 if total else 0} % {note}".rstrip()
        if text.split("%")[0] != last[0]:
            last[0] = text.split("%")[0]
            say(text)

    return report


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
