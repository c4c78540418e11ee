"""The options of a classifier that learns from a file, from labels too, and for several sets of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._util.counts import counted
from zicl.cli.console import print_status
from zicl.cli.help import CLASSIFIER
from zicl.cli.options import ClassifierOptions
from zicl.cli.parsing import parse_duration
from zicl.cli.preflight import preflight
from zicl.exceptions import UsageError
from zicl.inputs.pair import Text

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.classifier import FitCompute, ZICLClassifier

# What columns of labels begin with: no further set of labels may be called so.
_COLUMN_KINDS = ("p", "value", "term", "log_likelihood", "tokens")


@dataclass(frozen=True)
class ClassifyOptions(ClassifierOptions):
    """The options of a classifier, and those of learning from a file."""

    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            help="Learn from labels too: a sheet of 'zicl check', or a file with columns text and gold.",
            rich_help_panel=CLASSIFIER,
        ),
    ] = None
    lm_rows: Annotated[
        int | None,
        typer.Option(
            "--lm-rows",
            help="Ask the language model about this many of the least certain texts, and learn from its answers. [0]",
            min=0,
            rich_help_panel=CLASSIFIER,
        ),
    ] = None
    budget: Annotated[
        str | None,
        typer.Option("--budget", help="The same, for about this long: 90s, 5m or 1h.", rich_help_panel=CLASSIFIER),
    ] = None
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            help="Another set of labels for the same texts, which are encoded once: tone=angry,calm, or "
            "tone=labels.toml. May be repeated.",
            rich_help_panel=CLASSIFIER,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.budget is not None and self.lm_rows is not None:
            raise UsageError("--budget and --lm-rows were both given", hint="give one of them")
        if self.budget is not None:
            parse_duration(self.budget)
        super().__post_init__()
        self.label_sets()
        preflight(file=None if self.gold is None else str(self.gold))
        if self.saved is None and self.gold is not None and self.resolved().pile.method == "none":
            raise UsageError(
                f"--gold {self.gold}: these options learn from no labels", hint="leave it out, or use --method z-icl+"
            )

    def label_sets(self) -> dict[str, ClassifyOptions]:
        """Return the options for each set of labels, by the prefix of its columns; wrong ones are errors."""
        sets: dict[str, ClassifyOptions] = {"": self}
        for entry in self.also or []:
            name, equals, labels = (part.strip() for part in entry.partition("="))
            if not (name and equals and labels) or f"{name}:" in sets or labels.isdecimal():
                raise UsageError(
                    f"--also {entry!r}: expected NAME=LABELS, each name once", hint="--also tone=angry,calm"
                )
            if name in _COLUMN_KINDS:
                raise UsageError(f"--also {entry!r}: {name}: begins columns already", hint="choose another name")
            if of_labels := [x for x in self.settings or [] if x.startswith(("pile.shares", "decision.threshold"))]:
                raise UsageError(f"--set {of_labels[0]} is for one set of labels", hint="leave out --also")
            # All that is about labels is about those of --labels.
            sets[f"{name}:"] = replace(
                self, labels=labels, also=None, gold=None, shares=None, synonyms=None, threshold=None, none=None
            )
        return sets

    def asks_to_learn(self) -> bool:
        """Return whether the language model is asked about texts to learn from."""
        return self.budget is not None or bool(self.lm_rows)

    def named_settings(self) -> dict[tuple[str, str], Any]:
        """Return the settings that have options of their own, by group and name."""
        return {**super().named_settings(), ("pile", "lm_rows"): self.lm_rows}

    def _fit(
        self,
        classifier: ZICLClassifier,
        texts: Sequence[Any] | None,
        columns: Mapping[str, Any],
        compute: FitCompute | None,
        report: ProgressReport,
    ) -> ZICLClassifier:
        budget = None if self.budget is None else parse_duration(self.budget)
        if budget is not None and texts is None:
            raise UsageError("--budget is spent on learning from a file, and none was given", hint="--file, or --fit")
        if self.gold is None:
            return classifier.fit(texts, budget=budget, compute=compute, report=report)
        pile, gold = self.with_gold(texts, columns)
        print_status(f"{counted(len(gold), 'gold label')} from {self.gold}")
        return classifier.fit(pile, [gold.get(text) for text in pile], budget=budget, compute=compute, report=report)

    def with_gold(self, texts: Sequence[Any] | None, columns: Mapping[str, Any]) -> tuple[list[Text], dict[Text, str]]:
        """Return the texts to learn from, those with a gold label included, and these labels by text."""
        gold, pile = self.read_gold(columns), [text.strip() for text in texts or ()]
        listed = set(pile)
        return pile + [text for text in gold if text not in listed], gold

    def read_gold(self, columns: Mapping[str, Any]) -> dict[Text, str]:
        """Return the gold labels by text, if there are any; several of one text are joined by ``|``."""
        return {} if self.gold is None else self._gold_of_columns(**columns)

    @cached_property
    def _gold_of_columns(self) -> Callable[..., dict[Text, str]]:
        """What reads the file of --gold, once: it may be edited or moved while rows are labelled."""
        from zicl.apps.check.sheet import read_gold

        assert self.gold is not None
        decision = self.resolved().decision
        names = [*self.named_labels().names, *filter(None, [decision.none])]
        return cache(partial(read_gold, self.gold, names, multi=decision.multi))
