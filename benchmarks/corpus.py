"""Corpus speed as ratios in one run: building against bare Punkt, embedding against SentenceTransformer.encode.

    python benchmarks/corpus.py [--json]

Needs the catalog's movie-reviews, punkt and all-minilm-l6-v2 (zicl models pull …).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from machine import best_of, verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--reviews", type=int, default=6000)
    parser.add_argument("--sentences", type=int, default=2048, help="sentences to embed")
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(arguments.threads)
    from zicl.apps.demo import reviews as read

    reviews = [text.replace("<br />", "\n") for text, _ in read("imdb")][: arguments.reviews]
    built = building(reviews)
    embedded = embedding(built.pop("texts")[: arguments.sentences])
    result = {"building": built, "embedding": embedded}
    result["verdict"] = verdict(max(built.pop("others"), embedded.pop("others")))
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    rate = f"{built['zicl_per_second']:,} sentences/s"
    print(f"split + dedup + store: {built['vs_punkt']} times the bare rate of Punkt ({rate})")
    print(
        f"embedding: {embedded['vs_sentence_transformers']} times SentenceTransformer.encode at its best batch size,"
        f" {embedded['best_batch']} ({embedded['zicl_per_second']:,} sentences/s)"
    )
    print(result["verdict"])


def building(reviews: list[str]) -> dict:
    """Reading, splitting, deduplicating and storing, against Punkt alone on the same text in memory."""
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.sources import find_sources
    from zicl.corpus.splitter import get_splitter

    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "reviews.jsonl"
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in reviews))
        target = Path(scratch) / "reviews.zicl"
        ours = best_of(lambda: build_corpus(find_sources([source]), target, overwrite=True))
        texts = build_corpus(find_sources([source]), target, overwrite=True).table["text"].to_pylist()
    punkt, some, found = get_splitter("punkt"), reviews[::8], []
    theirs = best_of(lambda: found.append(sum(len(punkt(text)) for text in some)))
    rate, peer = len(texts) / ours.seconds, found[0] / theirs.seconds
    return {
        "vs_punkt": round(rate / peer, 1),
        "zicl_per_second": round(rate),
        "punkt_per_second": round(peer),
        "peak_mb": round(ours.peak_mb),
        "others": max(ours.others, theirs.others),
        "texts": texts,
    }


def embedding(texts: list[str]) -> dict:
    """The same sentences through zicl's batching and through SentenceTransformer.encode."""
    from zicl.retrieve.encoder import load_encoder

    encoder = load_encoder("all-minilm-l6-v2", offline=True)
    ours = best_of(lambda: encoder.encode(texts), 2)
    times = {
        size: best_of(
            lambda size=size: encoder.model.encode(
                texts, batch_size=size, normalize_embeddings=True, show_progress_bar=False
            ),
            2,
        )
        for size in (16, 32, 64, 128)
    }
    best = min(times, key=lambda size: times[size].seconds)
    return {
        "vs_sentence_transformers": round(times[best].seconds / ours.seconds, 2),
        "best_batch": best,
        "zicl_per_second": round(len(texts) / ours.seconds),
        "sentence_transformers_per_second": round(len(texts) / times[best].seconds),
        "others": max(w.others for w in (ours, *times.values())),
    }


if __name__ == "__main__":
    main()
