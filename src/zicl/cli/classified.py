"""What zicl classify writes and prints: the columns of a prediction, the table for people, and the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from zicl.cli.console import people_console, print_status

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledClassifier, DistilledPrediction
    from zicl.classifier import ZICLClassifier
    from zicl.inputs.pair import Text
    from zicl.inputs.tables import InputRow
    from zicl.score.results import Prediction

_LEAST_CERTAIN = 5
# Margins below which a person might want to look, and the number of rows from which their shares mean something.
_MARGINS, _ENOUGH_ROWS = (0.05, 0.1, 0.2, 0.4), 20
_NONE_THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
# A table for people has a column per label up to this many, else the likeliest few.
_SHOWN_LABELS, _SHOWN_TOP = 8, 3


@dataclass(frozen=True)
class LabelSet:
    """A classifier, and the columns that it adds to a row: all that it says of every label, or the ``top`` labels."""

    classifier: ZICLClassifier | DistilledClassifier
    prefix: str = ""
    top: int | None = None

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [f"{self.prefix}{name}" for name in self._columns]

    @cached_property
    def _columns(self) -> list[str]:
        """The names without the prefix; those of a prompt and its scores only with a language model."""
        from zicl.classifier import ZICLClassifier
        from zicl.score.ensemble import PILE

        labels, classifier = self.classifier.labels_.names, self.classifier
        is_distilled = not isinstance(classifier, ZICLClassifier)
        names = labels if is_distilled else classifier.ensemble_.names
        multi = not is_distilled and classifier.settings_.decision.multi
        columns = ["labels", "review", "margin"] if multi else ["predicted", "review", "probability", "margin"]
        if self.top is not None:
            places = range(1, min(self.top, len(names)) + 1)
            return columns + [f"{kind}_{place}" for place in places for kind in ("label", "probability")]
        columns += [f"p:{name}" for name in names]
        if is_distilled:
            return columns
        ensemble = classifier.ensemble_
        if ensemble.main is not None:
            columns += [f"{kind}:{name}" for name in labels for kind in ("log_likelihood", "tokens")]
        # The values compared are not always the first prompt's log-likelihoods: every raw score is kept.
        if ensemble.is_calibrated:
            columns += [f"value:{name}" for name in names]
        if ensemble.joins:
            terms = [*ensemble.term_names, *([PILE] if ensemble.pile else [])]
            columns += [f"term:{term}:{name}" for term in terms for name in names]
        return [*columns, "demonstrations", "input_cut"] if ensemble.main is not None else columns

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
        return {f"{self.prefix}{name}": found.get(name) for name in self._columns}


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
        found |= {"demonstrations": prompt.kept, "input_cut": prompt.input_cut}
    return found


def output_row(
    row: InputRow,
    predictions: Sequence[Prediction | DistilledPrediction],
    label_sets: Sequence[LabelSet],
    review_below: float | None,
) -> dict[str, Any]:
    """Return a row of the output: the columns of the input, then those of each set of labels."""
    record = dict(row.columns)
    for label_set, prediction in zip(label_sets, predictions, strict=True):
        record |= label_set.values(prediction, review_below)
    return record


@dataclass(frozen=True)
class SummaryLine:
    """What the summary needs of a prediction: the prompts of a long file would fill the memory.

    ``doubtful`` is the label whose probability is least clear, where a text may have several.
    """

    id: str
    text: str
    labels: tuple[str, ...]
    probabilities: Mapping[str, float]
    margin: float
    cut: bool
    row_text: Text
    doubtful: str

    @classmethod
    def of(cls, row: InputRow, prediction: Prediction | DistilledPrediction) -> SummaryLine:
        """Return the line of a row."""
        probabilities, text = prediction.probabilities, str(row.text)[:120]
        prepared = getattr(prediction, "prepared", None)
        cut = prepared is not None and prepared.prompt.input_cut
        decision, doubtful = getattr(prediction, "decision", None), prediction.label
        if decision is not None and decision.multi:
            doubtful = min(probabilities, key=lambda name: abs(probabilities[name] - decision.label_threshold(name)))
        return cls(row.id, text, prediction.labels, probabilities, prediction.margin, cut, row.text, doubtful)

    @property
    def label(self) -> str:
        """All labels, for people."""
        return ", ".join(self.labels) or "–"


def print_fitted(label_set: LabelSet, source: str) -> None:
    """Print what was learned and from which texts, and the words that show the labels."""
    from zicl.classifier import ZICLClassifier

    classifier = label_set.classifier
    assert isinstance(classifier, ZICLClassifier)
    if label_set.prefix:
        print_status(f"{label_set.prefix}")
    given = classifier.settings_.calibration.priors is not None
    for term, priors in classifier.fitted_.priors.items():
        shown = ", ".join(f"{name} {prior:.1%}" for name, prior in priors.items())
        print_status(f"label priors ({term}), {'as given' if given else source}: {shown}; subtracted from every score")
    if texts := classifier.fitted_.cluster_texts:
        print_status(f"{len(texts):,} demonstration sets, {source}; rows are labelled and written set by set")
    if (pile := classifier.fitted_.pile) is not None:
        shares = ", ".join(f"{n} {s:.1%}" for n, s in zip(classifier.ensemble_.names, pile.shares, strict=False))
        asked = classifier.settings_.pile.lm_rows
        print_status(
            f"learned from {pile.texts:,} different texts, {source}: "
            f"{'' if pile.multi else f'shares {shares}; '}the pile counts "
            f"{pile.weight:.0%}{f', the language model was asked about {asked:,} texts' if asked else ''}"
        )
        if pile.none is not None:
            known = "texts that fit no label are alike" if pile.none.component else "only single texts fit no label"
            print_status(f"{known}: they get {classifier.settings_.decision.none!r}")
    print_status("asked about each text: " + "; ".join(f"{n} ({c})" for n, c in classifier.ensemble_.costs.items()))
    if classifier.pipeline_ is not None and classifier.pipeline_.labeler is not None:
        words = classifier.pipeline_.labeler.words
        print_status("demonstrations show " + ", ".join(f"{name} as {' / '.join(w)}" for name, w in words.items()))


def print_table(lines: Sequence[SummaryLine], review_below: float | None, top: int | None) -> None:
    """Print the labels for people, one line per text."""
    from rich.table import Table
    from rich.text import Text

    names = list(dict.fromkeys(name for line in lines for name in line.probabilities))
    count = top or (_SHOWN_TOP if len(names) > _SHOWN_LABELS else None)
    table = Table("text", "label", *(["likeliest"] if count else names))
    for line in lines:
        text = line.text if len(line.text) <= 100 else line.text[:99] + "…"
        if count:
            likeliest = sorted(line.probabilities.items(), key=lambda item: -item[1])[:count]
            cells = [", ".join(f"{name} {p:.1%}" for name, p in likeliest)]
        else:
            cells = [f"{line.probabilities[name]:.1%}" if name in line.probabilities else "" for name in names]
        review = line.margin < (review_below or 0.0)
        table.add_row(Text(text), Text("to review" if review else line.label, style="bold"), *cells)
    people_console().print(table)


def print_summary(lines: Sequence[SummaryLine], review_below: float | None, earlier: int) -> None:
    """Print label frequencies, how many rows a margin leaves to a person, what was cut, and what was least certain.

    All of it is about the rows labelled now, not about the ``earlier`` ones of a resumed output.
    """
    if not lines:
        print_status("nothing was left to do")
        return
    if earlier:
        print_status(f"{earlier:,} rows were labelled before: what follows is about the {len(lines):,} new ones")
    counts = Counter(label for line in lines for label in line.labels)
    names = dict.fromkeys(name for line in lines for name in line.probabilities)
    print_status("label frequencies: " + ", ".join(f"{name} {counts[name] / len(lines):.1%}" for name in names))
    if review_below is not None or len(lines) >= _ENOUGH_ROWS:
        margins = sorted({*_MARGINS, review_below or _MARGINS[0]})
        below = {margin: sum(line.margin < margin for line in lines) for margin in margins}
        shown = ", ".join(f"{count / len(lines):.1%} below {margin:g}" for margin, count in below.items())
        print_status(f"left to a person at a margin of: {shown} (--review-below)")
    if cut := sum(line.cut for line in lines):
        print_status(f"{cut:,} texts were longer than the token limit and were cut")
    if len(lines) > _LEAST_CERTAIN:
        print_status("least certain:")
        for line in sorted(lines, key=lambda line: line.margin)[:_LEAST_CERTAIN]:
            sure = f"{line.probabilities[line.doubtful]:.1%}"
            doubt = sure if line.labels == (line.doubtful,) else f"({line.doubtful}? {sure})"
            print_status(f"  {line.id}: {line.label} {doubt}  {line.text[:80]}")


def print_none_curve(lines: Sequence[SummaryLine], none: str, gold: Mapping[Text, str]) -> None:
    """Print which share of the rows each threshold sends to ``none`` and, with gold labels, how many it gets right."""
    from zicl.score.decision import none_curve

    if not lines:
        return
    known = [gold.get(line.row_text.strip()) for line in lines]
    points = none_curve([line.probabilities for line in lines], none, _NONE_THRESHOLDS, known)
    shown = ", ".join(
        f"{point.share:.1%} at {point.threshold:g}" + ("" if point.accuracy is None else f" ({point.accuracy:.1%})")
        for point in points
    )
    learned = "; in brackets: gold rows that are right, which it has learned from" if points[0].accuracy else ""
    print_status(f"{none}, by --threshold: {shown}{learned}")
