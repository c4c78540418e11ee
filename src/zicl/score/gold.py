"""Read y: the labels of some texts, with gaps; one label per text, or with ``multi`` any number."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

from zicl.config import Decision
from zicl.exceptions import LabelError, PileWarning, UsageError
from zicl.inputs.pair import Text
from zicl.prompt.labels import Labels


def read_labels_of_texts(
    texts: Sequence[Text] | None, y: Iterable[Any], labels: Labels, decision: Decision
) -> dict[Text, tuple[str, ...]]:
    """Return the labels that ``y`` knows, by text; a text with two different ones counts as unknown, with a warning.

    With ``multi`` a value of ``y`` is a set or list of labels, labels joined by ``|``, or a row of scikit-learn's
    indicator matrix, whose columns are the labels in alphabetical order.
    """
    names = [*labels.names, *filter(None, [decision.none])]
    values = [_labels_of(value, names, multi=decision.multi) for value in y]
    if unknown := sorted({repr(name) for value in values for name in value if name not in names}):
        raise LabelError(
            f"y holds values that are no label: {', '.join(unknown[:5])}",
            hint=f"the labels are: {', '.join(names)}; None, NaN or -1 where a label is not known",
        )
    if texts is None:
        if any(values):
            raise UsageError("labels were given without texts", hint="fit(texts, labels), one label per text")
        return {}
    if len(values) != len(texts):
        raise UsageError(f"{len(texts)} texts were given, and {len(values)} labels", hint="give one label per text")
    gold: dict[Text, tuple[str, ...]] = {}
    contradictory: dict[Text, int] = {}
    for row, (text, value) in enumerate(zip(texts, values, strict=True)):
        if value and gold.setdefault(text.strip(), value) != value:
            contradictory.setdefault(text.strip(), row)
    if contradictory:
        warnings.warn(
            f"y contradicts itself: {len(contradictory)} text{'s have' if len(contradictory) > 1 else ' has'} two "
            f"different labels (row {min(contradictory.values())} is one), and count as unlabelled",
            PileWarning,
            stacklevel=3,
        )
    return {text: label for text, label in gold.items() if text not in contradictory}


def _labels_of(value: Any, names: Sequence[str], *, multi: bool) -> tuple[Any, ...]:
    """Return the labels that a value of ``y`` names, in the order of the labels; none where it is a gap."""
    given: Sequence[Any]
    if not multi:
        given = () if _is_gap(value, names) else (str(value) if value in names else value,)
    elif isinstance(value, str):
        given = () if _is_gap(value, names) else [part.strip() for part in value.split("|")]
    elif not isinstance(value, Iterable):
        given = () if _is_gap(value, names) else (value,)
    else:
        given = list(value)
        if len(given) == len(names) and all(isinstance(cell, Real) for cell in given):
            given = [name for name, cell in zip(sorted(names), given, strict=True) if cell == 1]
    places = {name: number for number, name in enumerate(names)}
    return tuple(sorted(given, key=lambda name: places.get(name, len(names))))


def _is_gap(value: Any, names: Sequence[str]) -> bool:
    """Return whether a value of ``y`` says that the label is not known: None, NaN, -1, or an empty text."""
    if isinstance(value, str):
        # An array that holds text beside -1 holds it as text.
        return value not in names and value in ("", "-1", "nan", "None")
    # pandas' missing value is neither equal nor unequal to anything.
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, Real) and _is_no_label(value))


def _is_no_label(value: Real) -> bool:
    return math.isnan(value) or value == -1
