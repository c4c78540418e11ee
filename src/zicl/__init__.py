"""zicl: turn raw, unlabelled text and a list of labels into a text classifier, with any causal language model.

>>> import zicl
>>> clf = zicl.ZICLClassifier("reviews.zicl", labels=["terrible", "great"]).fit()  # doctest: +SKIP
>>> clf.predict(["A film of rare warmth."])                                        # doctest: +SKIP
array(['great'], dtype=object)

The folders, in the order in which data flows: inputs · corpus · retrieve · prompt · lm · score; then lab (the paper's
evaluation), apps (what is built on a classifier) and cli. docs/explanation/architecture.md has the map.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zicl._util.process import __version__

# Public names, each with the module that has it; heavy modules are imported on first use.
_PUBLIC = {
    # classify
    "ZICLClassifier": "zicl.classifier",
    "load": "zicl.classifier",
    "Explanation": "zicl.explanation",
    "Prediction": "zicl.score.results",
    "Pair": "zicl.inputs.pair",
    "Label": "zicl.prompt.labels",
    "Labels": "zicl.prompt.labels",
    "ZICLError": "zicl.exceptions",
    # settings
    "Calibration": "zicl.config",
    "Labelling": "zicl.config",
    "Pile": "zicl.config",
    "PromptSettings": "zicl.config",
    "Retrieval": "zicl.config",
    "Scoring": "zicl.config",
    # corpora
    "Corpus": "zicl.corpus.store",
    "Index": "zicl.retrieve.index",
    "build_corpus": "zicl.corpus.builder",
    "build_index": "zicl.retrieve.builder",
    "find_sources": "zicl.corpus.sources",
    "load_encoder": "zicl.retrieve.encoder",
    # a retriever of your own
    "CandidateFilter": "zicl.retrieve.strategies.base",
    "Query": "zicl.retrieve.strategies.base",
    "Retrieved": "zicl.retrieve.strategies.base",
    "Retriever": "zicl.retrieve.strategies.base",
    # a language model of your own, or behind a server
    "LanguageModel": "zicl.lm.base",
    "RemoteSettings": "zicl.lm.remote.settings",
    "load_lm": "zicl.lm.load",
    # what is built on a classifier
    "DistilledClassifier": "zicl.apps.distill.classifier",
    "distill": "zicl.apps.distill.run",
    "export": "zicl.apps.export.run",
    "suggest": "zicl.apps.suggest.run",
}
__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from zicl.apps.distill.classifier import DistilledClassifier
    from zicl.apps.distill.run import distill
    from zicl.apps.export.run import export
    from zicl.apps.suggest.run import suggest
    from zicl.classifier import ZICLClassifier, load
    from zicl.config import Calibration, Labelling, Pile, PromptSettings, Retrieval, Scoring
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.sources import find_sources
    from zicl.corpus.store import Corpus
    from zicl.exceptions import ZICLError
    from zicl.explanation import Explanation
    from zicl.inputs.pair import Pair
    from zicl.lm.base import LanguageModel
    from zicl.lm.load import load_lm
    from zicl.lm.remote.settings import RemoteSettings
    from zicl.prompt.labels import Label, Labels
    from zicl.retrieve.builder import build_index
    from zicl.retrieve.encoder import load_encoder
    from zicl.retrieve.index import Index
    from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, Retriever
    from zicl.score.results import Prediction


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'zicl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
