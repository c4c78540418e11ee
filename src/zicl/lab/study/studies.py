"""All studies by name, the most telling first; each is imported when it is asked for."""

from __future__ import annotations

from zicl._util.registry import Registry
from zicl.lab.study.base import Study

ALL = "reproduce"
# In the order in which they are run together.
NAMES = ("copying", "labels", "retrieval", "heads", "coverage", "corpus-size", "format", "order")
STUDIES = Registry(
    "study",
    {
        "copying": "zicl.lab.study.copying:STUDY",
        "labels": "zicl.lab.study.labels:STUDY",
        "retrieval": "zicl.lab.study.retrieval:STUDY",
        "heads": "zicl.lab.study.heads:STUDY",
        "coverage": "zicl.lab.study.coverage:STUDY",
        "corpus-size": "zicl.lab.study.corpus_size:STUDY",
        "format": "zicl.lab.study.format:STUDY",
        "order": "zicl.lab.study.order:STUDY",
    },
)


def get_studies(name: str) -> list[Study]:
    """A study by name, or all of them."""
    if name == ALL:
        return [STUDIES.get(each) for each in NAMES]
    return [STUDIES.get(name)]
