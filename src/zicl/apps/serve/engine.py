"""The loaded classifier and everything the addresses need from it; made once, in the worker's thread."""

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
from zicl.apps.serve.configurations import (
    NO_LABELS,
    ClassifierCache,
    RequestedSettings,
    check_retriever,
    labels_of,
    text_templates,
)
from zicl.apps.serve.jobs import ClassifyJob, Job, RetrieveJob, SynonymsJob, compute
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.long_jobs import Embed, FitJob, MapJob
from zicl.apps.serve.problems import INVALID, NOT_FOUND, RefusedError
from zicl.classifier import ZICLClassifier
from zicl.config import DEFAULT_METHOD, METHODS, get_method
from zicl.exceptions import UsageError, ZICLError
from zicl.lm.base import LanguageModel
from zicl.lm.model_cache import cached_embedder, cached_encoder
from zicl.lm.remote.settings import is_remote, parse_address
from zicl.retrieve.concat import ConcatIndex
from zicl.retrieve.index import Index
from zicl.retrieve.strategies.base import RETRIEVERS
from zicl.score.factory import make_retriever

# An index caches its queries; a server that runs for months has to clear them.
_CACHED_TEXTS = 256
# A model on another machine is asked about this many texts at a time: it computes them side by side.
_REMOTE_GROUP = 16
_PACKAGES = ("torch", "transformers", "sentence-transformers", "onnxruntime", "faiss-cpu", "numpy")


class Engine:
    """A classifier for a server. ``compute`` runs in the worker's thread; the other methods only check and read."""

    def __init__(self, classifier: ZICLClassifier, limits: RequestLimits) -> None:
        if classifier.labels_.counted:
            raise UsageError("the server cannot take different options for each text", hint="name the labels")
        if classifier.pipeline_ is not None and classifier.pipeline_.builder.template.two_fields:
            raise UsageError("the server takes single texts, and this classifier takes pairs", hint="use zicl classify")
        self.classifier, self.limits = classifier, limits
        self.index = _open_index(classifier)
        self.configurations = ClassifierCache(classifier, self.index)
        # Load what is loaded on first use, so that the first client waits no longer than the others.
        if self.index is not None:
            next(self.index.nearest("a first question"), None)
        with suppress(ZICLError):
            # Without WordNet no synonyms can be suggested; everything else works.
            find_asset("wordnet", offline=classifier.offline)

    def compute(self, jobs: Sequence[Job]) -> list[Any]:
        """Return an answer or an exception for each job of a group; the language model scores its prompts together."""
        outcomes = compute(jobs, lambda prompts: self._lm().score(prompts))
        for index in (self.index, self.classifier.index_):
            if isinstance(index, Index | ConcatIndex) and index.cached_texts > _CACHED_TEXTS:
                index.clear_cache()
        return outcomes

    @property
    def group(self) -> int:
        """How many texts are computed together: one, so that its numbers depend on no other text."""
        lm = self.classifier.lm
        name = lm if isinstance(lm, str) else getattr(lm, "name", "")
        return _REMOTE_GROUP if is_remote(name) else 1

    def _lm(self) -> LanguageModel:
        """Return the language model; where the server's settings ask none, it is loaded by the first that needs it."""
        return self.configurations.lm

    def classify(self, request: schema.ClassifyRequest) -> list[ClassifyJob]:
        """Return one job per text."""
        if request.text is not None:
            texts = [self.limits.check_text(request.text)]
        else:
            texts = self.limits.check_texts(request.texts or [])
        settings = self._settings(request) if request.fit is None else _checked_fit(request, request.fit)
        return [ClassifyJob(self.configurations, text, settings, request.explain, request.top) for text in texts]

    def fit(self, request: schema.FitRequest) -> FitJob:
        """Return the job that learns from texts."""
        own = self.configurations.default.settings.method
        method = request.method or (own if _learns(own) else DEFAULT_METHOD)
        if method in METHODS and not _learns(method):
            raise RefusedError(
                INVALID,
                f"the method {method!r} learns nothing from texts",
                expected=f"{DEFAULT_METHOD}, or no method",
                hint="leave it out, or ask /v1/classify",
                field="method",
            )
        settings = self._settings(request.model_copy(update={"method": method}))
        return FitJob(self.configurations, self.limits.check_pile(request.texts), settings)

    def map(self, request: schema.MapRequest) -> MapJob:
        """Return the job that lays texts out."""
        return MapJob(self._embedder, self.limits.check_pile(request.texts))

    def _embedder(self) -> Embed:
        """Return what embeds texts as the classifier does: what it has encoded is not encoded again."""
        expert = self.classifier.ensemble_.encoder_expert
        if expert is not None:
            return expert.embed
        if self.index is not None:
            return cached_embedder(self.index.encoder)
        # A running server fetches nothing.
        return cached_embedder(cached_encoder(self.classifier.encoder, offline=True))

    def _settings(self, request: schema.ClassifierChoice) -> RequestedSettings:
        """Return the settings of a request, within the limits."""
        if request.labels is None and self.classifier.labels_ == NO_LABELS:
            raise RefusedError(
                INVALID,
                "no labels were given, and the server was started without any",
                expected="at least two labels",
                hint='name them, as in {"labels": ["question", "complaint"]}',
                field="labels",
            )
        self.limits.check_labels(request.labels)
        if request.k != self.configurations.default.settings.k:
            # The server's setting may be above the limit for requests.
            self.limits.check_k(request.k)
        return self.configurations.read(request)

    def retrieve(self, request: schema.RetrieveRequest) -> RetrieveJob:
        """Return the job that finds sentences."""
        self.limits.check_k(request.k)
        default = self.configurations.default.settings
        method = request.method or (default.retrieval if default.k else "physical")
        check_retriever(method)
        settings = self.classifier.settings_.retrieval.model_copy(update={"method": method})
        return RetrieveJob(
            self._corpus_index(),
            make_retriever(settings),
            self.limits.check_text(request.text),
            method,
            k=request.k or min(default.k or 16, self.limits.k),
            seed=default.seed if request.seed is None else request.seed,
        )

    def synonyms(self, request: schema.SynonymsRequest) -> SynonymsJob:
        """Return the job that finds synonyms."""
        self.limits.check_labels(request.labels)
        encoder = None if self.index is None else self.index.encoder
        return SynonymsJob(labels_of(request.labels), encoder, self._lm)

    def paragraph(self, row: int) -> schema.ParagraphResponse:
        """Return the paragraph that contains a sentence."""
        corpus = self._corpus_index().corpus
        if not 0 <= row < len(corpus) or not (corpus.subset.is_everything or corpus.used[row]):
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

    def _corpus_index(self) -> Index:
        if self.index is None:
            raise RefusedError(
                NOT_FOUND,
                "this server has no corpus",
                hint="it was started without one: ask the server's administrator",
            )
        return self.index

    @cached_property
    def info(self) -> schema.InfoResponse:
        """What runs here."""
        lm, index, expert = self.classifier.lm_, self.index, self.classifier.ensemble_.encoder_expert
        corpus = encoder = None
        if expert is not None:
            encoder = _model_info(expert.encoder, expert.identity)
        if index is not None:
            provenance = index.manifest["encoder"]
            encoder = _model_info(provenance["name"], provenance["identity"])
            corpus = schema.CorpusInfo(
                sentences=index.corpus.sentences,
                indexed=len(index.indexed()),
                documents_read=index.corpus.manifest["documents"],
                documents_kept=index.corpus.manifest.get("documents_kept"),
                domains=index.corpus.domains,
                hash=index.corpus.hash,
            )
        return schema.InfoResponse(
            corpus=corpus,
            encoder=encoder,
            lm=None if lm is None else _model_info(lm.name, lm.identity),
            versions={"zicl": __version__, "python": platform.python_version(), **versions(_PACKAGES)},
            settings=self.configurations.default.settings,
            limits=self.limits.info(),
            methods=[*METHODS],
            retrievals=RETRIEVERS.names(),
            inferences=["channel", "direct", "both"],
            templates={name: [template.input, template.label] for name, template in text_templates().items()},
        )


def _learns(method: str) -> bool:
    return get_method(method).pile.method != "none"


def _checked_fit(request: schema.ClassifyRequest, fit: str) -> str:
    """Return the id of a fit; refuse settings beside it, which has its own."""
    if given := sorted(request.model_fields_set & schema.ClassifierChoice.model_fields.keys()):
        raise RefusedError(
            INVALID,
            f"fit was given, which has its own settings, and {', '.join(given)} too",
            expected="fit, and no settings of the classifier",
            hint="leave one out",
            field=given[0],
        )
    return fit


def _open_index(classifier: ZICLClassifier) -> Index | None:
    """Return the corpus, also where the classifier's method shows nothing of it: a request may name another method."""
    if isinstance(classifier.index_, ConcatIndex):
        return classifier.index_.base
    if isinstance(classifier.index_, Index):
        return classifier.index_
    if classifier.index is None or isinstance(classifier.index, Index):
        return classifier.index
    return Index.open(classifier.index, offline=classifier.offline)


def _model_info(name: str, identity: str) -> schema.ModelInfo:
    """Describe a model by its public name; a path of this machine or the address of another is kept private."""
    if is_remote(name):
        return schema.ModelInfo(name=parse_address(name).model or "remote", identity=identity)
    local = name.startswith(("gguf:", ".", "~")) or Path(name).is_absolute() or Path(name).exists()
    return schema.ModelInfo(name="local" if local else name, identity=identity)
