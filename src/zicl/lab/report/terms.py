"""The scores of stored rows as one array, whichever of the columns they stand in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl.exceptions import StorageError
from zicl.score.calibration import Scores

SCORES = ("log_likelihoods", "tokens", "values", "terms")
_HINT = "the rows are damaged or mixed from two runs; run the evaluation again with another output"


def term_values(rows: Any, labels: int, reduce: str, where: str) -> Scores:
    """What each term gave, (terms, rows, labels), for the rows of one cell and seed.

    Where nothing was joined the only term is what was compared: ``values`` if inputs without content were taken
    off, else the log-likelihoods, a sum or a mean over tokens. Rows of earlier versions have only these. Where texts
    have options of their own, a text with fewer than there are labels has minus infinity for the rest.
    """
    for name in ("terms", "values"):
        column = rows[name]
        if 0 < column.null_count < len(column):
            raise StorageError(f"{where}: some rows have {name} and others have none", hint=_HINT)
        if not column.null_count:
            return _checked(_cube(column, labels, f"{where}: {name}"), where)
    found = _cube(rows["log_likelihoods"], labels, f"{where}: log_likelihoods")
    if reduce == "mean" and _lengths(rows["tokens"]).any():
        # Controls have scores without tokens: there is nothing to divide by.
        found = found / _cube(rows["tokens"], labels, f"{where}: tokens", absent=1)
    return _checked(found, where)


def _cube(column: Any, labels: int, where: str, absent: float = -np.inf) -> Scores:
    """A column of lists, or of lists of lists, filled up to one size."""
    rows, array = len(column), column.combine_chunks()
    nested = hasattr(array.type.value_type, "value_type")
    counts, inner = (_lengths(array), array.flatten()) if nested else (np.ones(rows, np.int64), array)
    lengths = _lengths(inner)
    if len(set(counts.tolist())) > 1 or lengths.min() < 1 or lengths.max() > labels:
        raise StorageError(
            f"{where} do not hold, in every row, a number for each of its options, at most {labels}", hint=_HINT
        )
    filled = np.full((len(lengths), labels), absent, dtype=np.float64)
    filled[np.arange(labels) < lengths[:, None]] = inner.flatten().to_numpy(zero_copy_only=False)
    return np.moveaxis(filled.reshape(rows, int(counts[0]), labels), 1, 0)


def _lengths(array: Any) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(array), 0).to_numpy(), dtype=np.int64)


def _checked(scores: Scores, where: str) -> Scores:
    if np.isnan(scores).any():
        raise StorageError(
            f"{where}: a score is not a number, so the prediction means nothing",
            hint="run the evaluation again with another output and scoring = { dtype = 'float32' }",
        )
    return scores
