"""A classifier sent to workers predicts the same as the original."""

from dataclasses import replace

import pytest
import torch

from tests.apps.cluster.local_workers import LocalWorkers
from tests.conftest import DOCUMENTS
from zicl import ZICLClassifier
from zicl.apps.cluster.classify import ClassifyWorker, PortableClassifier, classify_on
from zicl.apps.cluster.pool import WorkerPool
from zicl.apps.cluster.worker import WorkerSetup
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.exceptions import ClusterError
from zicl.retrieve.builder import build_index
from zicl.retrieve.encoder import load_encoder


@pytest.fixture
def classifier(tmp_path, jsonl, lm_folder, encoder_folder, monkeypatch):
    # Relative names, as a user in that folder would give them: workers run in other folders.
    monkeypatch.chdir(encoder_folder.parent)
    corpus = build_corpus(find_sources([jsonl]), tmp_path / "raw.zicl")
    build_index(corpus, load_encoder(encoder_folder.name))
    labels = {"terrible": ["bad"], "great": ["good"]}
    settings = {"calibrate": "batch", "seed": 3, "offline": True}
    return ZICLClassifier(str(tmp_path / "raw.zicl"), labels, str(lm_folder), **{"method": "z-icl", **settings}).fit(
        DOCUMENTS[:4]
    )


def test_predictions_are_the_same_and_in_order(classifier, tmp_path, monkeypatch):
    chunks = [(DOCUMENTS[start : start + 2], None) for start in range(0, 8, 2)]
    expected = [result.scores for texts, _ in chunks for result in classifier.classify(texts)]
    packed = PortableClassifier.of(classifier)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    setup = WorkerSetup(torch.get_num_threads(), offline=True)
    with WorkerPool(LocalWorkers(ClassifyWorker, (packed, setup), lost=(2,)), 2) as pool:
        scores = [result.scores for results in classify_on(pool, chunks) for result in results]
    assert scores == expected


def test_another_model_on_a_worker_is_an_error(classifier):
    packed = PortableClassifier.of(classifier)
    other = replace(packed, fingerprint={**packed.fingerprint, "lm": "another"})
    with pytest.raises(ClusterError, match="differs on this machine of the cluster in: lm"):
        other.unpack()
