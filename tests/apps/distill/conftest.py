"""A tiny teacher and a classifier distilled from it; and the command line's fixtures."""

import pytest

from tests.cli.conftest import corpus, options
from tests.conftest import DOCUMENTS
from zicl import ZICLClassifier
from zicl.apps.distill.run import distill
from zicl.config import Retrieval

__all__ = ["corpus", "options"]

SENTENCES = [f"{sentence.strip()}." for text in DOCUMENTS for sentence in text.split(".") if sentence.strip()]


@pytest.fixture
def teacher(index, lm):
    return ZICLClassifier(index, ["terrible", "great", "odd"], lm, method="naive", retrieval=Retrieval(k=2)).fit()


@pytest.fixture
def made(teacher):
    return distill(teacher, [*SENTENCES, SENTENCES[0] + " "], sample=20)
