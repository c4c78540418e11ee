"""Classify texts on workers that each hold the classifier."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zicl.apps.cluster.pool import WorkerCall, WorkerPool
from zicl.apps.cluster.worker import IndexLocation, WorkerSetup, model_path
from zicl.classifier import ZICLClassifier, load
from zicl.exceptions import ClusterError
from zicl.inputs.pair import Text
from zicl.lm.base import LanguageModel
from zicl.retrieve.index import Index
from zicl.retrieve.search import RemoteSearch
from zicl.score.results import Prediction

_FOLDER = "classifier"

# Texts, and the options of each if they differ from text to text.
TextChunk = tuple[Sequence[Text], Sequence[tuple[str, ...]] | None]


@dataclass(frozen=True)
class PortableClassifier:
    """A fitted classifier as it is sent to workers: its saved files, and where its corpus and model are."""

    files: dict[str, bytes]
    index: IndexLocation | None
    lm: str
    fingerprint: dict[str, Any]
    offline: bool

    @classmethod
    def of(cls, classifier: ZICLClassifier) -> PortableClassifier:
        """Pack a classifier."""
        lm = model_path(classifier.prompting().lm.name)
        with tempfile.TemporaryDirectory() as folder:
            saved = classifier.save(Path(folder) / _FOLDER)
            files = {path.name: path.read_bytes() for path in sorted(saved.iterdir())}
        index = classifier.index_
        location = IndexLocation.of(index) if isinstance(index, Index) else None
        return cls(files, location, lm, classifier.fingerprint(), classifier.offline)

    def unpack(self, lm: LanguageModel | None = None, remote: RemoteSearch | None = None) -> ZICLClassifier:
        """Load the classifier again, and check that its fingerprint is the same."""
        index = None if self.index is None else self.index.open(remote, offline=self.offline)
        with tempfile.TemporaryDirectory() as folder:
            # As deep as where it was saved: paths in it are relative.
            saved = Path(folder) / _FOLDER
            saved.mkdir()
            for name, content in self.files.items():
                (saved / name).write_bytes(content)
            classifier = load(saved, index=index, lm=lm or self.lm, offline=self.offline)
        assert isinstance(classifier, ZICLClassifier)
        different = [name for name, value in classifier.fingerprint().items() if value != self.fingerprint[name]]
        if different:
            raise ClusterError(
                f"the classifier differs on this machine of the cluster in: {', '.join(different)}",
                hint="put the same models and the same corpus on all machines",
            )
        return classifier


class ClassifyWorker:
    """Classify texts in another process."""

    def __init__(
        self,
        packed: PortableClassifier,
        setup: WorkerSetup,
        open_lm: Callable[[], LanguageModel] | None = None,
        remote: RemoteSearch | None = None,
    ) -> None:
        self._packed, self._setup, self._open_lm, self._remote = packed, setup, open_lm, remote

    def load(self) -> None:
        """Load the classifier."""
        self._setup.apply()
        self._classifier = self._packed.unpack(self._open_lm and self._open_lm(), self._remote)

    def classify(self, chunk: TextChunk) -> list[Prediction]:
        """Return the predictions of a chunk of texts."""
        texts, options = chunk
        return self._classifier.classify(texts, options=options)


def classify_on(pool: WorkerPool, chunks: Iterable[TextChunk]) -> Iterator[list[Prediction]]:
    """Yield the predictions of every chunk, in order."""
    return pool.run_in_order(WorkerCall("classify", chunk) for chunk in chunks)
