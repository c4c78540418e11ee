"""What both classifiers are to scikit-learn: estimators of texts, not of tables of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


class TextClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that takes a list of texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.requires_fit = True
        return tags


def one_of_two(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """A decision function as scikit-learn's scorers take it: for two classes one number, positive for the second.

    >>> one_of_two(np.array([[1.0, 3.0]])).tolist()
    [2.0]
    """
    return columns[:, 1] - columns[:, 0] if columns.shape[1] == 2 else columns
