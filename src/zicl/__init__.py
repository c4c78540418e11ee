"""zicl: raw, unlabelled text and a list of labels make a text classifier, with any causal language model.

>>> import zicl
>>> clf = zicl.ZICLClassifier("reviews.zicl", labels=["terrible", "great"]).fit()  # doctest: +SKIP
>>> clf.predict(["A film of rare warmth."])                                        # doctest: +SKIP
array(['great'], dtype=object)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zicl._util.process import __version__

# Public names, each with the module that has it; heavy modules are imported on first use.
_PUBLIC = {
    "Calibration": "zicl.config",
    "Corpus": "zicl.corpus.store",
    "Explanation": "zicl.explanation",
    "Label": "zicl.prompt.labels",
    "Labelling": "zicl.config",
    "Labels": "zicl.prompt.labels",
    "PromptSettings": "zicl.config",
    "Retrieval": "zicl.config",
    "Scoring": "zicl.config",
    "ZICLClassifier": "zicl.classifier",
    "ZICLError": "zicl.exceptions",
    "build_corpus": "zicl.corpus.builder",
    "build_index": "zicl.retrieve.builder",
    "load": "zicl.classifier",
}
__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from zicl.classifier import ZICLClassifier, load
    from zicl.config import Calibration, Labelling, PromptSettings, Retrieval, Scoring
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.store import Corpus
    from zicl.exceptions import ZICLError
    from zicl.explanation import Explanation
    from zicl.prompt.labels import Label, Labels
    from zicl.retrieve.builder import build_index


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'zicl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
