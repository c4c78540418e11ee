"""zicl demo: the whole way from raw text to predictions, on real models and real reviews."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zicl.cli._options import OfflineOption, go_offline
from zicl.cli._progress import bars, say

if TYPE_CHECKING:
    from zicl._progress import Report

_REVIEWS, _PARAGRAPHS, _EACH, _SEED = "movie-reviews", 900, 6, 3
_ASSETS = ("smollm2-135m", "all-minilm-l6-v2", "wordnet", _REVIEWS)


def demo(offline: OfflineOption = False) -> None:
    """Fetch the default models, build a small corpus of film reviews, and classify a dozen sentences."""
    from zicl._files import home

    if offline:
        go_offline()
    say("zicl turns raw text and a list of labels into a classifier. No labelled example is used.")
    corpus = home() / "demo" / "reviews.zicl"
    with bars() as report:
        _fetch(offline, report)
        _build(corpus, offline, report)
        report("loading the language model", 0, None)
        from zicl.classify import ZICLClassifier

        classifier = ZICLClassifier(corpus, labels=["terrible", "great"], offline=offline).fit()
        examples = _examples()
        results = []
        for number, (text, _) in enumerate(examples):
            report("classifying", number, len(examples))
            results += classifier.classify([text])
        report("classifying", len(examples), len(examples))
    _show(results, [gold for _, gold in examples])
    say("Why? The first one, explained:")
    from rich.console import Console

    from zicl.explain import Explanation

    Console(highlight=False).print(Explanation(results[0]))
    say("For your own text:")
    say("  zicl corpus build -o mine.zicl mine/*.txt          # any pile of .txt, .jsonl, .csv or .parquet")
    say("  zicl classify --corpus mine.zicl --labels billing,delivery,praise 'my parcel never came'")
    say("  zicl explain  --corpus mine.zicl --labels billing,delivery,praise 'my parcel never came'")


def _fetch(offline: bool, report: Report) -> None:
    from zicl.catalog import find_asset

    for name in _ASSETS:
        find_asset(name, offline=offline, report=report)


def _build(corpus: Path, offline: bool, report: Report) -> None:
    """About ten thousand sentences of IMDB reviews, sampled from all of them."""
    from zicl.retrieve.build import FOLDER, MANIFEST

    if (corpus / FOLDER / MANIFEST).is_file():
        return
    from zicl._files import writing
    from zicl.corpus.build import BuildOptions, build_corpus
    from zicl.corpus.sources import find_sources
    from zicl.corpus.store import Corpus
    from zicl.retrieve.build import build_index
    from zicl.retrieve.encoder import load_encoder

    raw = corpus.parent / "imdb.jsonl"
    if not raw.exists():
        report("preparing the reviews", 0, None)
        with writing(raw) as temporary, temporary.open("w", encoding="utf-8") as stream:
            for text, _ in _reviews("imdb"):
                stream.write(json.dumps({"text": text.replace("<br />", "\n")}) + "\n")
    if (corpus / "manifest.json").is_file():
        opened = Corpus.open(corpus)
    else:
        opened = build_corpus(
            find_sources([], {"imdb": [raw]}), corpus, BuildOptions(max_paragraphs=_PARAGRAPHS), report=report
        )
    report("loading the encoder", 0, None)
    build_index(opened, load_encoder(offline=offline), report=report)


def _reviews(source: str) -> list[tuple[str, str]]:
    from zicl.catalog import get_asset

    csv.field_size_limit(1 << 30)
    path = next(get_asset(_REVIEWS).folder.glob("*.csv"))
    with path.open(encoding="utf-8", newline="") as stream:
        return [(row["text"], row["label"]) for row in csv.DictReader(stream) if row["source"] == source]


def _examples() -> list[tuple[str, str]]:
    """A dozen sentences, half of each label, in an order that mixes them."""
    from zicl._random import rng

    rows, chosen = _reviews("rotten_tomatoes"), []
    for value, name in (("0", "terrible"), ("1", "great")):
        texts = [text for text, label in rows if label == value]
        chosen += [(texts[int(n)], name) for n in rng(_SEED, "demo", name).choice(len(texts), _EACH, replace=False)]
    return [chosen[int(n)] for n in rng(_SEED, "demo").permutation(len(chosen))]


def _show(results: list, gold: list[str]) -> None:  # type: ignore[type-arg]
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("Rotten Tomatoes sentence", "prediction", "terrible", "great", "right?")
    for result, truth in zip(results, gold, strict=True):
        shares = result.probabilities
        mark = "✓" if result.label == truth else f"✗ {truth}"
        table.add_row(Text(result.text), result.label, f"{shares['terrible']:.1%}", f"{shares['great']:.1%}", mark)
    Console(highlight=False).print(table)
    right = sum(result.label == truth for result, truth in zip(results, gold, strict=True))
    typer.echo(f"{right} of {len(results)} are right, from raw text alone.")
