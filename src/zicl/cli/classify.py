"""zicl classify: texts in, labels out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, cast

import typer

from zicl._util.counts import counted
from zicl._util.process import use_threads
from zicl.cli.classify_options import ClassifyOptions
from zicl.cli.cluster_options import (
    ClusterChoice,
    OnOption,
    check_cost,
    classification_workers,
    cluster_fit,
    connected,
    parse_cluster,
)
from zicl.cli.console import print_status, progress_bars, rate
from zicl.cli.help import CLASSIFIER, INPUT
from zicl.cli.input_rows import input_file, read_input
from zicl.cli.known_run import known_columns
from zicl.cli.options import ClassifierOptions, JsonOption, with_options
from zicl.cli.output_columns import ColumnsOption, LabelSet, added_values, parse_columns
from zicl.cli.preflight import preflight
from zicl.cli.record_writer import RecordWriter
from zicl.cli.summary import (
    SummaryLine,
    print_fitted,
    print_none_curve,
    print_summary,
    print_table,
    read_earlier,
)
from zicl.exceptions import UsageError
from zicl.inputs.files import begins_with_mark
from zicl.inputs.pair import Pair, Text

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.apps.cluster.connect import Cluster
    from zicl.apps.cluster.pool import WorkerPool
    from zicl.apps.distill.classifier import DistilledClassifier, DistilledPrediction
    from zicl.classifier import ZICLClassifier
    from zicl.inputs.tables import InputRow
    from zicl.score.results import Prediction

# Rows are scored and written in chunks, counted from the file's first row: a resumed run forms the same ones.
# Without a language model they are larger: texts of one length are encoded together.
_CHUNK, _CHUNK_ENCODED = 16, 1024


@with_options(ClassifyOptions)
def classify(
    options: ClassifyOptions,
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts; or one file, as with --file; or - for standard input, a text per line."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", help="A .csv, .xlsx, .jsonl, .parquet, .arrow or .txt file of texts.", rich_help_panel=INPUT
        ),
    ] = None,
    text_column: Annotated[str, typer.Option(help="The column that holds the text.", rich_help_panel=INPUT)] = "text",
    id_column: Annotated[
        str | None,
        typer.Option(help="The column that names a row. [id, else made from the text]", rich_help_panel=INPUT),
    ] = None,
    pair_column: Annotated[
        str | None, typer.Option(help="The column that holds the second text of a pair.", rich_help_panel=INPUT)
    ] = None,
    options_column: Annotated[
        str | None,
        typer.Option(help="The column that holds each row's own labels: a|b, or a JSON list.", rich_help_panel=INPUT),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A .csv, .jsonl, .xlsx or .parquet file; an unfinished one is resumed.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start the output file anew.", rich_help_panel=INPUT)
    ] = False,
    columns: ColumnsOption = None,
    skip_empty: Annotated[
        bool,
        typer.Option(
            "--skip-empty", help="Keep rows without a text in the output, without a label.", rich_help_panel=INPUT
        ),
    ] = False,
    review_below: Annotated[
        float | None,
        typer.Option(
            help="Leave rows with a margin below this unlabelled, marked for a person to review.",
            min=0,
            max=1,
            rich_help_panel=INPUT,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            help="Also write the N likeliest labels with their probabilities; the table shows these.",
            min=1,
            rich_help_panel=INPUT,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Save the classifier to this folder, for --with.", rich_help_panel=CLASSIFIER),
    ] = None,
    on: OnOption = None,
    json_output: JsonOption = False,
) -> None:
    """Label texts: the most likely label, its probability and margin, and what was least certain."""
    kinds, file = parse_columns(columns), input_file(texts, file)
    preflight(file=file, save=save)
    _check_output(options, file, output, overwrite=overwrite)
    cluster_choice = parse_cluster(on)
    _check_spread(options, cluster_choice)
    _check_one_set(options, {"--save": save, "--on": on, "--options-column": options_column})
    _check_columns(options, top, kinds, output, json_output=json_output)
    rows = read_input(
        texts,
        file,
        text_column,
        id_column=id_column,
        pair_column=pair_column,
        options_column=options_column,
        skip_empty=skip_empty,
    )
    filled = [row for row in rows if not row.empty]
    _check_columns_free(rows, known_columns(options, kinds, top, review=review_below is not None))
    from zicl.inputs.output import check_rows_fit, output_lock

    # A table for people has no columns of the input.
    check_rows_fit(output, [] if output is None and not json_output else rows)
    fit_columns = {"text_column": text_column, "pair_column": pair_column}
    fit_texts = (lambda: [row.text for row in filled]) if file else None
    gold = options.read_gold(fit_columns)
    run = {"top": top, "review_below": review_below, "columns": [text_column, pair_column, options_column]}
    print_status(f"{counted(len(rows), 'row')} to label")
    with output_lock(output), nullcontext() if cluster_choice is None else connected(cluster_choice) as cluster:
        # What is fitted here is fitted as a worker would fit it.
        use_threads(None if cluster is None else cluster.threads)
        with progress_bars() as report:
            report("loading the models", 0, None)
            compute = None if cluster is None else cluster_fit(options, cluster)
            label_sets = [
                LabelSet(each.any_classifier(fit_texts, report, fit_columns, compute), prefix, top)
                for prefix, each in options.label_sets().items()
            ]
        classifier = label_sets[0].classifier
        _note_unused_corpus(options, classifier)
        writer = RecordWriter.of(
            label_sets,
            kinds,
            review=review_below is not None,
            json_output=json_output,
            marked=file is not None and begins_with_mark(file),
        )
        _check_rows(classifier, filled, writer.columns, {"--options-column": options_column})
        _check_row_options(classifier, rows, file)
        if _has_ensemble(classifier):
            _print_learned(options, label_sets, file)
            rows = _in_order(classifier, rows)
        if save is not None:
            classifier.save(save)
            print_status(f"saved as {save}")
        text_columns = [text_column if file else "text", *filter(None, [pair_column, options_column])]
        if output is not None:
            _open_output(writer, output, label_sets, run, rows, id_column or "id", text_columns, overwrite=overwrite)
        earlier = read_earlier(writer.file, label_sets[0], id_column or "id", text_columns[0], pair_column, gold)
        with _workers(options, classifier, cluster, cluster_choice) as pool, writer.finishing(len(rows)):
            chunks = _chunks(classifier, rows, writer)
            lines = list(_classify_chunks(label_sets, chunks, writer, review_below, pool))
    if output is None and not json_output:
        print_table(lines, review_below, top)
    print_summary(lines, label_sets[0], review_below, earlier, gold)
    if _has_ensemble(classifier) and classifier.none is not None:
        print_none_curve([*earlier.lines, *lines], classifier.none, gold)


def _print_learned(options: ClassifyOptions, label_sets: Sequence[LabelSet], file: str | None) -> None:
    learned_from = options.fit or ("standard input" if file == "-" else file) or options.gold
    source = f"as saved in {options.saved}" if options.saved else f"from {learned_from}"
    for each in label_sets:
        print_fitted(each, source)


def _open_output(
    writer: RecordWriter,
    output: Path,
    label_sets: Sequence[LabelSet],
    run: Mapping[str, Any],
    rows: Sequence[InputRow],
    id_column: str,
    text_columns: Sequence[str],
    *,
    overwrite: bool,
) -> None:
    """Open the output with all that its rows depend on; ``run`` are the settings that are not a classifier's."""
    first, *others = label_sets
    settings = {
        **first.classifier.fingerprint(),
        "names": first.names,
        "also": [each.classifier.fingerprint() for each in others],
        **run,
        "--columns": writer.added,
    }
    writer.open(output, settings, rows, id_column, text_columns, overwrite=overwrite)


def _check_output(options: ClassifyOptions, file: str | None, output: Path | None, *, overwrite: bool) -> None:
    """Refuse to write over a file that is read from, or that zicl did not write, before anything is loaded."""
    if output is None:
        return
    from zicl.inputs.output import check_output_path, check_resumable

    check_output_path(output, [Path(each) for each in (file, options.fit, options.gold) if each is not None])
    if not overwrite:
        check_resumable(output)


def _check_spread(options: ClassifyOptions, choice: ClusterChoice | None) -> None:
    """Check what a cluster would cost, and that there is something to search where workers are to search."""
    if choice is None:
        return
    check_cost(options)
    if choice.searchers and not options.asks_lm():
        raise UsageError(
            f"--on …,searchers={choice.searchers}: {options.saved or options.method or 'z-icl+'} searches no corpus "
            "for the texts",
            hint="leave it out, or show demonstrations: --method z-icl",
        )


def _check_columns(
    options: ClassifyOptions, top: int | None, kinds: Sequence[str] | None, output: Path | None, *, json_output: bool
) -> None:
    """Refuse columns that nothing would be written to, and more labels than there are, before anything is loaded."""
    tabular = output is None and not json_output
    if tabular and (options.also or kinds):
        raise UsageError(
            f"{'--columns' if kinds else '--also'} is about columns, and the table has none for them",
            hint="write a file with -o, or --json",
        )
    if top is None:
        return
    if kinds:
        raise UsageError("--top adds columns, and --columns names others", hint="give one of them")
    if options.labels is not None:
        count = len(options.parsed_labels(options.labels)) + (options.resolved().decision.none is not None)
        if top > count:
            raise UsageError(f"--top {top}: there are {count} labels", hint=f"at most --top {count}")


def _check_one_set(options: ClassifyOptions, given: Mapping[str, Any]) -> None:
    """Refuse what is for one set of labels where there are several."""
    unused = [name for name, value in given.items() if value is not None]
    if options.also and unused:
        raise UsageError(f"{unused[0]} is for one set of labels", hint="leave it out, or leave out --also")


def _note_unused_corpus(options: ClassifyOptions, classifier: ZICLClassifier | DistilledClassifier) -> None:
    if _has_ensemble(classifier) and options.corpus is not None and classifier.index_ is None:
        print_status(
            f"{classifier.method_} takes the encoder of {options.corpus} and shows no demonstrations: "
            "--method z-icl does"
        )


def _in_order(classifier: ZICLClassifier, rows: list[InputRow]) -> list[InputRow]:
    """Return rows that share demonstrations together, where some do; those without a text come last then."""
    filled = [row for row in rows if not row.empty]
    order = classifier.order([row.text for row in filled])
    if order == list(range(len(filled))):
        return rows
    return [filled[n] for n in order] + [row for row in rows if row.empty]


def _has_ensemble(classifier: ZICLClassifier | DistilledClassifier) -> TypeGuard[ZICLClassifier]:
    from zicl.classifier import ZICLClassifier

    return isinstance(classifier, ZICLClassifier)


def _check_rows(
    classifier: ZICLClassifier | DistilledClassifier,
    rows: Sequence[InputRow],
    added: Sequence[str],
    given: Mapping[str, str | None],
) -> None:
    """Refuse options that a distilled classifier has no use for, and inputs with the columns of the output."""
    unused = [name for name, value in given.items() if value is not None]
    if unused and not _has_ensemble(classifier):
        raise UsageError(f"{unused[0]}: a distilled classifier has one set of labels", hint="leave it out")
    if not _has_ensemble(classifier) and classifier.of_pairs not in (None, isinstance(rows[0].text, Pair)):
        raise UsageError(
            "the classifier was distilled from "
            + ("pairs, and these are single texts" if classifier.of_pairs else "single texts, and these are pairs"),
            hint="name the second text's column with --pair-column"
            if classifier.of_pairs
            else "leave out --pair-column",
        )
    _check_columns_free(rows, added)


def _check_columns_free(rows: Sequence[InputRow], added: Sequence[str]) -> None:
    """Refuse an input with columns that are added to it."""
    clash = sorted({name for row in rows for name in row.columns} & set(added))
    if clash:
        raise UsageError(
            f"the input has columns that the output needs: {', '.join(clash)}", hint="rename them in the input"
        )


def _check_row_options(
    classifier: ZICLClassifier | DistilledClassifier, rows: Sequence[InputRow], file: str | None
) -> None:
    """Check every row's own labels before the first row is scored, so that an error names the row."""
    from zicl.inputs.files import display_name
    from zicl.inputs.tables import row_name

    for number, row in enumerate(rows, start=1):
        if row.options:
            classifier.labels_.among(row.options, row_name(display_name(file or "-"), number))


def _workers(
    options: ClassifierOptions,
    classifier: ZICLClassifier | DistilledClassifier,
    cluster: Cluster | None,
    choice: ClusterChoice | None,
) -> AbstractContextManager[WorkerPool | None]:
    if cluster is None or choice is None:
        return nullcontext()
    return classification_workers(options, cluster, classifier, choice.searchers)


# -- classifying, chunk by chunk -------------------------------------------------------------------------


def _chunks(
    classifier: ZICLClassifier | DistilledClassifier, rows: Sequence[InputRow], writer: RecordWriter
) -> list[Sequence[InputRow]]:
    """Return the rows that are left to do, in chunks."""
    asks_lm = _has_ensemble(classifier) and classifier.lm_ is not None
    size = _CHUNK if asks_lm else _CHUNK_ENCODED
    pieces = (writer.pending(rows[n : n + size]) for n in range(0, len(rows), size))
    return [piece for piece in pieces if piece]


def _classify_chunks(
    label_sets: Sequence[LabelSet],
    chunks: Sequence[Sequence[InputRow]],
    writer: RecordWriter,
    review_below: float | None,
    pool: WorkerPool | None,
) -> Iterator[SummaryLine]:
    # Rows without a text are written with their chunk, and not classified.
    filled = [[row for row in chunk if not row.empty] for chunk in chunks]
    started, finished, total = time.monotonic(), 0, sum(map(len, filled))
    cuts = _cuts(label_sets[0].classifier)
    with progress_bars() as report:
        report("classifying", 0, total)
        predicted = _predict(label_sets[0].classifier, [chunk for chunk in filled if chunk], report, total, pool)
        for chunk, texts in zip(chunks, filled, strict=True):
            predictions = next(predicted) if texts else ()
            finished += len(texts)
            others = _predict_others(label_sets, [row.text for row in texts]) if texts else []
            by_row = zip(predictions, *others, strict=True)
            values = ({} if row.empty else added_values(next(by_row), label_sets, review_below) for row in chunk)
            writer.write(chunk, list(values))
            if finished == len(texts) and total > finished:
                print_status(rate(finished, time.monotonic() - started, total - finished))
            report("classifying", finished, total)
            pairs = zip(texts, predictions, strict=True)
            yield from (SummaryLine.of(row, p, cut=cuts(str(row.text))) for row, p in pairs)
            yield from (SummaryLine.of_empty(row) for row in chunk if row.empty)


def _cuts(classifier: ZICLClassifier | DistilledClassifier) -> Callable[[str], bool]:
    """Return what says whether the classifier's encoder reads only the beginning of a text."""
    from zicl.apps.distill.classifier import DistilledClassifier
    from zicl.retrieve.encoder import cuts

    if isinstance(classifier, DistilledClassifier):
        return partial(cuts, classifier.encoder)
    expert = classifier.ensemble_.encoder_expert
    return (lambda _: False) if expert is None else expert.cuts


def _predict(
    classifier: ZICLClassifier | DistilledClassifier,
    chunks: Sequence[Sequence[InputRow]],
    report: ProgressReport,
    total: int,
    pool: WorkerPool | None,
) -> Iterator[Sequence[Prediction | DistilledPrediction]]:
    if pool is None:
        return _predict_here(classifier, chunks, report, total)
    from zicl.apps.cluster.classify import classify_on

    return iter(classify_on(pool, classifier, map(_texts_and_options, chunks)))


def _predict_here(
    classifier: ZICLClassifier | DistilledClassifier,
    chunks: Sequence[Sequence[InputRow]],
    report: ProgressReport,
    total: int,
) -> Iterator[Sequence[Prediction | DistilledPrediction]]:
    """Yield the predictions of each chunk, computed in this process."""
    finished = 0
    for chunk in chunks:
        texts, options = _texts_and_options(chunk)
        advance = _advance(report, finished, total)
        finished += len(chunk)
        if _has_ensemble(classifier):
            yield classifier.classify(texts, advance, options=options)
        else:
            yield classifier.classify(texts, advance)


def _predict_others(
    label_sets: Sequence[LabelSet], texts: Sequence[Text]
) -> list[Sequence[Prediction | DistilledPrediction]]:
    """Return the predictions of all sets but the first, from the vectors of the first: texts are encoded once."""
    first, *others = (each.classifier for each in label_sets)
    if not (others and _has_ensemble(first) and first.ensemble_.encoder_expert):
        return [other.classify(texts) for other in others]
    stripped = [text.strip() for text in texts]
    vectors = dict(zip(stripped, first.ensemble_.encoder_expert.text_vectors(stripped), strict=True))
    # A distilled classifier is the only set of labels.
    return [other.ensemble_.with_known(vectors).run(texts) for other in cast("list[ZICLClassifier]", others)]


def _texts_and_options(chunk: Sequence[InputRow]) -> tuple[list[Text], list[tuple[str, ...]] | None]:
    return [row.text for row in chunk], [row.options for row in chunk] if chunk[0].options else None


def _advance(report: ProgressReport, done: int, total: int) -> Callable[[int], None]:
    """Return a callback that moves the bar by the number of rows it is given."""

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report("classifying", done, total)

    return advance
