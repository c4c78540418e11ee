"""From a request's settings to a classifier: the server's default one, or a cached variant of it.

Names of methods, templates and retrievers are checked here; a wrong one is refused with the field it is in.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from zicl._util.cache import BoundedCache
from zicl._util.registry import did_you_mean
from zicl.apps.serve import schema
from zicl.apps.serve.problems import INVALID, NOT_FOUND, OVER_LIMIT, RefusedError
from zicl.classifier import LocalFit, ZICLClassifier
from zicl.config import (
    METHODS,
    ONE_LABEL,
    Calibration,
    Labelling,
    Pile,
    PromptSettings,
    Retrieval,
    Scoring,
    Settings,
    get_method,
    resolve,
)
from zicl.exceptions import PileWarning, PromptError, RetrievalError, TokenizationError, UsageError
from zicl.inputs.pair import Text
from zicl.lm.base import LanguageModel
from zicl.prompt.labels import Label, Labels
from zicl.prompt.template import TEMPLATES, Template
from zicl.retrieve.encoder import Vectors
from zicl.retrieve.index import Index
from zicl.retrieve.strategies.base import RETRIEVERS
from zicl.score.ensemble import Ensemble
from zicl.score.factory import pick_template

T = TypeVar("T")

_CACHED = 64
# What was learned from texts of requests: how often, and about how many bytes together.
_FITS, _FIT_BYTES = 16, 64 << 20
# Errors of a configuration itself; any other may not happen the next time.
_LASTING_ERRORS = (UsageError, PromptError, RetrievalError)
# What a server has that was started without labels: a classifier needs some, and these are never used.
NO_LABELS = Labels((Label("(no first label)"), Label("(no second label)")))
_EXAMPLE_LINES = "for example ['Review: {input}', 'Sentiment: {label}']"


@dataclass(frozen=True)
class RequestedSettings:
    """What a request changes in the server's settings; None leaves a setting as it is."""

    labels: Labels | None = None
    template: str | tuple[str, str] | None = None
    method: str | None = None
    inference: str | None = None
    k: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class ConfiguredClassifier:
    """A classifier that is ready to use, and its settings for the API."""

    ensemble: Ensemble
    settings: schema.SettingsOut
    # What was odd about the texts that it learned from.
    warnings: tuple[str, ...] = ()

    @cached_property
    def weight(self) -> int:
        """About the size in bytes of its settings."""
        return len(self.settings.model_dump_json())


class EncodedTexts(LocalFit):
    """The vectors of a fit whose texts are encoded already."""

    def __init__(self, vectors: Mapping[Text, Vectors]) -> None:
        self._vectors = vectors

    def encode(self, _classifier: ZICLClassifier, groups: Sequence[Sequence[Text]]) -> Iterable[Vectors]:
        """Return the vectors of each group."""
        return [np.stack([self._vectors[text] for text in group]) for group in groups]


class ClassifierCache:
    """The server's default classifier, recent variants of it, and what was learned from texts of requests.

    ``get``, ``learn`` and ``learned`` run in the worker's thread only.
    """

    def __init__(self, classifier: ZICLClassifier, index: Index | None, *, size: int = _CACHED) -> None:
        self._classifier, self._index = classifier, index
        self.default = ConfiguredClassifier(classifier.ensemble_, settings_out(classifier))
        self._cache: BoundedCache[RequestedSettings, ConfiguredClassifier | Exception] = BoundedCache(size)
        self._fits: BoundedCache[str, ConfiguredClassifier] = BoundedCache(_FITS, _FIT_BYTES)

    @cached_property
    def lm(self) -> LanguageModel:
        """The language model of all variants, loaded once. A running server fetches nothing."""
        return self._classifier.lm_ or self._classifier.load_lm(offline=True)

    def read(self, choice: schema.ClassifierChoice) -> RequestedSettings:
        """Return the settings of a request, checked; those equal to the server's count as left out."""
        default = self.default.settings
        labels = None if choice.labels is None else self._read_labels(choice.labels)
        template = _template_lines(choice.template)
        if labels is None and template == _template_lines(default.template):
            # With other labels it counts: the server's template may have been picked for its labels.
            template = None
        method = choice.method or default.method
        _check_name("method", method, METHODS, "one of the methods that /v1/info lists")
        _check_template(template)
        if not get_method(method).retrieval.k:
            k = None
        else:
            # Another method has another default: there k counts even if it equals the server's.
            k = _unless_equal(choice.k, default.k) if method == default.method else choice.k
        # What only a prompt uses changes nothing where none is built, and must not cost what was learned from a pile.
        prompts = get_method(method).scoring.asks_lm or self._classifier.settings_.scoring.asks_lm
        return RequestedSettings(
            labels=labels,
            template=template if prompts else None,
            method=_unless_equal(method, default.method),
            inference=_unless_equal(choice.inference, default.inference) if prompts else None,
            k=k,
            seed=_unless_equal(choice.seed, default.seed) if prompts else None,
        )

    def _read_labels(self, given: Sequence[str | schema.LabelSpec]) -> Labels | None:
        """Return the labels of a request; the server's labels keep their synonyms unless others are given."""
        labels, default = labels_of(given), self._classifier.labels_
        if {(label.name, label.words) for label in labels} == {(label.name, label.words) for label in default}:
            labels = Labels(tuple(_complete_label(label, default[label.name]) for label in labels))
        return None if labels == default else labels

    def learned(self, fit: str) -> ConfiguredClassifier | None:
        """Return the classifier that learned from the texts of a request, if it is still kept."""
        return self._fits.get(fit)

    def check_fits(self, texts: Sequence[str], first: Vectors) -> None:
        """Refuse texts that, with vectors like the first ones, are more than is kept."""
        size = _fit_size(texts, [first[0]] * len(texts))
        if size > _FIT_BYTES:
            most = len(texts) * _FIT_BYTES // size
            raise RefusedError(
                OVER_LIMIT,
                f"{len(texts):,} texts and their vectors take {size / 2**20:,.0f} MiB",
                expected=f"at most {_FIT_BYTES / 2**20:g} MiB, which is about {most:,} texts like these",
                hint="send a sample of them",
                field="texts",
            )

    def learn(
        self, fit: str, requested: RequestedSettings, texts: Sequence[str], vectors: Mapping[Text, Vectors]
    ) -> ConfiguredClassifier:
        """Learn from encoded texts, and keep the classifier under the name ``fit``."""
        variant = self._variant(requested)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PileWarning)
            variant.fit(texts, compute=EncodedTexts(vectors))
        odd = tuple(str(each.message) for each in caught if issubclass(each.category, PileWarning))
        found = ConfiguredClassifier(variant.ensemble_, settings_out(variant), odd)
        self._fits.put(fit, found, _fit_size(texts, vectors.values()))
        return found

    def get(self, requested: RequestedSettings | str) -> ConfiguredClassifier:
        """Return the classifier of settings, or of a fit; impossible settings are cached as their error."""
        if isinstance(requested, str):
            return self._get_learned(requested)
        if requested == RequestedSettings():
            return self.default
        result = self._cache.get(requested)
        if result is None:
            try:
                variant = self._variant(requested).fit()
                result = ConfiguredClassifier(variant.ensemble_, settings_out(variant))
            except TokenizationError as error:
                # About labels or a template: it does not depend on the text.
                result = PromptError("the model's tokens cannot spell these labels or this template", hint=error.hint)
            except _LASTING_ERRORS as error:
                result = error
            self._cache.put(requested, result)
        if isinstance(result, Exception):
            # Without this, every raise would add to the traceback that the error keeps.
            raise result.with_traceback(None)
        return result

    def _get_learned(self, fit: str) -> ConfiguredClassifier:
        found = self._fits.get(fit)
        if found is None:
            raise RefusedError(
                NOT_FOUND,
                "what was learned from these texts is not kept any more",
                expected="what /v1/fit answered a short time ago",
                hint="send the texts to /v1/fit again",
                field="fit",
            )
        return found

    def _variant(self, requested: RequestedSettings) -> ZICLClassifier:
        default = self._classifier
        settings = self._settings(requested)
        return ZICLClassifier(
            self._index,
            requested.labels or default.labels_,
            self.lm if settings.scoring.asks_lm else default.lm,
            encoder=default.encoder,
            method=requested.method or default.method_,
            retrieval=settings.retrieval,
            labelling=settings.labelling,
            prompt=settings.prompt,
            scoring=settings.scoring,
            calibrate=settings.calibration,
            pile=settings.pile,
            seed=default.seed_ if requested.seed is None else requested.seed,
            # A running server fetches nothing.
            offline=True,
        )

    def _settings(self, requested: RequestedSettings) -> Settings:
        """Return the default settings with the requested ones over them, without anything fitted on texts."""
        default = self._classifier.settings_
        retrieval: dict[str, Any] = {"share": 1, "include_fit_texts": False}
        labelling: dict[str, Any] = {}
        scoring: dict[str, Any] = {}
        if requested.method is not None:
            preset = get_method(requested.method)
            k = preset.retrieval.k and (default.retrieval.k or preset.retrieval.k)
            retrieval |= {"method": preset.retrieval.method, "k": k}
            labelling = {"words": preset.labelling.words}
            if default.scoring.experts == get_method(self._classifier.method_).scoring.experts:
                # They came with the server's method, so the other method decides; those that were set hold for all.
                scoring["experts"] = preset.scoring.experts
        if requested.k is not None:
            retrieval["k"] = requested.k
        if requested.inference is not None:
            scoring["inference"] = requested.inference
        fitted = default.calibration.fits_priors or default.calibration.priors is not None
        base = default._replace(
            # As given: in the fitted settings "auto" is already replaced by a template for the server's labels.
            prompt=self._classifier.prompt or PromptSettings(),
            calibration=Calibration() if fitted else default.calibration,
            pile=Pile(),
            # Both are learned from a pile.
            decision=ONE_LABEL,
        )
        overrides = {
            "retrieval": Retrieval(**retrieval),
            "labelling": Labelling(**labelling),
            "prompt": None if requested.template is None else PromptSettings(template=requested.template),
            "scoring": Scoring(**scoring),
        }
        return resolve(base, overrides)


def labels_of(given: Sequence[str | schema.LabelSpec]) -> Labels:
    """Return the labels of a request."""
    return Labels(
        tuple(
            Label(x) if isinstance(x, str) else Label(x.name, x.words or "", tuple(x.synonyms), x.description)
            for x in given
        )
    )


def _complete_label(given: Label, default: Label) -> Label:
    synonyms, description = given.synonyms or default.synonyms, given.description or default.description
    return replace(default, synonyms=synonyms, description=description)


def settings_out(classifier: ZICLClassifier) -> schema.SettingsOut:
    """Return a classifier's settings for the API."""
    settings = classifier.settings_
    return schema.SettingsOut(
        labels=[
            schema.LabelOut(name=x.name, words=x.words, synonyms=[*x.synonyms], description=x.description)
            for x in (() if classifier.labels_ == NO_LABELS else classifier.labels_)
        ],
        template=list(template_lines(settings.prompt.template, classifier.labels_)),
        method=classifier.method_,
        retrieval=settings.retrieval.method if settings.retrieval.k else "none",
        inference=settings.scoring.inference,
        experts=[*settings.scoring.experts],
        pile=0 if classifier.fitted_.pile is None else classifier.fitted_.pile.texts,
        k=settings.retrieval.k,
        seed=classifier.seed_,
        calibration=settings.calibration.method,
        share=settings.retrieval.share,
        none=settings.decision.none,
        multi=settings.decision.multi,
    )


def template_lines(template: str | tuple[str, str], labels: Labels) -> tuple[str, str]:
    """Return the lines of a template, which "auto" picks by the labels."""
    picked = pick_template(template, labels)
    return picked.input, picked.label


def _fit_size(texts: Iterable[str], vectors: Iterable[Vectors]) -> int:
    """Return about how many bytes a fit takes while it is kept."""
    return sum(vector.nbytes for vector in vectors) + sum(map(len, texts))


def _unless_equal(given: T | None, default: T) -> T | None:
    return None if given == default else given


def _template_lines(given: str | Sequence[str] | None) -> str | tuple[str, str] | None:
    """Return a template's lines, also where it is named, so that equal templates compare equal."""
    if isinstance(given, str) and given in TEMPLATES:
        return TEMPLATES[given].input, TEMPLATES[given].label
    if given is None or isinstance(given, str):
        return given
    first, second = given
    return first, second


def text_templates() -> dict[str, Template]:
    """Return the templates for single texts: the server takes no pairs."""
    return {name: template for name, template in TEMPLATES.items() if not template.two_fields}


def _check_template(lines: str | tuple[str, str] | None) -> None:
    """Check a template; "auto" is picked by the labels."""
    if isinstance(lines, str):
        if lines != "auto":
            expected = "one of the templates that /v1/info lists, or two lines"
            _check_name("template", lines, text_templates(), expected)
        return
    if lines is None:
        return
    try:
        two_fields = Template(*lines).two_fields
    except UsageError as error:
        expected = "two lines, one with {input} and one with {label}"
        raise RefusedError(INVALID, error.message, expected=expected, hint=_EXAMPLE_LINES, field="template") from error
    if two_fields:
        raise RefusedError(
            INVALID,
            "this template is for pairs of texts, and the server takes single ones",
            expected="a template with {input}",
            hint=f"known: {', '.join(text_templates())}; or two lines, {_EXAMPLE_LINES}",
            field="template",
        )


def check_retriever(name: str) -> None:
    """Check the name of a retrieval method; for a method of classification, the hint names its retrieval."""
    known, expected = RETRIEVERS.names(), "one of the retrievals that /v1/info lists"
    if name in METHODS and name not in known:
        retrieval = METHODS[name].retrieval
        used = f"retrieves as {retrieval.method!r} does" if retrieval.k else "retrieves nothing"
        raise RefusedError(
            INVALID,
            f"{name!r} is a method of /v1/classify, and no retrieval method",
            expected=expected,
            hint=f"{name!r} {used}. Known: {', '.join(known)}",
            field="method",
        )
    _check_name("retrieval method", name, known, expected, field="method")


def _check_name(kind: str, name: str, known: Iterable[str], expected: str, field: str | None = None) -> None:
    if name not in known:
        error = did_you_mean(kind, name, known)
        raise RefusedError(INVALID, error.message, expected=expected, hint=error.hint, field=field or kind)
