"""All studies by name, the most telling first; each is imported when it is asked for."""

from __future__ import annotations

from zicl._registry import Registry
from zicl.study.declare import Study

ALL = "reproduce"
# In the order in which they are run together.
NAMES = ("copying", "labels", "retrieval", "heads", "coverage", "corpus-size", "format", "order")
STUDIES = Registry(
    "study",
    {
        "copying": "zicl.study.copying:STUDY",
        "labels": "zicl.study.labels:STUDY",
        "retrieval": "zicl.study.retrieval:STUDY",
        "heads": "zicl.study.heads.study:STUDY",
        "coverage": "zicl.study.coverage:STUDY",
        "corpus-size": "zicl.study.corpus_size:STUDY",
        "format": "zicl.study.format:STUDY",
        "order": "zicl.study.order:STUDY",
    },
)


def get_studies(name: str) -> list[Study]:
    """A study by name, or all of them."""
    if name == ALL:
        return [STUDIES.get(each) for each in NAMES]
    return [STUDIES.get(name)]
