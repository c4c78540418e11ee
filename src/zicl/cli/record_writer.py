"""Write labelled rows to a file, as JSON to standard output, or both, each with its columns; resume a file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zicl._util.counts import counted
from zicl.cli.console import print_json_lines, print_status
from zicl.inputs.output import OutputFile, to_json

if TYPE_CHECKING:
    from zicl.cli.output_columns import LabelSet
    from zicl.inputs.tables import InputRow


@dataclass
class RecordWriter:
    """Where records go, and which of the columns that zicl can add: a file has those a person asks for, JSON all.

    ``added`` are the columns of the file, ``printed`` those of JSON, if it is wanted. A new .csv file that is
    ``marked`` begins with a byte-order mark.
    """

    added: list[str]
    printed: list[str] | None
    marked: bool = False
    file: OutputFile | None = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        label_sets: Sequence[LabelSet],
        kinds: Collection[str] | None,
        *,
        review: bool,
        json_output: bool,
        marked: bool = False,
    ) -> RecordWriter:
        """Return the writer for these sets of labels and kinds of columns (None: the usual ones)."""
        added = [name for each in label_sets for name in each.written(kinds, review=review)]
        known = [name for each in label_sets for name in each.columns]
        printed = (known if kinds is None else added) if json_output else None
        return cls(added, printed, marked)

    @property
    def columns(self) -> list[str]:
        """All columns that are added to some record."""
        return [*self.added, *(self.printed or ())]

    def open(
        self,
        path: Path,
        settings: dict[str, Any],
        rows: Sequence[InputRow],
        id_column: str,
        text_columns: Sequence[str],
        *,
        overwrite: bool,
    ) -> None:
        """Open the file, which has the columns of the ``rows`` and those that are added; resume an unfinished one."""
        columns = [*dict.fromkeys(name for row in rows for name in row.columns), *self.added]
        self.file = OutputFile(
            path,
            settings,
            columns,
            id_column=id_column,
            text_columns=text_columns,
            marked=self.marked,
            overwrite=overwrite,
        )
        if self.file.truncated:
            print_status(
                f"removed after the last complete chunk: {counted(self.file.truncated, 'byte')} of an interrupted write"
            )
        if self.file.done:
            print_status(f"{counted(len(self.file.done), 'row is', 'rows are')} in {path} already, and not changed")

    def pending(self, rows: Sequence[InputRow]) -> Sequence[InputRow]:
        """Return the rows that are not in the file yet."""
        return rows if self.file is None else self.file.pending(rows)

    def write(self, rows: Sequence[InputRow], values: Sequence[Mapping[str, Any]]) -> None:
        """Write a chunk of rows with the columns of the input, and after them those of ``values`` that are wanted."""
        pairs = list(zip(rows, values, strict=True))
        if self.file is not None:
            self.file.write([_record(row, found, self.added) for row, found in pairs])
        if self.printed is not None:
            print_json_lines(to_json(_record(row, found, self.printed)) for row, found in pairs)

    @contextmanager
    def finishing(self, total: int) -> Iterator[None]:
        """Finish the file after the block; after an error say what is in it, and how to label the rest."""
        try:
            yield
            if self.file is not None:
                self.file.finish()
        except Exception:
            if self.file is not None and self.file.done:
                done = len(self.file.done)
                rest = "labels the rest" if done < total else f"makes {self.file.path} of them"
                print_status(f"{self.file.rows_path} has {done:,} of {counted(total, 'row')}: the same command {rest}")
            raise


def _record(row: InputRow, values: Mapping[str, Any], added: Collection[str]) -> dict[str, Any]:
    return {**row.columns, **{name: values.get(name) for name in added}}
