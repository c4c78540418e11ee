"""What both classifiers are to scikit-learn: estimators of texts, not of tables of numbers."""

from __future__ import annotations

from typing import Any

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
