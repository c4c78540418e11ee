"""All studies by name. Each is imported when it is first used, so that this table costs nothing to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zicl._util.registry import Registry

if TYPE_CHECKING:
    from zicl.lab.study.base import Study

# One line per study, in the order in which ``zicl study reproduce`` runs them.
_TABLE = {
    "copying": "zicl.lab.study.copying:STUDY",
    "labels": "zicl.lab.study.labels:STUDY",
    "closeness": "zicl.lab.study.closeness:STUDY",
    "retrieval": "zicl.lab.study.retrieval:STUDY",
    "heads": "zicl.lab.study.heads:STUDY",
    "coverage": "zicl.lab.study.coverage:STUDY",
    "corpus-size": "zicl.lab.study.corpus_size:STUDY",
    "format": "zicl.lab.study.format:STUDY",
    "order": "zicl.lab.study.order:STUDY",
}
STUDIES = Registry("study", _TABLE)
NAMES = tuple(_TABLE)
ALL = "reproduce"


def get_studies(name: str) -> list[Study]:
    """Return the study of this name, or all of them for ``reproduce``."""
    return [STUDIES.get(each) for each in (NAMES if name == ALL else (name,))]
