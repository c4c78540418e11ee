"""Read y: the labels of some texts, with gaps; one label per text, or with ``multi`` any number."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

from zicl._util.counts import counted
from zicl.config import Decision
from zicl.exceptions import LabelError, PileWarning, UsageError
from zicl.inputs.pair import Text
from zicl.inputs.texts import column_values, is_table
from zicl.prompt.labels import Labels, split_labels


def read_labels_of_texts(
    texts: Sequence[Text] | None, y: Iterable[Any], labels: Labels, decision: Decision
) -> dict[Text, tuple[str, ...]]:
    """Return the labels that ``y`` knows, by text; a text with two different ones counts as unknown, with a warning.

    With ``multi`` a value of ``y`` is a set or list of labels, labels joined by ``|``, or a row of scikit-learn's
    indicator matrix, whose columns are the labels in alphabetical order. An empty one, ``-`` or a row of zeros says
    that the text has no label.
    """
    names = [*labels.names, *filter(None, [decision.none])]
    if is_table(y) and not (decision.multi and hasattr(y, "to_numpy")):
        raise LabelError("y is a table where a column of labels was expected", hint='name the column: df["label"]')
    rows = _rows(y) if decision.multi else column_values(y)
    values = [(_several if decision.multi else _one)(value, names) for value in rows]
    if unknown := sorted({repr(name) for value in values for name in value or () if name not in names}):
        raise LabelError(
            f"y holds values that are no label: {', '.join(unknown[:5])}",
            hint=f"the labels are: {', '.join(names)}; None, NaN or -1 where a label is not known",
        )
    if texts is None:
        if any(value is not None for value in values):
            raise UsageError("labels were given without texts", hint="fit(texts, labels), one label per text")
        return {}
    if len(values) != len(texts):
        raise UsageError(
            f"{counted(len(texts), 'text was', 'texts were')} given, and {counted(len(values), 'label')}",
            hint="give one label per text",
        )
    gold: dict[Text, tuple[str, ...]] = {}
    contradictory: dict[Text, int] = {}
    for row, (text, value) in enumerate(zip(texts, values, strict=True)):
        if value is not None and gold.setdefault(text.strip(), value) != value:
            contradictory.setdefault(text.strip(), row)
    if contradictory:
        warnings.warn(
            f"y contradicts itself: {len(contradictory)} text{'s have' if len(contradictory) > 1 else ' has'} two "
            f"different labels (row {min(contradictory.values())} is one), and count as unlabelled",
            PileWarning,
            stacklevel=3,
        )
    return {text: label for text, label in gold.items() if text not in contradictory}


def _one(value: Any, names: Sequence[str]) -> tuple[Any, ...] | None:
    """Return the label that a value of ``y`` names, or None where it is a gap."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        raise LabelError(f"y holds {value!r} for one text", hint="give one label per text; several: `multi=True`")
    return None if _is_gap(value, names) else (value,)


def _rows(y: Any) -> Iterable[Any]:
    """Return the rows of a sparse matrix, a data frame or an array; anything else as it is."""
    y = column_values(y)
    for convert in ("toarray", "to_numpy", "tolist"):
        if hasattr(y, convert):
            y = getattr(y, convert)()
    rows: Iterable[Any] = y
    return rows


def _several(value: Any, names: Sequence[str]) -> tuple[Any, ...] | None:
    """Return the labels that a value of ``y`` names, in the order of the labels, or None where it is a gap."""
    given: tuple[Any, ...]
    if isinstance(value, str) or not isinstance(value, Iterable):
        if _is_gap(value, names):
            return None
        given = split_labels(value, multi=True) if isinstance(value, str) else (value,)
    else:
        given = tuple(value)
        if given and all(isinstance(cell, Real) for cell in given):
            return _indicated(given, names)
    return tuple(name for name in names if name in given) + tuple(name for name in given if name not in names)


def _indicated(row: Sequence[Real], names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels of a row of an indicator matrix; one of -1 or NaN is a gap."""
    if all(_is_no_label(cell) for cell in row):
        return None
    if len(row) != len(names) or any(cell not in (0, 1) for cell in row):
        raise LabelError(
            f"y holds the row {list(row)!r}",
            hint=f"{len(names)} numbers, 0 or 1 for each of: {', '.join(sorted(names))}",
        )
    chosen = {name for name, cell in zip(sorted(names), row, strict=True) if cell}
    return tuple(name for name in names if name in chosen)


def _is_gap(value: Any, names: Sequence[str]) -> bool:
    """Return whether a value of ``y`` says that the label is not known: None, NaN, -1, or an empty text."""
    if isinstance(value, str):
        # An array that holds text beside -1 holds it as text.
        return value not in names and value in ("", "-1", "nan", "None")
    # pandas' missing value is neither equal nor unequal to anything.
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, Real) and _is_no_label(value))
    )


def _is_no_label(value: Real) -> bool:
    return math.isnan(value) or value == -1
