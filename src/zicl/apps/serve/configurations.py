"""Names in a request: of methods, templates and retrievers. A wrong one is refused with the part it stands in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from zicl._util.cache import BoundedCache
from zicl._util.registry import did_you_mean
from zicl.apps.serve import schema
from zicl.apps.serve.problems import INVALID, RefusedError
from zicl.classifier import ZICLClassifier
from zicl.config import METHODS, Calibration, PromptSettings, get_method
from zicl.exceptions import PromptError, RetrievalError, TokenizationError, UsageError
from zicl.prompt.labels import Label, Labels
from zicl.prompt.template import TEMPLATES, Template
from zicl.retrieve.index import Index
from zicl.retrieve.strategies.base import RETRIEVERS
from zicl.score.ensemble import Ensemble

_LINES = "for example ['Review: {input}', 'Sentiment: {label}']"


def templates() -> dict[str, Template]:
    """Those a server takes: of single texts."""
    return {name: template for name, template in TEMPLATES.items() if not template.two_fields}


def check_method(name: str) -> None:
    """A method of classification."""
    _check("method", name, METHODS, "one of the methods that /v1/info lists")


def check_template(given: str | tuple[str, str] | None) -> None:
    """A template of single texts, by name or by its lines; "auto" is picked by the labels."""
    if isinstance(given, tuple):
        template = _tried(lambda: Template(*given))
        if template.two_fields:
            raise _of_pairs()
    elif given in TEMPLATES and given not in templates():
        raise _of_pairs()
    elif given not in (None, "auto"):
        _check("template", str(given), templates(), "one of the templates that /v1/info lists, or two lines")


def check_retriever(name: str) -> None:
    """A way to find sentences; a method of classification has one, which is then named."""
    known = RETRIEVERS.names()
    if name in METHODS and name not in known:
        retrieval = METHODS[name].retrieval
        own = f"retrieves as {retrieval.method!r} does" if retrieval.k else "retrieves nothing"
        raise RefusedError(
            INVALID,
            f"{name!r} is a method of /v1/classify, and no retrieval method",
            expected="one of the retrievals that /v1/info lists",
            hint=f"{name!r} {own}. Known: {', '.join(known)}",
            field="method",
        )
    _check("retrieval method", name, known, "one of the retrievals that /v1/info lists", field="method")


def _check(kind: str, name: str, known: Iterable[str], expected: str, field: str | None = None) -> None:
    if name not in known:
        error = did_you_mean(kind, name, known)
        raise RefusedError(INVALID, error.message, expected=expected, hint=error.hint, field=field or kind)


def _tried(make: Callable[[], Template]) -> Template:
    try:
        return make()
    except UsageError as error:
        expected = "two lines, one with {input} and one with {label}"
        raise RefusedError(INVALID, error.message, expected=expected, hint=_LINES, field="template") from error


def _of_pairs() -> RefusedError:
    return RefusedError(
        INVALID,
        "this template is for pairs of texts, and the server takes single ones",
        expected="a template with {input}",
        hint=f"known: {', '.join(templates())}; or two lines, {_LINES}",
        field="template",
    )


# -- From a request's settings to what runs: the server's own classifier, or one like it, put together once.


T = TypeVar("T")
_KEPT = 64
# What is wrong with a configuration itself; whatever else fails may work the next time.
_WRONG = (UsageError, PromptError, RetrievalError)


@dataclass(frozen=True)
class RequestedSettings:
    """What a request changes of the server's own settings; None is left as it is."""

    labels: Labels | None = None
    template: str | tuple[str, str] | None = None
    method: str | None = None
    inference: str | None = None
    k: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class ConfiguredClassifier:
    """What runs, and its settings as the API tells them."""

    ensemble: Ensemble
    settings: schema.SettingsOut

    @cached_property
    def weight(self) -> int:
        """About the size in bytes of a configuration like this."""
        return len(self.settings.model_dump_json())


class ClassifierCache:
    """The classifiers asked for of late. ``get`` belongs to the worker; ``read`` computes nothing."""

    def __init__(self, base: ZICLClassifier, index: Index | None, *, kept: int = _KEPT) -> None:
        self.base, self.index = base, index
        self.own = ConfiguredClassifier(base.ensemble_, settings_out(base))
        self._kept: BoundedCache[RequestedSettings, ConfiguredClassifier | Exception] = BoundedCache(kept)

    def read(self, choice: schema.ClassifierChoice) -> RequestedSettings:
        """The configuration of a request; what is the server's own anyway counts as left out."""
        own = self.own.settings
        labels = None if choice.labels is None else self._labels(choice.labels)
        template = _template(choice.template)
        if labels is None and template == _template(own.template):
            # With other labels it counts: the server's own may have been picked for its labels.
            template = None
        method = choice.method or own.method
        check_method(method)
        check_template(template)
        return RequestedSettings(
            labels=labels,
            template=template,
            method=_other(method, own.method),
            inference=_other(choice.inference, own.inference),
            # Under another method the server's own number counts too: that method has one of its own.
            k=None if method == "no-demos" else _other(choice.k, own.k) if method == own.method else choice.k,
            seed=_other(choice.seed, own.seed),
        )

    def _labels(self, given: Sequence[str | schema.LabelSpec]) -> Labels | None:
        """The labels of a request; the server's own words keep their synonyms unless others are given."""
        labels, own = labels_of(given), self.base.labels_
        if {(x.name, x.words) for x in labels} == {(x.name, x.words) for x in own}:
            labels = Labels(tuple(_over(x, own[x.name]) for x in labels))
        return None if labels == own else labels

    def get(self, configuration: RequestedSettings) -> ConfiguredClassifier:
        """What runs for a configuration; one that cannot be is remembered too."""
        if configuration == RequestedSettings():
            return self.own
        found = self._kept.get(configuration)
        if found is None:
            try:
                made = self._made(configuration).fit()
                found = ConfiguredClassifier(made.ensemble_, settings_out(made))
            except TokenizationError as error:
                # Of labels or a template: no other text would do better.
                found = PromptError("the model's tokens cannot spell these labels or this template", hint=error.hint)
            except _WRONG as error:
                found = error
            self._kept.put(configuration, found)
        if isinstance(found, Exception):
            # Raised again and again, it would otherwise keep every place it ever passed.
            raise found.with_traceback(None)
        return found

    def _made(self, wanted: RequestedSettings) -> ZICLClassifier:
        """The base with what is wanted over it; what it learned from texts holds for itself alone and is left out."""
        own, preset = self.base.settings_, get_method(wanted.method or self.base.method_)
        retrieval = own.retrieval.model_copy(update={"share": 1, "include_fit_texts": False})
        labelling, scoring, calibration = own.labelling, own.scoring, own.calibration
        if wanted.method is not None:
            k = preset.retrieval.k and (own.retrieval.k or preset.retrieval.k)
            retrieval = retrieval.model_copy(update={"method": preset.retrieval.method, "k": k})
            labelling = labelling.model_copy(update={"words": preset.labelling.words})
            if scoring.encoder == get_method(self.base.method_).scoring.encoder:
                # As its method has it: another method brings its own.
                scoring = scoring.model_copy(update={"encoder": preset.scoring.encoder})
        if wanted.k is not None:
            retrieval = retrieval.model_copy(update={"k": wanted.k})
        if calibration.fits_priors or calibration.priors is not None:
            calibration = Calibration()
        prompt = self.base.prompt or PromptSettings()
        if wanted.template is not None:
            prompt = prompt.model_copy(update={"template": wanted.template})
        if wanted.inference is not None:
            scoring = scoring.model_copy(update={"inference": wanted.inference})
        return ZICLClassifier(
            self.index,
            wanted.labels or self.base.labels_,
            self.base.lm_,
            method=wanted.method or self.base.method_,
            retrieval=retrieval,
            labelling=labelling,
            prompt=prompt,
            scoring=scoring,
            calibrate=calibration,
            seed=self.base.seed_ if wanted.seed is None else wanted.seed,
            # While it serves, the server fetches nothing.
            offline=True,
        )


def labels_of(given: Sequence[str | schema.LabelSpec]) -> Labels:
    """Labels from a request."""
    return Labels(
        tuple(
            Label(x) if isinstance(x, str) else Label(x.name, x.words or "", tuple(x.synonyms), x.description)
            for x in given
        )
    )


def _over(given: Label, own: Label) -> Label:
    """A label of the server's own words, with what was given for it."""
    synonyms, description = given.synonyms or own.synonyms, given.description or own.description
    return replace(own, synonyms=synonyms, description=description)


def settings_out(classifier: ZICLClassifier) -> schema.SettingsOut:
    """A classifier's settings as the API tells them."""
    settings = classifier.settings_
    return schema.SettingsOut(
        labels=[
            schema.LabelOut(name=x.name, words=x.words, synonyms=[*x.synonyms], description=x.description)
            for x in classifier.labels_
        ],
        template=list(settings.prompt.template),
        method=classifier.method_,
        retrieval=settings.retrieval.method if settings.retrieval.k else "none",
        inference=settings.scoring.inference,
        encoder=settings.scoring.encoder,
        k=settings.retrieval.k,
        seed=classifier.seed_,
        calibration=settings.calibration.method,
        share=settings.retrieval.share,
    )


def _template(given: str | Sequence[str] | None) -> str | tuple[str, str] | None:
    """A template by its lines, also where it is named: the same one is the same however it is given."""
    if isinstance(given, str) and given in TEMPLATES:
        return TEMPLATES[given].input, TEMPLATES[given].label
    if given is None or isinstance(given, str):
        return given
    first, second = given
    return first, second


def _other(given: T | None, own: T) -> T | None:
    return None if given == own else given
