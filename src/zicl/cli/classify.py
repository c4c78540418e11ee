"""What zicl classify says at its end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import typer

from zicl._util.process import use_threads
from zicl.cli.cluster_options import (
    OnOption,
    SearchersOption,
    ThreadsOption,
    WorkersOption,
    check_cost,
    check_unused,
    classifying,
    cluster,
)
from zicl.cli.console import print_status, progress_bars, rate
from zicl.cli.options import ClassifierOptions, JsonOption, with_options
from zicl.exceptions import UsageError
from zicl.inputs.pair import Pair, Text

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.apps.cluster.connect import Cluster
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.distill.classifier import DistilledClassifier, DistilledPrediction
    from zicl.classifier import ZICLClassifier
    from zicl.inputs.output import OutputFile
    from zicl.inputs.tables import InputRow
    from zicl.score.results import Prediction

_LEAST_CERTAIN = 5
# Margins below which a person might want to look, and the number of rows from which their shares say something.
_EDGES, _ENOUGH = (0.05, 0.1, 0.2, 0.4), 20


@dataclass(frozen=True)
class Line:
    """What the summary needs of a result: prompts of a long file would fill the memory."""

    id: str
    text: str
    label: str
    probabilities: Mapping[str, float]
    margin: float
    cut: bool


def table(lines: Sequence[Line], review_below: float | None) -> None:
    """The labels for people, a line a text."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    names = list(dict.fromkeys(name for line in lines for name in line.probabilities))
    shown = Table("text", "label", *map(escape, names))
    for line in lines:
        text = line.text if len(line.text) <= 100 else line.text[:99] + "…"
        shares = (f"{line.probabilities[name]:.1%}" if name in line.probabilities else "" for name in names)
        review = line.margin < (review_below or 0.0)
        shown.add_row(Text(text), Text("to review" if review else line.label, style="bold"), *shares)
    Console(highlight=False).print(shown)


def ending(lines: Sequence[Line], review_below: float | None) -> None:
    """What stands out: the labels' shares, what was cut, and what was least certain."""
    if not lines:
        print_status("nothing was left to do")
        return
    counts = Counter(line.label for line in lines)
    names = dict.fromkeys(name for line in lines for name in line.probabilities)
    print_status("shares: " + ", ".join(f"{name} {counts[name] / len(lines):.1%}" for name in names))
    if review_below is not None or len(lines) >= _ENOUGH:
        left = {
            edge: sum(line.margin < edge for line in lines) for edge in sorted({*_EDGES, review_below or _EDGES[0]})
        }
        told = ", ".join(f"{count / len(lines):.1%} below {edge:g}" for edge, count in left.items())
        print_status(f"left to a person at a margin of: {told} (--review-below)")
    if cut := sum(line.cut for line in lines):
        print_status(f"{cut:,} texts were longer than the token limit and were cut")
    if len(lines) > _LEAST_CERTAIN:
        print_status("least certain:")
        for line in sorted(lines, key=lambda line: line.margin)[:_LEAST_CERTAIN]:
            print_status(f"  {line.id}: {line.label} {line.probabilities[line.label]:.1%}  {line.text[:80]}")


# -- The rows that zicl classify writes: what of a result goes into which column.


def added_columns(classifier: ZICLClassifier | DistilledClassifier) -> list[str]:
    """The columns the output adds; those of a prompt and its scores only where there is a language model."""
    from zicl.apps.distill.classifier import DistilledClassifier

    names = classifier.labels_.names
    columns = ["predicted", "review", "probability", "margin", *(f"p:{name}" for name in names)]
    if isinstance(classifier, DistilledClassifier):
        return columns
    columns += [f"{kind}:{name}" for name in names for kind in ("log_likelihood", "tokens")]
    # What was compared is not always the first prompt's log-likelihood: nothing of it is lost.
    if classifier.ensemble_.is_calibrated:
        columns += [f"value:{name}" for name in names]
    if classifier.ensemble_.joins:
        columns += [f"term:{term}:{name}" for term in classifier.ensemble_.term_names for name in names]
    return [*columns, "demonstrations", "input_cut"]


def output_row(
    row: InputRow, result: Prediction | DistilledPrediction, added: Sequence[str], review_below: float | None
) -> dict[str, Any]:
    """A row of the output. One for a person to look at has no label, but all its probabilities."""
    from zicl.score.results import Prediction

    review = result.margin < (review_below or 0.0)
    made = {
        **row.columns,
        # A row that may choose from some of the labels has nothing to say of the others.
        **dict.fromkeys(added, None),
        "predicted": "" if review else result.label,
        "review": review,
        "probability": round(result.probabilities[result.label], 6),
        "margin": round(result.margin, 6),
        **{f"p:{name}": round(share, 6) for name, share in result.probabilities.items()},
    }
    if isinstance(result, Prediction):
        for score in result.scores:
            made[f"log_likelihood:{score.label}"] = round(score.log_likelihood, 5)
            made[f"tokens:{score.label}"] = score.tokens
            if f"value:{score.label}" in made:
                made[f"value:{score.label}"] = round(score.value, 5)
        labels = [score.label for score in result.scores]
        for term, values in result.terms.items():
            made |= {f"term:{term}:{label}": round(v, 5) for label, v in zip(labels, values, strict=True)}
        made |= {"demonstrations": result.prepared.prompt.kept, "input_cut": result.prepared.prompt.input_cut}
    return made


# -- zicl classify: texts in, labels out.


# Rows are scored and written in these groups, counted from the file's first row: a resumed run forms the same ones.
# Without a language model they are larger: texts of one length are encoded together.
_CHUNK, _CHUNK_DISTILLED = 16, 1024


@with_options(ClassifierOptions)
def classify(
    choice: ClassifierOptions,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; or - to read them from standard input, a line each.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="A .csv, .jsonl, .parquet or .txt file of texts.")
    ] = None,
    text_column: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    id_column: Annotated[
        str | None, typer.Option(help="The column that names a row. [id, else made from the text]")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="The column that holds the second text of a pair.")] = None,
    options_column: Annotated[
        str | None, typer.Option(help="The column that holds each row's own labels: a|b, or a JSON list.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv or .jsonl file; one that is partly done is finished."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin the output file anew.")] = False,
    review_below: Annotated[
        float | None,
        typer.Option(
            help="Leave rows with a margin below this unlabelled, marked for a person to look at.", min=0, max=1
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Save the classifier to this folder, for --with.")] = None,
    on: OnOption = None,
    workers: WorkersOption = None,
    threads: ThreadsOption = None,
    searchers: SearchersOption = 0,
    json_output: JsonOption = False,
) -> None:
    """Label texts; the most likely label, all probabilities, and what was least certain."""
    from zicl.inputs.output import OutputFile

    check_unused(on, workers=workers, searchers=searchers)
    columns = {"id_column": id_column, "pair_column": pair_column, "options_column": options_column}
    rows = _rows(texts, file, text_column, columns)
    print_status(f"{len(rows):,} row{'s' if len(rows) != 1 else ''} to label")
    with nullcontext() if on is None else _cluster(choice, on, workers, threads) as found:
        # What is fitted here is fitted as a worker would.
        use_threads(threads if found is None else found.threads)
        with progress_bars() as report:
            report("loading the models", 0, None)
            named = {"text_column": text_column, "pair_column": pair_column}
            classifier = choice.any_classifier((lambda: [row.text for row in rows]) if file else None, report, named)
        added = added_columns(classifier)
        _check(classifier, rows, added, {"--options-column": options_column, "--on": on})
        _check_options(classifier, rows, file)
        if _has_lm(classifier):
            source = f"as saved in {choice.saved}" if choice.saved else f"fitted on {choice.fit or file}"
            _say_fitted(classifier, source)
            rows = [rows[n] for n in classifier.order([row.text for row in rows])]
            _say_shown(classifier)
        if save is not None:
            classifier.save(save)
            print_status(f"saved as {save}")
        target = None
        if output is not None:
            names = list(dict.fromkeys(name for row in rows for name in row.columns)) + added
            settings = {**_settings(classifier, review_below), "columns": [text_column, pair_column, options_column]}
            own_id = id_column or "id"
            own_texts = [text_column if file else "text", *filter(None, [pair_column, options_column])]
            target = _say_done(
                OutputFile(output, settings, names, id_column=own_id, text_columns=own_texts, overwrite=overwrite)
            )
        with _pool(choice, classifier, found, searchers) as pool:
            lines = list(_run(classifier, rows, added, target, review_below, pool, json_output=json_output))
    if target is None and not json_output:
        table(lines, review_below)
    ending(lines, review_below)


@contextmanager
def _cluster(choice: ClassifierOptions, on: str, workers: int | None, threads: int | None) -> Iterator[Cluster]:
    check_cost(choice)
    with cluster(on, workers, threads) as found:
        yield found


def _pool(
    choice: ClassifierOptions, classifier: ZICLClassifier | DistilledClassifier, found: Cluster | None, searchers: int
) -> AbstractContextManager[WorkerPool | None]:
    if found is None or not _has_lm(classifier):
        return nullcontext()
    return classifying(choice, classifier, found, searchers)


def _say_done(target: OutputFile) -> OutputFile:
    if target.cut:
        print_status(f"{target.cut:,} bytes behind the last whole chunk were cut off: an interrupted write")
    if target.done:
        print_status(f"{len(target.done):,} rows are in {target.path} already and stay as they are")
    return target


def _rows(texts: list[str] | None, file: str | None, text_column: str, columns: Mapping[str, Any]) -> list[InputRow]:
    from zicl.inputs.tables import InputRow, read_rows
    from zicl.inputs.texts import check_text

    if file is not None and texts:
        raise UsageError("texts and --file were both given", hint="give one of them")
    if file is not None:
        return read_rows(file, text_column=text_column, **columns)
    if texts and texts != ["-"]:
        if named := [name for name, column in columns.items() if column is not None]:
            raise UsageError(
                f"--{named[0].replace('_', '-')} names a column, and the texts come from no file",
                hint="leave it out, or put the texts into a file: --file texts.csv",
            )
        return [
            InputRow(str(n), check_text(text, f"text {n}"), {"id": str(n), "text": text})
            for n, text in enumerate(texts, start=1)
        ]
    if not texts and sys.stdin.isatty():
        raise UsageError(
            "no text was given", hint="zicl classify 'some text' …, --file texts.csv, or - for standard input"
        )
    return read_rows("-", text_column=text_column, **columns)


def _has_lm(classifier: ZICLClassifier | DistilledClassifier) -> TypeGuard[ZICLClassifier]:
    from zicl.classifier import ZICLClassifier

    return isinstance(classifier, ZICLClassifier)


def _check(
    classifier: ZICLClassifier | DistilledClassifier,
    rows: Sequence[InputRow],
    added: Sequence[str],
    given: Mapping[str, str | None],
) -> None:
    """A distilled classifier has no use for some options, and the input must not have the columns of the output."""
    unused = [name for name, value in given.items() if value is not None]
    if unused and not _has_lm(classifier):
        raise UsageError(
            f"{unused[0]}: a distilled classifier has one set of labels and no language model", hint="leave it out"
        )
    if not _has_lm(classifier) and classifier.of_pairs not in (None, isinstance(rows[0].text, Pair)):
        raise UsageError(
            "the classifier was distilled from "
            + ("pairs, and these are single texts" if classifier.of_pairs else "single texts, and these are pairs"),
            hint="name the second text's column with --pair-column"
            if classifier.of_pairs
            else "leave out --pair-column",
        )
    clash = sorted({name for row in rows for name in row.columns} & set(added))
    if clash:
        raise UsageError(
            f"the input has columns that the output needs: {', '.join(clash)}", hint="rename them in the input"
        )


def _check_options(
    classifier: ZICLClassifier | DistilledClassifier, rows: Sequence[InputRow], file: str | None
) -> None:
    """Every row can choose from its own labels: found before the first row is scored, and by its number."""
    from zicl.inputs.tables import row_name

    name = "standard input" if file in (None, "-") else Path(str(file)).name
    for number, row in enumerate(rows, start=1):
        if row.options:
            classifier.labels_.among(row.options, row_name(name, number))


def _say_fitted(classifier: ZICLClassifier, source: str) -> None:
    """What was learned, and from what: nobody should have to guess it."""
    given = classifier.settings_.calibration.priors is not None
    for term, shares in classifier.fitted_.priors.items():
        told = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        print_status(f"any text gets ({term}): {told}; taken off every score, {'as given' if given else source}")
    if texts := classifier.fitted_.cluster_texts:
        print_status(f"{len(texts):,} sets of demonstrations, {source}; rows are labelled and written set by set")


def _say_shown(classifier: ZICLClassifier) -> None:
    """The words that stand for the labels in the demonstrations."""
    if classifier.pipeline_.labeler is not None:
        words = classifier.pipeline_.labeler.words
        print_status(
            "demonstrations show " + ", ".join(f"{name} as {' / '.join(shown)}" for name, shown in words.items())
        )


def _settings(classifier: ZICLClassifier | DistilledClassifier, review_below: float | None) -> dict[str, Any]:
    """What an output file's rows depend on."""
    return {**classifier.fingerprint(), "review_below": review_below}


def _run(
    classifier: ZICLClassifier | DistilledClassifier,
    rows: Sequence[InputRow],
    added: Sequence[str],
    target: OutputFile | None,
    review_below: float | None,
    pool: WorkerPool | None,
    *,
    json_output: bool,
) -> Iterator[Line]:
    from zicl.inputs.output import to_json

    size = _CHUNK if _has_lm(classifier) else _CHUNK_DISTILLED
    starts = range(0, len(rows), size)
    pieces = [rows[n : n + size] if target is None else target.left(rows[n : n + size]) for n in starts]
    chunks = [piece for piece in pieces if piece]
    begun, finished, left = time.monotonic(), 0, sum(map(len, chunks))
    with progress_bars() as report:
        answers = _here(classifier, chunks, report, left) if pool is None else _spread(pool, chunks)
        report("classifying", 0, left)
        for chunk, results in zip(chunks, answers, strict=True):
            finished += len(chunk)
            records = [output_row(row, result, added, review_below) for row, result in zip(chunk, results, strict=True)]
            if target:
                target.write(records)
            if json_output:
                typer.echo("\n".join(to_json(record) for record in records))
            if finished == len(chunk) and left > finished:
                print_status(rate(finished, time.monotonic() - begun, left - finished))
            report("classifying", finished, left)
            for row, record, result in zip(chunk, records, results, strict=True):
                cut = bool(record.get("input_cut"))
                yield Line(row.id, str(row.text)[:120], result.label, result.probabilities, result.margin, cut)


def _here(
    classifier: ZICLClassifier | DistilledClassifier,
    chunks: Sequence[Sequence[InputRow]],
    report: ProgressReport,
    left: int,
) -> Iterator[Sequence[Prediction | DistilledPrediction]]:
    """The results of each chunk, computed in this process."""
    finished = 0
    for chunk in chunks:
        texts, own = _asked(chunk)
        advance = _advance(report, finished, left)
        finished += len(chunk)
        yield (
            classifier.classify(texts, advance, options=own)
            if _has_lm(classifier)
            else classifier.classify(texts, advance)
        )


def _spread(
    pool: WorkerPool, chunks: Sequence[Sequence[InputRow]]
) -> Iterator[Sequence[Prediction | DistilledPrediction]]:
    """The same, computed by workers."""
    from zicl.apps.cluster.classify import classify_on

    return classify_on(pool, map(_asked, chunks))


def _asked(chunk: Sequence[InputRow]) -> tuple[list[Text], list[tuple[str, ...]] | None]:
    return [row.text for row in chunk], [row.options for row in chunk] if chunk[0].options else None


def _advance(report: ProgressReport, done: int, total: int) -> Callable[[int], None]:
    """A callback that moves the bar on by the number of rows it is given."""
    moved = done

    def advance(count: int) -> None:
        nonlocal moved
        moved += count
        report("classifying", moved, total)

    return advance
