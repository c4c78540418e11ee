"""zicl classify: texts in, labels out."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl.cli._options import Choice, JsonOption, takes_choice
from zicl.cli._progress import bars, say
from zicl.exceptions import StorageError, UsageError

if TYPE_CHECKING:
    from zicl._progress import Report
    from zicl.classify import ZICLClassifier
    from zicl.results import Result
    from zicl.rows import Output, Row

# Rows are scored and written in these groups, counted from the file's first row: a resumed run forms the same ones.
_CHUNK = 16
_LEAST_CERTAIN = 5
_COLUMNS = {"label", "probability", "margin", "demonstrations", "input_cut"}


@takes_choice
def classify(
    choice: Choice,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; or - to read them from standard input, a line each.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="A .csv, .jsonl, .parquet or .txt file of texts.")
    ] = None,
    text_column: Annotated[str, typer.Option(help="The column that holds the text.")] = "text",
    id_column: Annotated[
        str | None, typer.Option(help="The column that names a row. [id, else the row's number]")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv or .jsonl file; one that is partly done is finished."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin the output file anew.")] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Save the classifier to this folder, for --with.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Label texts; the most likely label, all probabilities, and what was least certain."""
    if save is not None and save.exists():
        raise StorageError(f"{save} exists already", hint="choose another name for --save, or remove it")
    rows = _rows(texts, file, text_column, id_column)
    _check_columns(rows)
    say(f"{len(rows):,} row{'s' if len(rows) != 1 else ''} to label")
    with bars() as report:
        report("loading the models", 0, None)
        classifier = choice.classifier()
    if classifier.pipeline_.labeler is not None:
        shown = ", ".join(
            f"{name} as {' / '.join(words)}" for name, words in classifier.pipeline_.labeler.words.items()
        )
        say(f"demonstrations show {shown}")
    if save is not None:
        classifier.save(save)
        say(f"saved as {save}")
    target = _output(output, classifier, id_column or "id", overwrite)
    results = list(_run(classifier, rows, target, json_output=json_output))
    if target is None and not json_output:
        _table(results)
    _ending(results)


def _rows(texts: list[str] | None, file: str | None, text_column: str, id_column: str | None) -> list[Row]:
    from zicl.rows import Row, read_rows
    from zicl.texts import check_text

    if file is not None and texts:
        raise UsageError("texts and --file were both given", hint="give one of them")
    if file is not None:
        return read_rows(file, text_column=text_column, id_column=id_column)
    if texts and texts != ["-"]:
        return [
            Row(str(n), check_text(text, f"text {n}"), {"id": str(n), "text": text})
            for n, text in enumerate(texts, start=1)
        ]
    if not texts and sys.stdin.isatty():
        raise UsageError(
            "no text was given", hint="zicl classify 'some text' …, --file texts.csv, or - for standard input"
        )
    return read_rows("-")


def _check_columns(rows: Sequence[Row]) -> None:
    """The output keeps the input's columns and adds its own: no two may have one name."""
    clash = sorted({name for row in rows for name in row.columns} & _COLUMNS)
    if clash:
        raise UsageError(
            f"the input has columns that the output needs: {', '.join(clash)}", hint="rename them in the input"
        )


def _output(path: Path | None, classifier: ZICLClassifier, id_column: str, overwrite: bool) -> Output | None:
    from zicl.rows import Output

    if path is None:
        return None
    index = classifier.index_
    settings = {
        "labels": classifier.labels_.to_toml(),
        "lm": classifier.lm_.identity,
        "corpus": getattr(index, "identity", None),
        "seed": classifier.seed,
        **{name: value.model_dump(mode="json") for name, value in classifier.settings_.items()},
    }
    target = Output(path, settings, id_column, overwrite=overwrite)
    if target.done:
        say(f"{len(target.done):,} rows are in {path} already and stay as they are")
    return target


def _run(
    classifier: ZICLClassifier, rows: Sequence[Row], target: Output | None, *, json_output: bool
) -> Iterator[tuple[Row, Result]]:
    done = target.done if target else set[str]()
    left = sum(row.id not in done for row in rows)
    begun, finished = time.monotonic(), 0
    with bars() as report:
        for start in range(0, len(rows), _CHUNK):
            chunk = [row for row in rows[start : start + _CHUNK] if row.id not in done]
            if not chunk:
                continue
            report("classifying", finished, left)
            results = classifier.classify([row.text for row in chunk], _advance(report, finished, left))
            finished += len(chunk)
            records = [_record(row, result) for row, result in zip(chunk, results, strict=True)]
            if target:
                target.write(records)
            if json_output:
                typer.echo("\n".join(json.dumps(record, ensure_ascii=False) for record in records))
            if finished == len(chunk) and left > finished:
                each = (time.monotonic() - begun) / finished
                say(f"{each:.2f} s a row on this machine: about {_duration(each * (left - finished))} for the rest")
            report("classifying", finished, left)
            yield from zip(chunk, results, strict=True)


def _advance(report: Report, done: int, total: int) -> Callable[[int], None]:
    """A callback that moves the bar on by the number of rows it is given."""
    moved = done

    def advance(count: int) -> None:
        nonlocal moved
        moved += count
        report("classifying", moved, total)

    return advance


def _record(row: Row, result: Result) -> dict[str, Any]:
    prompt = result.prepared.prompt
    record: dict[str, Any] = dict(row.columns)
    record |= {
        "label": result.label,
        "probability": round(result.probabilities[result.label], 6),
        "margin": round(result.margin, 6),
    }
    for score in result.scores:
        record[f"p:{score.label}"] = round(result.probabilities[score.label], 6)
    for score in result.scores:
        record[f"log_likelihood:{score.label}"] = round(score.log_likelihood, 5)
        record[f"tokens:{score.label}"] = score.tokens
    return record | {"demonstrations": prompt.kept, "input_cut": prompt.input_cut}


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} seconds"
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def _table(results: Sequence[tuple[Row, Result]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = [score.label for score in results[0][1].scores]
    table = Table("text", "label", *names)
    for row, result in results:
        text = row.text if len(row.text) <= 100 else row.text[:99] + "…"
        table.add_row(Text(text), Text(result.label, style="bold"), *(f"{result.probabilities[n]:.1%}" for n in names))
    Console(highlight=False).print(table)


def _ending(results: Sequence[tuple[Row, Result]]) -> None:
    if not results:
        say("nothing was left to do")
        return
    counts = Counter(result.label for _, result in results)
    names = [score.label for score in results[0][1].scores]
    say("shares: " + ", ".join(f"{name} {counts[name] / len(results):.1%}" for name in names))
    cut = sum(result.prepared.prompt.input_cut for _, result in results)
    if cut:
        say(f"{cut:,} texts were longer than the token limit and were cut")
    if len(results) > _LEAST_CERTAIN:
        say("least certain:")
        for row, result in sorted(results, key=lambda pair: pair[1].margin)[:_LEAST_CERTAIN]:
            say(f"  {row.id}: {result.label} {result.probabilities[result.label]:.1%}  {row.text[:80]}")
