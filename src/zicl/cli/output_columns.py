"""The columns that zicl classify adds to a row: all there are by kind, those that are written, and their values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl.cli.help import INPUT
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledClassifier, DistilledPrediction
    from zicl.classifier import ZICLClassifier
    from zicl.config import Decision
    from zicl.score.results import Prediction

# Kinds of columns: one each, or, where the kind is followed by a colon, one for every label.
KINDS = (
    "predicted", "review", "probability", "margin",
    "p", "log_likelihood", "tokens", "value", "term", "demonstrations", "input_cut",
)  # fmt: skip
_PROMPT = ("demonstrations", "input_cut")
# What a person asks for. Rows left for review have no label: what they might be is in their probabilities.
_SHORT, _FOR_REVIEW = ("predicted", "probability", "margin", "top"), ("review", "p")

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="What to write for each row: all, or some of " + ", ".join(KINDS) + ". "
        "[predicted,probability,margin; with --json all]",
        rich_help_panel=INPUT,
    ),
]


def parse_columns(text: str | None) -> tuple[str, ...] | None:
    """Return the kinds of columns that ``--columns`` names; None if it was not given.

    >>> parse_columns("predicted, p")
    ('predicted', 'p')
    """
    if text is None:
        return None
    # Where texts may have several labels, the first column is called so.
    named = tuple("predicted" if part.strip() == "labels" else part.strip() for part in text.split(","))
    if named == ("all",):
        return KINDS
    if unknown := [name for name in named if name not in KINDS]:
        raise UsageError(
            f"--columns {text}: {unknown[0]!r} is no kind of column", hint=f"all, or some of: {', '.join(KINDS)}"
        )
    return named


def plain_columns(names: Sequence[str], *, multi: bool, top: int | None) -> list[tuple[str, str]]:
    """Return the kinds and names of the columns that every classifier with these labels can add, without a prefix.

    >>> [name for _, name in plain_columns(["bad", "good"], multi=False, top=None)]
    ['predicted', 'review', 'probability', 'margin', 'p:bad', 'p:good']
    """
    columns = [("predicted", "labels" if multi else "predicted"), ("review", "review")]
    if not multi:
        columns.append(("probability", "probability"))
    columns.append(("margin", "margin"))
    if top is None:
        return columns + _by_label(["p"], names)
    places = range(1, min(top, len(names)) + 1)
    return columns + [("top", f"{kind}_{place}") for place in places for kind in ("label", "probability")]


def chosen_kinds(kinds: Collection[str] | None, top: int | None, *, review: bool) -> Collection[str]:
    """Return these kinds of columns, or those that a person asks for."""
    if kinds or not review:
        return kinds or _SHORT
    # The likeliest labels have their probabilities beside them.
    return (*_SHORT, *(_FOR_REVIEW if top is None else _FOR_REVIEW[:1]))


@dataclass(frozen=True)
class LabelSet:
    """A classifier, and the columns that it can add to a row: all that it says of every label, or of the ``top``."""

    classifier: ZICLClassifier | DistilledClassifier
    prefix: str = ""
    top: int | None = None

    @property
    def names(self) -> list[str]:
        """All labels, with the name for texts that fit none."""
        from zicl.classifier import ZICLClassifier

        classifier = self.classifier
        if isinstance(classifier, ZICLClassifier):
            return list(classifier.ensemble_.names)
        return list(classifier.labels_.names)

    @property
    def decision(self) -> Decision:
        """How many labels a text gets; a distilled classifier gives each one."""
        from zicl.classifier import ZICLClassifier
        from zicl.config import ONE_LABEL

        return self.classifier.settings_.decision if isinstance(self.classifier, ZICLClassifier) else ONE_LABEL

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return [f"{self.prefix}{name}" for _, name in self._columns]

    def written(self, kinds: Collection[str] | None, *, review: bool) -> list[str]:
        """Return the names of the columns of these kinds, or of those that a person asks for."""
        chosen = chosen_kinds(kinds, self.top, review=review)
        there = dict.fromkeys(kind for kind, _ in self._columns)
        missing = [kind for kind in kinds or () if kind not in there]
        if missing and kinds != KINDS:
            raise UsageError(
                f"--columns {missing[0]}: there are no such columns with these options",
                hint=f"there are: {', '.join(there)}",
            )
        return [f"{self.prefix}{name}" for kind, name in self._columns if kind in chosen]

    @cached_property
    def _columns(self) -> list[tuple[str, str]]:
        """The kinds and the names without the prefix; those of a prompt and its scores only with a language model."""
        from zicl.classifier import ZICLClassifier
        from zicl.score.ensemble import PILE

        labels, names, classifier = self.classifier.labels_.names, self.names, self.classifier
        is_distilled = not isinstance(classifier, ZICLClassifier)
        columns = plain_columns(names, multi=self.decision.multi, top=self.top)
        if is_distilled or self.top is not None:
            return columns
        ensemble = classifier.ensemble_
        if ensemble.main is not None:
            columns += [(kind, f"{kind}:{name}") for name in labels for kind in ("log_likelihood", "tokens")]
        # The values compared are not always the first prompt's log-likelihoods: every raw score is kept.
        if ensemble.is_calibrated:
            columns += _by_label(["value"], names)
        if ensemble.joins:
            terms = [*ensemble.term_names, *([PILE] if ensemble.pile else [])]
            columns += _by_label([f"term:{term}" for term in terms], names)
        return [*columns, *zip(_PROMPT, _PROMPT, strict=True)] if ensemble.main is not None else columns

    def values(self, prediction: Prediction | DistilledPrediction, review_below: float | None) -> dict[str, Any]:
        """Return the values of the columns. A row for a person to review has no label, but all its probabilities."""
        from zicl.score.results import Prediction

        review = prediction.margin < (review_below or 0.0)
        label = "" if review else prediction.label
        found: dict[str, Any] = {
            "predicted": label,
            "labels": label,
            "review": review,
            "probability": round(prediction.probabilities.get(prediction.label, 0.0), 6),
            "margin": round(prediction.margin, 6),
        }
        if self.top is None:
            found |= {f"p:{name}": round(p, 6) for name, p in prediction.probabilities.items()}
            if isinstance(prediction, Prediction):
                found |= _raw_scores(prediction)
        else:
            for place, (name, probability) in enumerate(prediction.top(self.top), start=1):
                found |= {f"label_{place}": name, f"probability_{place}": round(probability, 6)}
        # A row that may choose from only some of the labels leaves the columns of the others empty.
        return {f"{self.prefix}{name}": found.get(name) for _, name in self._columns}


def _by_label(kinds: Iterable[str], names: Iterable[str]) -> list[tuple[str, str]]:
    """Return a column of each kind for each label: ``term:pile`` is of the kind ``term``."""
    labels = list(names)
    return [(kind.partition(":")[0], f"{kind}:{name}") for kind in kinds for name in labels]


def _raw_scores(prediction: Prediction) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for score in prediction.scores:
        if score.log_likelihood is not None:
            found[f"log_likelihood:{score.label}"] = round(score.log_likelihood, 5)
            found[f"tokens:{score.label}"] = score.tokens
        found[f"value:{score.label}"] = round(score.value, 5)
    labels = [score.label for score in prediction.scores]
    for term, values in prediction.terms.items():
        # An expert may have no score for none of the labels, which comes last.
        found |= {f"term:{term}:{label}": round(v, 5) for label, v in zip(labels, values, strict=False)}
    if prediction.prepared is not None:
        prompt = prediction.prepared.prompt
        found |= dict(zip(_PROMPT, (prompt.kept, prompt.input_cut), strict=True))
    return found


def added_values(
    predictions: Sequence[Prediction | DistilledPrediction], label_sets: Sequence[LabelSet], review_below: float | None
) -> dict[str, Any]:
    """Return the values of all columns that can be added to a row, from its prediction for each set of labels."""
    pairs = zip(label_sets, predictions, strict=True)
    return {
        name: value
        for label_set, prediction in pairs
        for name, value in label_set.values(prediction, review_below).items()
    }
