"""zicl map: the texts of a labelled file in two dimensions, as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from zicl._util.counts import counted
from zicl.cli.console import print_json, print_status, progress_bars
from zicl.cli.options import JsonOption, OfflineOption
from zicl.cli.preflight import preflight
from zicl.exceptions import TextError, UsageError
from zicl.inputs.files import no_column
from zicl.inputs.tables import read_number

if TYPE_CHECKING:
    from zicl._util.progress import ProgressReport
    from zicl.apps.map.layout import Layout
    from zicl.apps.map.run import LabelledText
    from zicl.inputs.pair import Text
    from zicl.inputs.tables import InputRow
    from zicl.retrieve.encoder import Vectors

# The columns that zicl classify writes.
_LABELS = ("predicted", "labels")
# Fewer texts are drawn by PCA in any case.
_FEW = 15
_LAYOUTS = ("auto", "tsne", "pca")


def draw_map(
    file: Annotated[str, typer.Argument(help="What zicl classify -o wrote, or any file with texts and labels.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    text_column: Annotated[
        str | None, typer.Option(help="The column that holds the text. [that of zicl classify, or text]")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="The column that holds the label. [predicted, as zicl classify writes]")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="The column that names a row. [that of zicl classify, or id if there is one]")
    ] = None,
    layout: Annotated[str, typer.Option(help="tsne, pca, or auto: tsne where openTSNE is installed.")] = "auto",
    limit: Annotated[int, typer.Option(min=3, help="Draw a sample of a larger file.")] = 20_000,
    encoder: Annotated[str | None, typer.Option(help="The encoder that says which texts are similar.")] = None,
    seed: Annotated[int, typer.Option(help="Of the layout, and of the sample.")] = 0,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Draw labelled texts as a map in one HTML file: what is alike, what is unsure, what fits nothing."""
    preflight(file=file, page=output, maps=True, encoder=encoder)
    if layout not in _LAYOUTS:
        raise UsageError(f"--layout {layout} is not known", hint=f"expected {', '.join(_LAYOUTS)}")
    from zicl.inputs.output import OutputMetadata
    from zicl.inputs.tables import read_rows

    # How the file was labelled, if zicl classify did so.
    note = OutputMetadata.read(Path(file))
    read = read_rows(
        file,
        text_column=text_column or note.text,
        pair_column=note.pair if text_column is None else None,
        id_column=id_column or note.id,
        distinct=False,
        skip_empty=True,
    )
    filled = [row for row in read if not row.empty]
    if len(filled) < len(read):
        empty = len(read) - len(filled)
        print_status(f"without a text, and not on the map: {empty:,} of {counted(len(read), 'row')}")
    rows = _labelled(filled, file, label_column)
    from zicl.apps.map.run import make_map

    with progress_bars() as report:
        found = make_map(
            rows,
            partial(_embed, encoder, report, offline),
            layout=cast("Layout", layout),
            seed=seed,
            limit=limit,
            title=f"{Path(file).name}: {counted(len(rows), 'text')}",
            report=report,
        )
        found.save(output)
    if len(found.rows) < found.total:
        print_status(f"a sample of {len(found.rows):,} of {found.total:,} texts is drawn: --limit draws more")
    different = {row.text.strip() for row in found.rows}
    if found.layout == "pca" and layout == "auto" and len(different) >= _FEW:
        print_status("drawn by PCA: with openTSNE (pip install 'zicl[map]') neighbours in the picture are similar")
    shown = {"output": str(output), "texts": len(found.rows), "layout": found.layout, "outlying": sum(found.outlying)}
    if json_output:
        print_json(shown)
    print_status(f"{output}, {output.stat().st_size / 1e6:.1f} MB: open it in a browser")


def _embed(name: str | None, report: ProgressReport, offline: bool, texts: Sequence[Text]) -> Vectors:
    """Load the encoder, and return the vectors of texts."""
    import numpy as np

    from zicl.retrieve.embedding import encode_in_chunks
    from zicl.retrieve.encoder import DEFAULT_ENCODER, load_encoder

    report("loading the encoder", 0, None)
    encoder = load_encoder(name or DEFAULT_ENCODER, offline=offline)
    return np.concatenate(list(encode_in_chunks(encoder, texts, report)))


def _labelled(rows: list[InputRow], file: str, column: str | None) -> list[LabelledText]:
    from zicl.apps.map.run import LabelledText

    columns = rows[0].columns
    named = column or next((name for name in _LABELS if name in columns), None)
    if named is None or named not in columns:
        raise no_column(
            f"{file} has no column {column or _LABELS[0]!r}, which would hold the labels",
            column or _LABELS[0],
            columns,
            "label it first (zicl classify), or name it with --label-column",
        )
    return [
        LabelledText(
            row.id,
            row.text,
            # Rows for a person to review have no label.
            "" if row.columns.get(named) is None else str(row.columns[named]),
            _number(row.columns, "margin", file, row.id),
            _number(row.columns, "probability", file, row.id),
            _reasons(row.columns),
        )
        for row in rows
    ]


def _number(columns: Mapping[str, Any], name: str, file: str, row: str) -> float | None:
    value = columns.get(name)
    if value in (None, ""):
        return None
    found = read_number(value)
    if found is None:
        raise TextError(f"{file}, row {row}: {name} is {value!r}", hint="expected a number, as zicl classify writes")
    return found


def _reasons(columns: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the columns say of the label's origin: the likeliest labels, and each expert's first choice.

    Columns of these names that hold something else are a person's own.
    """
    likely: dict[str, float] = {}
    terms: dict[str, dict[str, float]] = {}
    for name, value in columns.items():
        kind, _, rest = name.partition(":")
        number = read_number(value)
        if number is None or not rest:
            continue
        if kind == "p":
            likely[rest] = number
        elif kind == "term" and ":" in rest:
            term, _, label = rest.partition(":")
            terms.setdefault(term, {})[label] = number
    best = sorted(likely.items(), key=lambda item: -item[1])[:3]
    lines = [", ".join(f"{label} {value:.0%}" for label, value in best)] if best else []
    return (*lines, *(f"{term} says {max(values, key=values.__getitem__)}" for term, values in terms.items()))
