"""Classify texts, and fit a classifier, on workers that each hold the classifier."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zicl.apps.cluster.pool import WorkerCall, WorkerPool
from zicl.apps.cluster.worker import IndexLocation, WorkerSetup, model_path
from zicl.apps.distill.classifier import DistilledClassifier, DistilledPrediction
from zicl.classifier import ZICLClassifier, load
from zicl.exceptions import ClusterError
from zicl.inputs.pair import Text
from zicl.lm.base import LanguageModel
from zicl.retrieve.index import Index
from zicl.retrieve.search import RemoteSearch
from zicl.score.experts import Vectors
from zicl.score.results import Prediction

_FOLDER = "classifier"

Classifier = ZICLClassifier | DistilledClassifier
Predictions = Sequence[Prediction | DistilledPrediction]
# Texts, and the options of each if they differ from text to text.
TextChunk = tuple[Sequence[Text], Sequence[tuple[str, ...]] | None]
# The same, and the vectors of those texts that the classifier was fitted on.
_KnownChunk = tuple[Sequence[Text], Sequence[tuple[str, ...]] | None, Mapping[Text, Vectors]]


@dataclass(frozen=True)
class PortableClassifier:
    """A fitted classifier as it is sent to workers: its saved files, and where its corpus and models are."""

    files: dict[str, bytes]
    index: IndexLocation | None
    lm: str | None
    encoder: str | None
    fingerprint: dict[str, Any]
    offline: bool

    @classmethod
    def of(cls, classifier: Classifier, *, offline: bool = False) -> PortableClassifier:
        """Pack a classifier."""
        with tempfile.TemporaryDirectory() as folder:
            saved = classifier.save(Path(folder) / _FOLDER)
            files = {path.name: path.read_bytes() for path in sorted(saved.iterdir())}
        fingerprint = classifier.fingerprint()
        if isinstance(classifier, DistilledClassifier):
            return cls(files, None, None, model_path(classifier.encoder.name), fingerprint, offline)
        index, lm, expert = classifier.index_, classifier.lm_, classifier.ensemble_.encoder_expert
        return cls(
            files,
            IndexLocation.of(index) if isinstance(index, Index) else None,
            None if lm is None else model_path(lm.name),
            None if expert is None else model_path(expert.encoder),
            fingerprint,
            offline,
        )

    def unpack(self, lm: LanguageModel | None = None, remote: RemoteSearch | None = None) -> Classifier:
        """Load the classifier again, and check that its fingerprint is the same."""
        index = None if self.index is None else self.index.open(remote, offline=self.offline)
        with tempfile.TemporaryDirectory() as folder:
            # As deep as where it was saved: paths in it are relative.
            saved = Path(folder) / _FOLDER
            saved.mkdir()
            for name, content in self.files.items():
                (saved / name).write_bytes(content)
            classifier = load(saved, index=index, lm=lm or self.lm, encoder=self.encoder, offline=self.offline)
        assert isinstance(classifier, Classifier)
        different = [name for name, value in classifier.fingerprint().items() if value != self.fingerprint[name]]
        if different:
            raise ClusterError(
                f"the classifier differs on this machine of the cluster in: {', '.join(different)}",
                hint="put the same models and the same corpus on all machines",
            )
        return classifier


class ClassifyWorker:
    """Classify and encode texts in another process."""

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

    def classify(self, chunk: _KnownChunk) -> Predictions:
        """Return the predictions of a chunk of texts."""
        texts, options, known = chunk
        if isinstance(self._classifier, DistilledClassifier):
            return self._classifier.classify(texts)
        return self._classifier.ensemble_.with_known(known).run(texts, options=options)

    def encode(self, texts: Sequence[Text]) -> Vectors:
        """Return the vectors of a group of texts."""
        assert isinstance(self._classifier, ZICLClassifier)
        return self._classifier.ensemble_.embed(texts)


def classify_on(pool: WorkerPool, classifier: Classifier, chunks: Iterable[TextChunk]) -> Iterator[Predictions]:
    """Yield the predictions of every chunk, in order; workers hold the classifier without the texts of its fit."""
    return pool.run_in_order(WorkerCall("classify", (*chunk, _known(classifier, chunk[0]))) for chunk in chunks)


def _known(classifier: Classifier, texts: Sequence[Text]) -> dict[Text, Vectors]:
    expert = None if isinstance(classifier, DistilledClassifier) else classifier.ensemble_.encoder_expert
    return {} if expert is None else expert.known_vectors(text.strip() for text in texts)


@dataclass(frozen=True)
class ClusterFit:
    """Do the slow steps of a fit on ``workers`` workers, which ``start`` starts with a classifier for each step."""

    start: Callable[[ZICLClassifier], AbstractContextManager[WorkerPool]]
    workers: int

    def encode(self, classifier: ZICLClassifier, groups: Sequence[Sequence[Text]]) -> Iterator[Vectors]:
        """Yield the vectors of each group."""
        with self.start(classifier) as pool:
            yield from pool.run_in_order(WorkerCall("encode", group) for group in groups)

    def ask(self, classifier: ZICLClassifier, groups: Sequence[Sequence[Text]]) -> Iterator[list[Prediction]]:
        """Yield the predictions for each group."""
        if groups:
            with self.start(classifier) as pool:
                yield from pool.run_in_order(WorkerCall("classify", (group, None, {})) for group in groups)
