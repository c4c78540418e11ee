"""What zicl classify prints: what was learned, the table for people, and the summary of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zicl._util.counts import counted
from zicl.cli.console import people_console, print_status
from zicl.inputs.pair import Pair
from zicl.prompt.labels import split_labels

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledPrediction
    from zicl.cli.output_columns import LabelSet
    from zicl.config import Decision
    from zicl.inputs.output import OutputFile
    from zicl.inputs.pair import Text
    from zicl.inputs.tables import InputRow
    from zicl.score.results import Prediction

# Of a text the summary and the table show the beginning.
_LEAST_CERTAIN, _LONGEST_TEXT, _NAMED = 5, 120, 20
# Margins below which a person might want to look, and the number of rows from which their shares mean something.
_MARGINS, _ENOUGH_ROWS = (0.05, 0.1, 0.2, 0.4), 20
_NONE_THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
# A table for people has a column per label up to this many, else the likeliest few.
_SHOWN_LABELS, _SHOWN_TOP = 8, 3


@dataclass(frozen=True)
class SummaryLine:
    """What the summary needs of a row: the prompts of a long file would fill the memory.

    ``doubtful`` is the label whose probability is least clear, where a text may have several. A row that an earlier run
    wrote has the probabilities that are in its file, and ``cut`` is None if that is not in there. One without a text is
    ``empty``.
    """

    id: str
    text: str
    labels: tuple[str, ...] = ()
    probabilities: Mapping[str, float] = field(default_factory=dict)
    margin: float = 0.0
    cut: bool | None = False
    row_text: Text = ""
    doubtful: str = ""
    empty: bool = False

    @classmethod
    def of(cls, row: InputRow, prediction: Prediction | DistilledPrediction, *, cut: bool) -> SummaryLine:
        """Return the line of a row; ``cut`` says whether an encoder reads only the beginning of its text."""
        probabilities, text = prediction.probabilities, _shown(row.text)
        prepared = getattr(prediction, "prepared", None)
        cut = cut or (prepared is not None and prepared.prompt.input_cut)
        doubtful = _doubtful(prediction.labels, probabilities, getattr(prediction, "decision", None))
        return cls(row.id, text, prediction.labels, probabilities, prediction.margin, cut, row.text, doubtful)

    @classmethod
    def of_empty(cls, row: InputRow) -> SummaryLine:
        """Return the line of a row without a text."""
        return cls(row.id, "", empty=True)

    @property
    def label(self) -> str:
        """All labels, for people."""
        return ", ".join(self.labels) or "–"


def _shown(text: Text) -> str:
    """Return the beginning of a text as one line: a second one could look like a line of zicl."""
    return " ".join(str(text)[:_LONGEST_TEXT].split())


def _doubtful(labels: Sequence[str], probabilities: Mapping[str, float], decision: Decision | None) -> str:
    if decision is not None and decision.multi and probabilities:
        return min(probabilities, key=lambda name: abs(probabilities[name] - decision.label_threshold(name)))
    return next(iter(labels), "")


@dataclass(frozen=True)
class Earlier:
    """The rows that an earlier run wrote: how many, and their lines if their labels and margins were written."""

    count: int = 0
    lines: tuple[SummaryLine, ...] = ()


def read_earlier(
    file: OutputFile | None,
    label_set: LabelSet,
    id_column: str,
    text_column: str,
    pair_column: str | None,
    gold: Mapping[Text, str],
) -> Earlier:
    """Read the rows that are in an output already; only texts with a ``gold`` label are kept."""
    if file is None or not file.done:
        return Earlier()
    decision, lines = label_set.decision, []
    column = "labels" if decision.multi else "predicted"
    for record in file.records():
        if column not in record or "margin" not in record:
            return Earlier(len(file.done))
        first = str(record[text_column] or "")
        text: Text = first if pair_column is None else Pair(first, str(record[pair_column] or ""))
        shown, name = _shown(text), str(record[id_column])
        if record["margin"] in (None, ""):
            lines.append(SummaryLine(name, shown, empty=True))
            continue
        labels, probabilities = _read_labels(record, column, label_set.names, decision)
        cut = None if "input_cut" not in record else str(record["input_cut"]) == "True"
        doubtful = _doubtful(labels, probabilities, decision)
        kept = text if text.strip() in gold else ""
        lines.append(SummaryLine(name, shown, labels, probabilities, float(record["margin"]), cut, kept, doubtful))
    return Earlier(len(file.done), tuple(lines))


def _read_labels(
    record: Mapping[str, Any], column: str, names: Sequence[str], decision: Decision
) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return the labels of a row that was written, and the probabilities that were."""
    given = {name: record.get(f"p:{name}") for name in names}
    probabilities = {name: float(p) for name, p in given.items() if p not in (None, "")}
    labels = split_labels(str(record[column]), multi=decision.multi) if record[column] else ()
    if str(record.get("review")) == "True":
        # Left to a person: counted as what it would have been, like a row of this run.
        labels = decision.choose(probabilities) if probabilities else tuple(filter(None, [record.get("label_1")]))
    if not probabilities and len(labels) == 1 and record.get("probability"):
        probabilities = {labels[0]: float(record["probability"])}
    return labels, probabilities


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
        print_status(f"{counted(len(texts), 'demonstration set')}, {source}; rows are labelled and written set by set")
    if (pile := classifier.fitted_.pile) is not None:
        shares = ", ".join(f"{n} {s:.1%}" for n, s in zip(classifier.ensemble_.names, pile.shares, strict=False))
        asked = classifier.settings_.pile.lm_rows
        answers = f", the language model was asked about {counted(asked, 'text')}" if asked else ""
        print_status(
            f"learned from {counted(pile.texts, 'different text')}, {source}: "
            f"{'' if pile.multi else f'shares {shares}; '}the pile counts "
            f"{pile.weight:.0%}{answers}"
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
        review = line.margin < (review_below or 0.0) and not line.empty
        table.add_row(Text(text), Text("to review" if review else line.label, style="bold"), *cells)
    people_console().print(table)


def print_summary(
    lines: Sequence[SummaryLine],
    label_set: LabelSet,
    review_below: float | None,
    earlier: Earlier,
    gold: Mapping[Text, str],
) -> None:
    """Print label frequencies, how many rows a margin leaves to a person, what was cut, and what was least certain.

    It is about all rows of an output, those of ``earlier`` runs included as far as their labels were written. Rows with
    a ``gold`` label teach what texts like them get, and may get another one themselves: these are named.
    """
    if earlier.count:
        _print_earlier(len(lines), earlier)
    every = [*earlier.lines, *lines]
    if empty := sum(line.empty for line in every):
        print_status(f"{counted(empty, 'row')} without a text got no label (--skip-empty)")
    labelled = [line for line in every if not line.empty]
    if not labelled:
        return
    counts = Counter(label for line in labelled for label in line.labels)
    shares = ", ".join(f"{name} {counts[name] / len(labelled):.1%}" for name in label_set.names)
    print_status(f"label frequencies: {shares}")
    if review_below is not None or len(labelled) >= _ENOUGH_ROWS:
        margins = sorted({*_MARGINS, review_below or _MARGINS[0]})
        below = {margin: sum(line.margin < margin for line in labelled) for margin in margins}
        shown = ", ".join(f"{count / len(labelled):.1%} below {margin:g}" for margin, count in below.items())
        print_status(f"left to a person at a margin of: {shown} (--review-below)")
    if cut := sum(bool(line.cut) for line in labelled):
        known = sum(line.cut is not None for line in labelled)
        among = "" if known == len(labelled) else f", of the {known:,} labelled now"
        print_status(f"{counted(cut, 'text was', 'texts were')} cut at the token limit{among}")
    if len(labelled) > _LEAST_CERTAIN:
        print_status("probabilities and margins are not calibrated: zicl check measures how many labels are right")
    # What a person has labelled is certain.
    open_ones = [line for line in labelled if line.row_text.strip() not in gold]
    if len(open_ones) > _LEAST_CERTAIN:
        print_status("least certain:")
        for line in sorted(open_ones, key=lambda line: line.margin)[:_LEAST_CERTAIN]:
            print_status(f"  {_shown(line.id)}: {line.label} {_doubt(line)}  {line.text[:80]}")
    _print_other_labels(labelled, gold, multi=label_set.decision.multi)


def _print_other_labels(lines: Sequence[SummaryLine], gold: Mapping[Text, str], *, multi: bool) -> None:
    """Name the rows that a person labelled, and that get another label here."""
    taught = {line.id: gold[text] for line in lines if (text := line.row_text.strip()) in gold}
    other = [x.id for x in lines if x.id in taught and {*x.labels} != {*split_labels(taught[x.id], multi=multi)}]
    if other:
        named = ", ".join(map(_shown, other[:_NAMED])) + (", …" if len(other) > _NAMED else "")
        print_status(
            f"of {counted(len(taught), 'row')} that you labelled, {len(other):,} got another label: {named} "
            "(your labels teach what texts like them get)"
        )


def _print_earlier(new: int, earlier: Earlier) -> None:
    before = f"{counted(earlier.count, 'row was', 'rows were')} labelled before"
    if not new:
        print_status(f"nothing was left to do: {before}")
    elif earlier.lines:
        print_status(f"{before} and {new:,} now: what follows is about all {earlier.count + new:,}")
    if not earlier.lines:
        print_status(
            "their labels or margins were not written, which a summary needs (--columns predicted,margin)"
            if not new
            else f"{before}, without the columns of labels and margins: what follows is about {counted(new, 'new row')}"
        )


def _doubt(line: SummaryLine) -> str:
    if line.doubtful not in line.probabilities:
        return f"(margin {line.margin:.3f})"
    sure = f"{line.probabilities[line.doubtful]:.1%}"
    return sure if line.labels == (line.doubtful,) else f"({line.doubtful}? {sure})"


def print_none_curve(lines: Sequence[SummaryLine], none: str, gold: Mapping[Text, str]) -> None:
    """Print which share of the rows each threshold sends to ``none`` and, with gold labels, how many it gets right."""
    from zicl.score.decision import none_curve

    # An earlier run may have written the probability of one label only.
    known_lines = [line for line in lines if none in line.probabilities and len(line.probabilities) > 1]
    among = "" if len(known_lines) == len(lines) else f", of {counted(len(known_lines), 'row')} with all probabilities"
    lines = known_lines
    if not lines:
        return
    known = [gold.get(line.row_text.strip()) for line in lines]
    points = none_curve([line.probabilities for line in lines], none, _NONE_THRESHOLDS, known)
    shown = ", ".join(
        f"{point.share:.1%} at {point.threshold:g}" + ("" if point.accuracy is None else f" ({point.accuracy:.1%})")
        for point in points
    )
    learned = "; in brackets: gold rows that are right, which it has learned from" if points[0].accuracy else ""
    print_status(f"{none}, by --threshold{among}: {shown}{learned}")
