"""Read the rows of .parquet, .arrow and .feather files, few at a time, and write .parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zicl.exceptions import TextError, first_line
from zicl.inputs.files import check_names, display_name, record_limit, too_long

_ROWS = 256
# Seconds from 1970, about thirty thousand years: later, Arrow's own text of a time is wrong.
_LAST_SECOND = 900_000_000_000
_KINDS = {"parquet": "Parquet", "arrow": "Arrow"}


def arrow_rows(
    path: str, kind: str = "parquet", columns: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the values of every row of a file of this kind, all columns or some; few rows at a time.

    If one of ``columns`` is missing, rows have all: whoever needs it can say which there are.
    """
    import pyarrow as pa

    name, number, longest = display_name(path), 0, record_limit()
    try:
        for batch in (_parquet_batches if kind == "parquet" else _ipc_batches)(path, name, columns):
            if batch.nbytes > longest:
                _check_lengths(batch, name, number, longest)
            values = {column: _values(batch.column(n), column, name) for n, column in enumerate(batch.schema.names)}
            for row in range(batch.num_rows):
                number += 1
                yield number, {column: each[row] for column, each in values.items()}
    except TextError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, KeyError) as error:
        raise TextError(
            f"{name} is not a valid {_KINDS[kind]} file: {first_line(error)}",
            hint="it may be truncated or misnamed: fetch it again",
        ) from error


def _parquet_batches(path: str, name: str, columns: Sequence[str] | None) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _check_columns(file.schema_arrow, name)
        yield from file.iter_batches(_ROWS, columns=_there(columns, file.schema_arrow.names))


def _ipc_batches(path: str, name: str, columns: Sequence[str] | None) -> Iterator[Any]:
    """Yield the batches of a file of the one or the other form: pandas and polars write files, ``datasets`` streams."""
    import pyarrow as pa

    with pa.memory_map(path) as source:
        try:
            reader = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            reader = pa.ipc.open_stream(source)
        _check_columns(reader.schema, name)
        wanted = _there(columns, reader.schema.names)
        batches = (
            (reader.get_batch(number) for number in range(reader.num_record_batches))
            if isinstance(reader, pa.RecordBatchFileReader)
            else iter(reader)
        )
        for batch in batches:
            batch.validate(full=True)
            part = batch if wanted is None else batch.select(wanted)
            yield from (part.slice(start, _ROWS) for start in range(0, part.num_rows, _ROWS))


def _check_columns(schema: Any, name: str) -> None:
    """Check that columns differ in name, and that one can hold values: without any, a few bytes claim endless rows."""
    import pyarrow as pa

    check_names(schema.names, name)
    if all(pa.types.is_null(column.type) for column in schema):
        raise TextError(
            f"{name} has no column with values", hint="write it again, with the texts in a column of strings"
        )


def _there(columns: Sequence[str] | None, names: Sequence[str]) -> list[str] | None:
    """Return the columns to read; None for all of them."""
    return list(columns) if columns and set(columns) <= set(names) else None


def _check_lengths(batch: Any, name: str, before: int, longest: int) -> None:
    for row in range(batch.num_rows):
        if sum(map(_size, batch.slice(row, 1).columns)) > longest:
            raise too_long(f"{name}, row {before + row + 1}")


def _size(values: Any) -> int:
    """Return how many bytes values have; of a dictionary, only the entries that they name count."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        return _size(values.dictionary_decode())
    if pa.types.is_struct(values.type):
        return sum(map(_size, values.flatten()))
    return _size(values.flatten()) if isinstance(values, pa.ListArray | pa.LargeListArray) else int(values.nbytes)


def _values(values: Any, column: str, name: str) -> list[Any]:
    """Return the values of a column; a date or a time that Python has no number for is its text."""
    import pyarrow as pa

    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:
        # The file is damaged.
        raise
    except (ValueError, OverflowError, KeyError):
        try:
            return [_text_of_time(value) for value in values]
        except (pa.ArrowException, ValueError, OverflowError, KeyError) as error:
            raise TextError(
                f"{name}: the column {column!r} has values of the type {values.type!s:.100} that cannot be read: "
                f"{first_line(error)}",
                hint="give it another type where the file is made, such as string, or leave the column out there",
            ) from error


def _text_of_time(value: Any) -> Any:
    import pyarrow as pa

    try:
        return value.as_py()
    except (ValueError, OverflowError, KeyError):
        if not (pa.types.is_date(value.type) or pa.types.is_timestamp(value.type)):
            raise
        if abs(value.cast(pa.timestamp("s"), safe=False).value) > _LAST_SECOND:
            raise
        return value.cast(pa.string()).as_py()


def check_parquet_fits(rows: Sequence[Mapping[str, Any]]) -> None:
    """Check that every column has values of one type, which Parquet has: a .parquet file holds no others."""
    for name in dict.fromkeys(name for row in rows for name in row):
        _column(name, [row.get(name) for row in rows])


def write_parquet(path: Path, columns: Sequence[str], records: Sequence[Mapping[str, Any]]) -> None:
    """Write records as a .parquet file; the types of its columns are those of the values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: _column(name, [row.get(name) for row in records]) for name in columns}), path)


def _column(name: str, values: list[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        column = pa.array(values)
        # Not every type of Arrow is one of Parquet: only writing it tells.
        pq.write_table(pa.table({name: column[:0]}), pa.BufferOutputStream())
    except (pa.ArrowException, OverflowError) as error:
        raise TextError(
            f"the column {name!r} cannot be written as Parquet: its values, and what lists hold, have to be of one "
            f"type that Parquet has ({first_line(error)})",
            hint="write .csv or .jsonl, leave the column out, or give it one type: "
            "a map is read as lists of a key and a value",
        ) from error
    return column
