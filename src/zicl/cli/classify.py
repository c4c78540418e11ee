"""zicl classify: texts in, labels out."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import typer

from zicl.cli._options import Choice, JsonOption, takes
from zicl.cli._progress import bars, pace, say
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl._progress import Report
    from zicl.classify import ZICLClassifier
    from zicl.distill.answer import Answer
    from zicl.distill.classifier import DistilledClassifier
    from zicl.results import Result
    from zicl.rows import Output, Row

# Rows are scored and written in these groups, counted from the file's first row: a resumed run forms the same ones.
# Without a language model they are larger: texts of one length are encoded together.
_CHUNK, _CHUNK_DISTILLED = 16, 1024
_LEAST_CERTAIN = 5
# Margins below which a person might want to look, and the number of rows from which their shares say something.
_EDGES, _ENOUGH = (0.05, 0.1, 0.2, 0.4), 20


@takes(Choice)
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
        str | None, typer.Option(help="The column that names a row. [id, else made from the text]")
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
    json_output: JsonOption = False,
) -> None:
    """Label texts; the most likely label, all probabilities, and what was least certain."""
    from zicl.rows import Output

    rows = _rows(texts, file, text_column, id_column)
    say(f"{len(rows):,} row{'s' if len(rows) != 1 else ''} to label")
    with bars() as report:
        report("loading the models", 0, None)
        classifier = choice.any_classifier((lambda: [row.text for row in rows]) if file else None, report)
    added = _columns(classifier.labels_.names, raw=_has_lm(classifier))
    _check_columns(rows, added)
    if _has_lm(classifier):
        _say_fitted(classifier, choice.fit or file)
        _say_shown(classifier)
    if save is not None:
        classifier.save(save)
        say(f"saved as {save}")
    target = None
    if output is not None:
        columns = list(dict.fromkeys(name for row in rows for name in row.columns)) + added
        target = Output(output, _settings(classifier, review_below), columns, id_column or "id", overwrite=overwrite)
        if target.cut:
            say(f"{target.cut:,} bytes behind the last whole chunk were cut off: an interrupted write")
        if target.done:
            say(f"{len(target.done):,} rows are in {output} already and stay as they are")
    lines = list(_run(classifier, rows, target, review_below, json_output=json_output))
    if target is None and not json_output:
        _table(lines, review_below)
    _ending(lines, review_below)


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
    return read_rows("-", text_column=text_column, id_column=id_column)


def _has_lm(classifier: ZICLClassifier | DistilledClassifier) -> TypeGuard[ZICLClassifier]:
    from zicl.classify import ZICLClassifier

    return isinstance(classifier, ZICLClassifier)


def _check_columns(rows: Sequence[Row], added: Sequence[str]) -> None:
    """The output keeps the input's columns and adds its own: no two may have one name."""
    clash = sorted({name for row in rows for name in row.columns} & set(added))
    if clash:
        raise UsageError(
            f"the input has columns that the output needs: {', '.join(clash)}", hint="rename them in the input"
        )


def _columns(names: Sequence[str], *, raw: bool) -> list[str]:
    """The columns the output adds; ``raw`` ones come from a prompt and its scores, which only a language model has."""
    columns = ["predicted", "review", "probability", "margin", *(f"p:{name}" for name in names)]
    if not raw:
        return columns
    scores = [f"{kind}:{name}" for name in names for kind in ("log_likelihood", "tokens")]
    return [*columns, *scores, "demonstrations", "input_cut"]


def _say_fitted(classifier: ZICLClassifier, source: str | None) -> None:
    """What was learned, and from what: nobody should have to guess it."""
    for term, shares in classifier.fitted_.priors.items():
        told = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        say(f"any text gets ({term}): {told}; taken off every score" + (f", fitted on {source}" if source else ""))
    if middles := classifier.fitted_.middles:
        say(f"{len(middles):,} sets of demonstrations" + (f", fitted on {source}" if source else ""))


def _say_shown(classifier: ZICLClassifier) -> None:
    """The words that stand for the labels in the demonstrations."""
    if classifier.pipeline_.labeler is not None:
        words = classifier.pipeline_.labeler.words
        say("demonstrations show " + ", ".join(f"{name} as {' / '.join(shown)}" for name, shown in words.items()))


def _settings(classifier: ZICLClassifier | DistilledClassifier, review_below: float | None) -> dict[str, Any]:
    """What an output file's rows depend on."""
    from zicl.artefact import depends_on

    own = depends_on(classifier) if _has_lm(classifier) else classifier.depends_on()
    return {**own, "review_below": review_below}


@dataclass(frozen=True)
class _Line:
    """What the summary needs of a result: prompts of a long file would fill the memory."""

    id: str
    text: str
    label: str
    probabilities: Mapping[str, float]
    margin: float
    cut: bool


def _run(
    classifier: ZICLClassifier | DistilledClassifier,
    rows: Sequence[Row],
    target: Output | None,
    review_below: float | None,
    *,
    json_output: bool,
) -> Iterator[_Line]:
    from zicl.rows import to_json

    done = target.done if target else set[str]()
    left = sum(row.id not in done for row in rows)
    begun, finished = time.monotonic(), 0
    size = _CHUNK if _has_lm(classifier) else _CHUNK_DISTILLED
    with bars() as report:
        for start in range(0, len(rows), size):
            chunk = [row for row in rows[start : start + size] if row.id not in done]
            if not chunk:
                continue
            report("classifying", finished, left)
            texts, advance = [row.text for row in chunk], _advance(report, finished, left)
            results: Sequence[Result | Answer] = classifier.classify(texts, advance)
            finished += len(chunk)
            records = [_record(row, result, review_below) for row, result in zip(chunk, results, strict=True)]
            if target:
                target.write(records)
            if json_output:
                typer.echo("\n".join(to_json(record) for record in records))
            if finished == len(chunk) and left > finished:
                say(pace(finished, time.monotonic() - begun, left - finished))
            report("classifying", finished, left)
            for row, record, result in zip(chunk, records, results, strict=True):
                cut = bool(record.get("input_cut"))
                yield _Line(row.id, row.text[:120], result.label, result.probabilities, result.margin, cut)


def _advance(report: Report, done: int, total: int) -> Callable[[int], None]:
    """A callback that moves the bar on by the number of rows it is given."""
    moved = done

    def advance(count: int) -> None:
        nonlocal moved
        moved += count
        report("classifying", moved, total)

    return advance


def _record(row: Row, result: Result | Answer, review_below: float | None) -> dict[str, Any]:
    """A row of the output. One for a person to look at has no label, but all its probabilities."""
    from zicl.results import Result

    review = result.margin < (review_below or 0.0)
    values = [
        "" if review else result.label,
        review,
        round(result.probabilities[result.label], 6),
        round(result.margin, 6),
        *(round(share, 6) for share in result.probabilities.values()),
    ]
    if raw := isinstance(result, Result):
        values += [value for s in result.scores for value in (round(s.log_likelihood, 5), s.tokens)]
        values += [result.prepared.prompt.kept, result.prepared.prompt.input_cut]
    columns = _columns(list(result.probabilities), raw=raw)
    return {**row.columns, **dict(zip(columns, values, strict=True))}


def _table(lines: Sequence[_Line], review_below: float | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = list(lines[0].probabilities)
    table = Table("text", "label", *names)
    for line in lines:
        text = line.text if len(line.text) <= 100 else line.text[:99] + "…"
        shares = (f"{line.probabilities[name]:.1%}" for name in names)
        review = line.margin < (review_below or 0.0)
        table.add_row(Text(text), Text("to review" if review else line.label, style="bold"), *shares)
    Console(highlight=False).print(table)


def _ending(lines: Sequence[_Line], review_below: float | None) -> None:
    if not lines:
        say("nothing was left to do")
        return
    counts = Counter(line.label for line in lines)
    say("shares: " + ", ".join(f"{name} {counts[name] / len(lines):.1%}" for name in lines[0].probabilities))
    if review_below is not None or len(lines) >= _ENOUGH:
        left = {
            edge: sum(line.margin < edge for line in lines) for edge in sorted({*_EDGES, review_below or _EDGES[0]})
        }
        told = ", ".join(f"{count / len(lines):.1%} below {edge:g}" for edge, count in left.items())
        say(f"left to a person at a margin of: {told} (--review-below)")
    if cut := sum(line.cut for line in lines):
        say(f"{cut:,} texts were longer than the token limit and were cut")
    if len(lines) > _LEAST_CERTAIN:
        say("least certain:")
        for line in sorted(lines, key=lambda line: line.margin)[:_LEAST_CERTAIN]:
            say(f"  {line.id}: {line.label} {line.probabilities[line.label]:.1%}  {line.text[:80]}")
