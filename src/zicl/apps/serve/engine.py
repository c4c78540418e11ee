"""The loaded classifier with all that the routes ask of it; made once, in the worker's thread."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from zicl._util.catalog import find_asset
from zicl._util.process import __version__, versions
from zicl.apps.serve import schema
from zicl.apps.serve.configurations import ClassifierCache, check_retriever, labels_of, templates
from zicl.apps.serve.jobs import ClassifyJob, Job, RetrieveJob, SynonymsJob, compute
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.problems import NOT_FOUND, RefusedError
from zicl.classifier import ZICLClassifier
from zicl.config import METHODS
from zicl.exceptions import UsageError, ZICLError
from zicl.lm.remote.settings import is_remote, parse_address
from zicl.retrieve.concat import ConcatIndex
from zicl.retrieve.index import Index
from zicl.retrieve.strategies.base import RETRIEVERS
from zicl.score.factory import make_retriever

# An index remembers its queries; a server that runs for months must forget them again.
_CACHED_TEXTS = 256
_PACKAGES = ("torch", "transformers", "sentence-transformers", "faiss-cpu", "numpy")


class Engine:
    """A classifier that serves. ``compute`` belongs to the worker's thread."""

    def __init__(self, classifier: ZICLClassifier, limits: RequestLimits) -> None:
        _check(classifier)
        self.classifier, self.limits = classifier, limits
        self.index = _index(classifier)
        self.configurations = ClassifierCache(classifier, self.index)
        # All that loads on first use is loaded now: the first client waits no longer than the others.
        if self.index is not None:
            next(self.index.nearest("a first question"), None)
        with suppress(ZICLError):
            # Without it there are no suggestions of synonyms; all else works.
            find_asset("wordnet", offline=classifier.offline)

    def compute(self, works: Sequence[Job]) -> list[Any]:
        """An answer or an exception for each work, the language model asked about all together."""
        outcomes = compute(works, self.classifier.lm_.score)
        for index in (self.index, self.classifier.index_):
            if isinstance(index, Index | ConcatIndex) and index.cached_texts > _CACHED_TEXTS:
                index.clear_cache()
        return outcomes

    # -- what clients ask for, checked and read; nothing is computed here ---------------------------------------

    def classify(self, asked: schema.ClassifyRequest) -> list[ClassifyJob]:
        """A work for each text."""
        self.limits.check_labels(asked.labels)
        if asked.k != self.configurations.own.settings.k:
            # Whoever runs the server may have it show more than others may ask for.
            self.limits.check_k(asked.k)
        single = asked.text is not None
        texts = [self.limits.check_text(asked.all_texts[0])] if single else self.limits.check_texts(asked.all_texts)
        configuration = self.configurations.read(asked)
        return [ClassifyJob(self.configurations, text, configuration, asked.explain) for text in texts]

    def retrieve(self, asked: schema.RetrieveRequest) -> RetrieveJob:
        """The work of finding sentences."""
        self.limits.check_k(asked.k)
        own = self.configurations.own.settings
        method = asked.method or (own.retrieval if own.k else "physical")
        check_retriever(method)
        settings = self.classifier.settings_.retrieval.model_copy(update={"method": method})
        return RetrieveJob(
            self._corpus(),
            make_retriever(settings),
            self.limits.check_text(asked.text),
            method,
            k=asked.k or min(own.k or 16, self.limits.k),
            seed=own.seed if asked.seed is None else asked.seed,
        )

    def synonyms(self, asked: schema.SynonymsRequest) -> SynonymsJob:
        """The work of finding synonyms."""
        self.limits.check_labels(asked.labels)
        encoder = None if self.index is None else self.index.encoder
        return SynonymsJob(labels_of(asked.labels), encoder, self.classifier.lm_)

    def paragraph(self, row: int) -> schema.ParagraphResponse:
        """The paragraph around a sentence."""
        corpus = self._corpus().corpus
        if not 0 <= row < len(corpus) or not (corpus.part.whole or corpus.used[row]):
            raise RefusedError(
                NOT_FOUND,
                "there is no such sentence",
                expected=f"a row from 0 to {len(corpus) - 1}",
                hint='take the "row" of a sentence from an answer of /v1/retrieve, or of /v1/classify with "explain"',
                field="row",
            )
        first, *rest = corpus.paragraph(row)
        sentences = [schema.ParagraphSentence(row=each.row, text=str(each.text)) for each in (first, *rest)]
        return schema.ParagraphResponse(row=row, document=first.document, domain=first.domain, sentences=sentences)

    def _corpus(self) -> Index:
        if self.index is None:
            raise RefusedError(
                NOT_FOUND, "this server has no corpus", hint="it was started without one: ask who runs it"
            )
        return self.index

    @cached_property
    def info(self) -> schema.InfoResponse:
        """What runs here."""
        lm = self.classifier.lm_
        return schema.InfoResponse(
            corpus=None if self.index is None else _corpus(self.index),
            encoder=None if self.index is None else _model(**_provenance(self.index.manifest["encoder"])),
            lm=_model(lm.name, lm.identity),
            versions={"zicl": __version__, "python": platform.python_version(), **versions(_PACKAGES)},
            settings=self.configurations.own.settings,
            limits=self.limits.info(),
            methods=[*METHODS],
            retrievals=RETRIEVERS.names(),
            inferences=["channel", "direct", "both"],
            templates={name: [template.input, template.label] for name, template in templates().items()},
        )


def _check(classifier: ZICLClassifier) -> None:
    if classifier.labels_.counted:
        raise UsageError("the server has no place for options of each text's own", hint="name the labels")
    if classifier.pipeline_.builder.template.two_fields:
        raise UsageError("the server takes single texts, and this classifier takes pairs", hint="use zicl classify")


def _index(classifier: ZICLClassifier) -> Index | None:
    """The corpus, also where the classifier's own method shows nothing of it."""
    if isinstance(classifier.index_, ConcatIndex):
        return classifier.index_.base
    if isinstance(classifier.index_, Index):
        return classifier.index_
    if classifier.index is None or isinstance(classifier.index, Index):
        return classifier.index
    return Index.open(classifier.index, offline=classifier.offline)


def _corpus(index: Index) -> schema.CorpusInfo:
    return schema.CorpusInfo(
        sentences=index.corpus.sentences,
        indexed=len(index.indexed()),
        documents=int(index.corpus.manifest["documents"]),
        domains=index.corpus.domains,
        hash=index.corpus.hash,
    )


def _provenance(encoder: dict[str, Any]) -> dict[str, str]:
    return {"name": encoder["name"], "identity": encoder["identity"]}


def _model(name: str, identity: str) -> schema.ModelInfo:
    """A model's name if it is a public one; a path of this machine, or the address of another, is not told."""
    if is_remote(name):
        return schema.ModelInfo(name=parse_address(name).model or "remote", identity=identity)
    local = name.startswith(("gguf:", ".", "~")) or Path(name).is_absolute() or Path(name).exists()
    return schema.ModelInfo(name="local" if local else name, identity=identity)
