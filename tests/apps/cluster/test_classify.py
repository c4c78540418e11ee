"""A classifier sent to workers predicts the same as the original."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.apps.cluster.local_workers import LocalWorkers
from tests.conftest import DOCUMENTS
from tests.score.test_learn import LABELS, PILE
from zicl import Labels, Pile, Retrieval, ZICLClassifier
from zicl.apps.cluster.classify import ClassifyWorker, ClusterFit, PortableClassifier, classify_on
from zicl.apps.cluster.pool import WorkerPool
from zicl.apps.cluster.worker import WorkerSetup
from zicl.apps.distill.classifier import DistilledClassifier
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.exceptions import ClusterError
from zicl.retrieve.builder import build_index
from zicl.retrieve.encoder import load_encoder
from zicl.score.pile import Linear


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
    packed = PortableClassifier.of(classifier, offline=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    setup = WorkerSetup(torch.get_num_threads(), offline=True)
    with WorkerPool(LocalWorkers(ClassifyWorker, (packed, setup), lost=(2,)), 2) as pool:
        scores = [result.scores for results in classify_on(pool, classifier, chunks) for result in results]
    assert scores == expected


def test_another_model_on_a_worker_is_an_error(classifier):
    packed = PortableClassifier.of(classifier, offline=True)
    other = replace(packed, fingerprint={**packed.fingerprint, "lm": "another"})
    with pytest.raises(ClusterError, match="differs on this machine of the cluster in: lm"):
        other.unpack()


# -- fitting, and predicting without a language model ---------------------------------------------------------


@contextmanager
def local_pool(classifier, lost=()):
    packed, setup = PortableClassifier.of(classifier, offline=True), WorkerSetup(torch.get_num_threads(), offline=True)
    with WorkerPool(LocalWorkers(ClassifyWorker, (packed, setup), lost), 2) as pool:
        yield pool


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a function that changes to an empty home, where no answer is stored."""

    def change(name):
        monkeypatch.setenv("ZICL_HOME", str(tmp_path / name))

    change("home")
    return change


# An untrained model may say the same of every text.
@pytest.mark.filterwarnings("ignore::zicl.exceptions.PileWarning")
@pytest.mark.parametrize("lm_expert", ["direct", "prompt"])
def test_a_fit_and_its_predictions_are_the_same_when_workers_are_lost(lm_folder, encoder_folder, home, lm_expert):
    texts = [f"{text} On day {n} {text.lower()}" for n in range(5) for text in PILE]
    pile = Pile(method="mixture", lm_rows=40, lm_expert=lm_expert)
    retrieval = Retrieval(k=2) if lm_expert == "prompt" else None
    settings = {"encoder": str(encoder_folder), "pile": pile, "retrieval": retrieval, "offline": True}
    made = ZICLClassifier(labels=LABELS, lm=str(lm_folder), **settings).fit(texts)
    # Many texts of the second chunk were not fitted on.
    chunks = [(texts[:200], None), ([*texts[200:], *DOCUMENTS], None)]
    expected = [result.scores for some, _ in chunks for result in made.classify(some)]
    home("another")
    stages = []

    def start(classifier):
        stages.append("lm" if classifier.lm_ else "encoder")
        return local_pool(classifier, lost=(2,))

    spread = ZICLClassifier(labels=LABELS, lm=str(lm_folder), **settings).fit(texts, compute=ClusterFit(start, 2))
    assert stages == ["encoder", "lm"]
    assert spread.fitted_.pile.source == made.fitted_.pile.source
    np.testing.assert_array_equal(spread.fitted_.pile.linear.weights, made.fitted_.pile.linear.weights)
    with local_pool(spread, lost=(2,)) as pool:
        scores = [result.scores for results in classify_on(pool, spread, chunks) for result in results]
    assert scores == expected


def test_a_distilled_classifier_is_sent_to_workers_too(encoder_folder):
    generator, encoder = np.random.default_rng(0), load_encoder(str(encoder_folder))
    linear = Linear(generator.normal(size=(2, encoder.dimension)), generator.normal(size=2))
    classifier = DistilledClassifier(linear, Labels.of(LABELS), encoder).fit()
    with local_pool(classifier) as pool:
        (predictions,) = classify_on(pool, classifier, [(DOCUMENTS, None)])
    assert predictions == classifier.classify(DOCUMENTS)
