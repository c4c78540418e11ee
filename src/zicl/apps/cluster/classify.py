"""Texts labelled by workers that each hold the classifier."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zicl.apps.cluster.connect import IndexLocation, WorkerSetup, model_path
from zicl.apps.cluster.pool import WorkerCall, WorkerPool
from zicl.classifier import ZICLClassifier, load
from zicl.exceptions import ClusterError
from zicl.inputs.pair import Text
from zicl.lm.base import LanguageModel
from zicl.retrieve.index import Index
from zicl.retrieve.search import RemoteSearch
from zicl.score.results import Prediction

Texts = tuple[Sequence[Text], Sequence[tuple[str, ...]] | None]


@dataclass(frozen=True)
class PortableClassifier:
    """A fitted classifier as it is sent to workers: its saved files, and where corpus and model are."""

    files: dict[str, str]
    index: IndexLocation | None
    lm: str
    fingerprint: dict[str, Any]
    offline: bool

    @classmethod
    def of(cls, classifier: ZICLClassifier) -> PortableClassifier:
        """Pack a classifier."""
        with tempfile.TemporaryDirectory() as folder:
            saved = classifier.save(Path(folder) / "classifier")
            files = {path.name: path.read_text(encoding="utf-8") for path in sorted(saved.iterdir())}
        index = classifier.index_
        place = IndexLocation.of(index) if isinstance(index, Index) else None
        return cls(files, place, model_path(classifier.lm_.name), classifier.fingerprint(), classifier.offline)

    def unpack(self, lm: LanguageModel | None = None, searched: RemoteSearch | None = None) -> ZICLClassifier:
        """The classifier, loaded anew; it must be the very same."""
        index = None if self.index is None else self.index.open(searched, offline=self.offline)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.files.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            found = load(
                folder,
                index=index,
                lm=lm or self.lm,
                offline=self.offline,
            )
        assert isinstance(found, ZICLClassifier)
        other = [name for name, value in found.fingerprint().items() if value != self.fingerprint[name]]
        if other:
            raise ClusterError(
                f"the classifier is another one on this machine of the cluster: {', '.join(other)}",
                hint="the same models and the same corpus have to be on all of them",
            )
        return found


class ClassifyWorker:
    """Labels texts in a process of its own."""

    def __init__(
        self,
        packed: PortableClassifier,
        conditions: WorkerSetup,
        open_lm: Callable[[], LanguageModel] | None = None,
        searched: RemoteSearch | None = None,
    ) -> None:
        self._packed, self._conditions, self._open_lm, self._searched = packed, conditions, open_lm, searched

    def ready(self) -> None:
        """Load the classifier."""
        self._conditions.keep()
        self._classifier = self._packed.unpack(self._open_lm and self._open_lm(), self._searched)

    def classify(self, texts: Texts) -> list[Prediction]:
        """The results of some texts, which may have labels of their own."""
        return self._classifier.classify(texts[0], options=texts[1])


def classify_on(pool: WorkerPool, pieces: Iterable[Texts]) -> Iterator[list[Prediction]]:
    """The results of every piece, in order."""
    return pool.in_order(WorkerCall("classify", piece) for piece in pieces)
