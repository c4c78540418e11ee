"""The example of ``zicl demo`` and the benchmarks: film reviews from the catalog."""

from __future__ import annotations

import csv
import json

from zicl._util.catalog import find_asset
from zicl._util.files import atomic_write, home
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.corpus.builder import build_corpus
from zicl.corpus.manifest import MANIFEST
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.corpus.store import Corpus
from zicl.retrieve.builder import FOLDER, build_index
from zicl.retrieve.encoder import load_encoder
from zicl.retrieve.index import Index

REVIEWS = "movie-reviews"
# A uniform sample of paragraphs, with a little less than ten thousand sentences.
PARAGRAPHS = 850
# The labels of the sentences, in the order of their numbers.
LABELS = ("terrible", "great")
_SEED = 3


def reviews(source: str, *, offline: bool = False) -> list[tuple[str, str]]:
    """Return texts and labels ("0" or "1") of a source: ``imdb`` reviews or ``rotten_tomatoes`` sentences."""
    folder = find_asset(REVIEWS, offline=offline)
    assert folder is not None
    csv.field_size_limit(1 << 30)
    with next(folder.glob("*.csv")).open(encoding="utf-8", newline="") as stream:
        return [(row["text"], row["label"]) for row in csv.DictReader(stream) if row["source"] == source]


def example_index(*, offline: bool = False, report: ProgressReport = silent) -> Index:
    """Open the corpus of IMDB reviews, without their labels; it is built on first use."""
    corpus, raw = home() / "demo" / "reviews.zicl", home() / "demo" / "imdb.jsonl"
    if not (corpus / MANIFEST).is_file():
        report("preparing the reviews", 0, None)
        with atomic_write(raw) as temporary, temporary.open("w", encoding="utf-8") as stream:
            for text, _ in reviews("imdb", offline=offline):
                stream.write(json.dumps({"text": text.replace("<br />", "\n")}) + "\n")
        build_corpus(find_sources([], {"imdb": [raw]}), corpus, BuildOptions(PARAGRAPHS), report=report)
        raw.unlink()
    if not (corpus / FOLDER / MANIFEST).is_file():
        report("loading the encoder", 0, None)
        build_index(Corpus.open(corpus), load_encoder(offline=offline), report=report)
    return Index.open(corpus, offline=offline)


def example_sentences(count: int, *, offline: bool = False) -> list[tuple[str, str]]:
    """Return Rotten Tomatoes sentences with their labels, drawn by a seed: whatever comes, in whatever shares."""
    rows = reviews("rotten_tomatoes", offline=offline)
    drawn = rng(_SEED, "demo").permutation(len(rows))[:count]
    return [(rows[int(n)][0], LABELS[int(rows[int(n)][1])]) for n in drawn]
