"""ZICLClassifier: the method as a scikit-learn classifier, and ``load`` for saved ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from zicl._util.progress import Progress, ProgressReport, silent
from zicl._util.registry import Registry
from zicl.config import (
    GROUPS,
    Calibration,
    Labelling,
    PromptSettings,
    Retrieval,
    Scoring,
    Settings,
    parse_group,
    resolve,
)
from zicl.exceptions import ConfigError, EncoderMismatchError, LabelError, ModelError, UsageError
from zicl.explanation import Explanation
from zicl.inputs.pair import Text
from zicl.inputs.texts import check_texts
from zicl.lm.base import LanguageModel
from zicl.lm.load import DEFAULT_LM
from zicl.lm.model_cache import cached_index, cached_lm
from zicl.persistence import ClassifierState, find_corpus, find_lm, read_folder, restore_settings
from zicl.prompt.labels import Labels
from zicl.retrieve.clusters import Clusters, fit_clusters
from zicl.retrieve.concat import ConcatIndex
from zicl.retrieve.encoder import DEFAULT_ENCODER, Encoder, load_encoder, text_embedder
from zicl.retrieve.from_texts import index_texts
from zicl.retrieve.index import Index, Searchable
from zicl.retrieve.strategies.base import RETRIEVERS
from zicl.score.ensemble import Ensemble, Fitted, fit_priors, with_given_priors
from zicl.score.experts import EncoderExpert
from zicl.score.factory import build_ensemble, pick_template
from zicl.score.pipeline import check_fields
from zicl.score.results import Prediction

# Saved classifiers without a language model, by kind; each is loaded by the module that knows it.
SAVED_KINDS = Registry("kind of saved classifier", {"distilled": "zicl.apps.distill.classifier:load_distilled"})


class TextClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier that takes a list of texts instead of a table of numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.requires_fit = True
        return tags


def binary_difference(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores as scikit-learn's scorers expect them: for binary problems, ``score[1] - score[0]``.

    >>> binary_difference(np.array([[1.0, 3.0]])).tolist()
    [2.0]
    """
    return columns[:, 1] - columns[:, 0] if columns.shape[1] == 2 else columns


class ZICLClassifier(TextClassifier):
    """Classify texts with pseudo-demonstrations from a raw corpus; no labelled example is used.

    Parameters
    ----------
    index : path of a corpus built with ``zicl corpus build``, an open ``Index``, or None for no-demos
    labels : names, a mapping name → synonyms, ``Labels``, or the path of a labels.toml; a number N if every text has N
        options of its own
    lm : a catalog name, ``hf:ID``, a folder, ``gguf:FILE``, ``http://HOST/v1#ID``, or a loaded language model
    method : "z-icl" (the paper's), "z-icl+" (with the encoder expert), "naive", "random-inputs" or "no-demos"
    retrieval, labelling, prompt, scoring : settings; the fields that are set override those of the method
    calibrate : "batch", "contextual", "domain", "pmi", or a ``Calibration`` with more settings
    seed : decides every random draw, together with the text itself
    offline : reach no network

    Attributes
    ----------
    classes_ : label names, sorted, the order of all columns
    labels_ : the labels with the synonyms in use
    settings_ : the settings in force, those of the method and the defaults included
    ensemble_ : what predicts; ``pipeline_`` is the part of it that is explained
    fitted_ : what was learned from the texts given to ``fit``: label priors and clusters, frozen
    index_, lm_, method_, seed_ : what predicts, whatever parameters are set before the next ``fit``

    ``decision_function`` returns the values that are compared: raw log-likelihoods, unless calibration or several terms
    change them; for binary problems their difference. ``predict_proba`` is their softmax, under a uniform prior.

    """

    def __init__(
        self,
        index: str | Path | Index | None = None,
        labels: Any = None,
        lm: str | Path | LanguageModel = DEFAULT_LM,
        *,
        method: str = "z-icl",
        retrieval: Retrieval | None = None,
        labelling: Labelling | None = None,
        prompt: PromptSettings | None = None,
        scoring: Scoring | None = None,
        calibrate: str | Calibration | None = None,
        seed: int = 0,
        offline: bool = False,
    ) -> None:
        self.index = index
        self.labels = labels
        self.lm = lm
        self.method = method
        self.retrieval = retrieval
        self.labelling = labelling
        self.prompt = prompt
        self.scoring = scoring
        self.calibrate = calibrate
        self.seed = seed
        self.offline = offline

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        labels: Any,
        *,
        encoder: str | Encoder = DEFAULT_ENCODER,
        report: ProgressReport = silent,
        **settings: Any,
    ) -> ZICLClassifier:
        """Return a classifier whose corpus is ``texts``, one document each: a text is never its own demonstration."""
        documents = [str(text) for text in check_texts(texts)]
        index = index_texts(documents, encoder=encoder, offline=settings.get("offline", False), report=report)
        return cls(index, labels, **settings)

    # -- fitting: load and check; from texts, learn only what the settings ask for ---------------------

    def fit(
        self, X: Iterable[Any] | None = None, y: Iterable[str] | None = None, *, report: ProgressReport = silent
    ) -> ZICLClassifier:
        """Load everything and check it. ``y`` is only checked; ``X`` is used only if the settings say so.

        Settings that do: batch calibration without given priors, ``retrieval.share`` (clusters of inputs that share
        demonstrations) and ``retrieval.include_fit_texts``.
        """
        texts = None if X is None else check_texts(X)
        if self.labels is None:
            raise LabelError("no labels were given", hint='ZICLClassifier(index, labels=["terrible", "great"])')
        labels = Labels.of(self.labels)
        if y is not None:
            _check_targets(y, labels)
        settings = self._settings()
        retrieval = settings.retrieval
        if retrieval.share > 1 and (retrieval.k == 0 or RETRIEVERS.get(retrieval.method).shared):
            raise ConfigError(
                "this method has no demonstrations that inputs could share in groups", hint="leave out retrieval.share"
            )
        learned = self.learns()
        if learned and not texts:
            raise ConfigError(
                f"{learned[0]} is fitted on texts, and fit() was given none",
                hint="fit(texts) with the texts to be labelled, or similar ones; a shell user names --fit FILE",
            )
        if retrieval.share > 1 or settings.calibration.fits_priors:
            template = pick_template(settings.prompt.template, labels)
            for text in texts or ():
                check_fields(template, text)
        ensemble, cluster_texts = self._build(labels, settings, texts)
        if texts is not None:
            ensemble = fit_priors(ensemble, settings.calibration, texts, int(self.seed), report)
        return self._set_fitted(settings, ensemble, Fitted(ensemble.label_priors(), cluster_texts))

    def learns(self) -> list[str]:
        """Return what the settings ask ``fit`` to learn from texts; most often nothing."""
        settings = self._settings()
        wanted = {
            "batch calibration": settings.calibration.fits_priors,
            "sharing demonstrations": settings.retrieval.share > 1,
            "a corpus that the texts join": settings.retrieval.include_fit_texts,
        }
        return [what for what, needed in wanted.items() if needed]

    def _restore(self, fitted: Fitted) -> ZICLClassifier:
        """Load everything, with what was fitted before."""
        settings = self._settings()
        ensemble, _ = self._build(Labels.of(self.labels), settings, None, fitted)
        return self._set_fitted(settings, ensemble.with_priors(fitted.priors), fitted)

    def _settings(self) -> Settings:
        self._check_types()
        calibrate = self.calibrate
        if isinstance(calibrate, str):
            calibrate = parse_group("calibration", {"method": calibrate}, "calibrate: ")
        given = {
            "retrieval": self.retrieval,
            "labelling": self.labelling,
            "prompt": self.prompt,
            "scoring": self.scoring,
            "calibration": calibrate,
        }
        return resolve(self.method, given, counted=Labels.of(self.labels).counted)

    def _check_types(self) -> None:
        """Check the types of parameters: only now, because ``__init__`` of an estimator may not."""
        for name in ("retrieval", "labelling", "prompt", "scoring"):
            value, kind = getattr(self, name), GROUPS[name]
            if not (value is None or isinstance(value, kind)):
                raise ConfigError(f"{name} is {value!r}", hint=f"{name}={kind.__name__}(…), with what is to be set")
        if not (self.calibrate is None or isinstance(self.calibrate, str | Calibration)):
            raise ConfigError(
                f"calibrate is {self.calibrate!r}", hint='its name, "batch", or Calibration(method="batch")'
            )
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool):
            raise ConfigError(f"seed is {self.seed!r}", hint="give a whole number")

    def _build(
        self, labels: Labels, settings: Settings, texts: Sequence[Text] | None, fitted: Fitted | None = None
    ) -> tuple[Ensemble, tuple[Text, ...]]:
        """Return the ensemble, and the central texts of its clusters."""
        index, lm = self._search_index(settings.retrieval, texts), self._load_lm(settings.scoring)
        share, clusters = settings.retrieval.share, None
        if index is not None and share > 1:
            if fitted is not None:
                clusters = Clusters.from_texts(fitted.cluster_texts, index.embed)
            elif texts is not None:
                clusters = fit_clusters(texts, index.embed, share, int(self.seed))
        ensemble = build_ensemble(
            labels,
            lm,
            index,
            settings,
            seed=int(self.seed),
            offline=self.offline,
            clusters=clusters,
            encoder_expert=self._encoder_expert(index) if settings.scoring.encoder else None,
        )
        return with_given_priors(ensemble, settings.calibration), clusters.texts if clusters else ()

    def _encoder_expert(self, index: Searchable | None) -> EncoderExpert:
        """Use the corpus' encoder, also where no demonstration is shown."""
        if index is None and self.index is not None:
            index = self._open_index()
        if index is not None:
            return EncoderExpert(index.embed, index.encoder.identity)
        encoder = load_encoder(DEFAULT_ENCODER, offline=self.offline)
        return EncoderExpert(text_embedder(encoder), encoder.identity)

    def _set_fitted(self, settings: Settings, ensemble: Ensemble, fitted: Fitted) -> ZICLClassifier:
        self.ensemble_, self.pipeline_, self.fitted_ = ensemble, ensemble.main, fitted
        self.index_, self.lm_ = self.pipeline_.index, self.pipeline_.lm
        self.method_, self.seed_ = self.method, self.pipeline_.seed
        template = self.pipeline_.builder.template
        prompt = settings.prompt.model_copy(update={"template": (template.input, template.label)})
        self.labels_ = ensemble.labels
        self.settings_ = settings._replace(prompt=prompt)
        self.classes_ = np.array(sorted(self.labels_.names), dtype=object)
        return self

    def _search_index(self, retrieval: Retrieval, texts: Sequence[Text] | None) -> Searchable | None:
        if retrieval.k == 0:
            return None
        if self.index is None:
            raise ConfigError(
                f"the method {self.method!r} needs a corpus to take its {retrieval.k} demonstrations from",
                hint="give the path of a corpus (zicl corpus build), or use method='no-demos'",
            )
        index = self._open_index()
        if retrieval.include_fit_texts and texts is not None:
            documents = [str(text) for text in texts]
            return ConcatIndex(index, index_texts(documents, encoder=index.encoder, keep=False))
        return index

    def _open_index(self) -> Index:
        assert self.index is not None
        return self.index if isinstance(self.index, Index) else cached_index(Path(self.index), self.offline)

    def _load_lm(self, scoring: Scoring) -> LanguageModel:
        if not isinstance(self.lm, str | Path):
            return self.lm
        return cached_lm(str(self.lm), scoring.device, scoring.dtype, scoring.batch_size, self.offline)

    # -- predicting -----------------------------------------------------------------------------------

    def classify(
        self,
        X: Iterable[Any],
        progress: Progress | None = None,
        *,
        options: Sequence[Sequence[str]] | None = None,
    ) -> list[Prediction]:
        """Return predictions with scores, demonstrations and prompts, in the order of ``X``.

        A tuple of two texts is a pair. ``options`` holds each text's own choice of labels, or, where the labels
        are a number, its own words.
        """
        check_is_fitted(self, "pipeline_")
        return self.ensemble_.run(check_texts(X), progress, options)

    def order(self, texts: Sequence[Any]) -> list[int]:
        """Return the best order to classify many texts in chunks: texts that share demonstrations together."""
        check_is_fitted(self, "pipeline_")
        clusters, index, checked = self.pipeline_.clusters, self.index_, check_texts(texts)
        if clusters is None or index is None:
            return list(range(len(checked)))
        numbers = {text: number for number, text in enumerate(clusters.texts)}
        return sorted(range(len(checked)), key=lambda n: numbers[clusters.nearest(index.embed(checked[n].strip()))])

    def decision_function(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """Return the values that are compared, one column per class; for binary problems ``score[1] - score[0]``."""
        rows = [{score.label: score.value for score in prediction.scores} for prediction in self.classify(X)]
        return binary_difference(self._columns(rows))

    def predict_proba(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """Return the softmax of the values that are compared, one column per class."""
        return self._columns([prediction.probabilities for prediction in self.classify(X)])

    def predict(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Return the label with the highest score."""
        return np.array([prediction.label for prediction in self.classify(X)], dtype=object)

    def _columns(self, rows: Sequence[dict[str, float]]) -> NDArray[np.float64]:
        return np.array([[row[name] for name in self.classes_] for row in rows]).reshape(len(rows), len(self.classes_))

    def explain(self, text: Any) -> Explanation:
        """Explain why a text, or a pair, gets its label: demonstrations, prompt and the score of every label."""
        return Explanation(self.classify([text])[0])

    # -- saving ---------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write a small readable folder that ``zicl.load`` and ``zicl classify --with`` take."""
        return self._state().save(path)

    def fingerprint(self) -> dict[str, Any]:
        """Return all that predictions depend on as plain values: equal ones give equal predictions."""
        return self._state().fingerprint()

    def _state(self) -> ClassifierState:
        check_is_fitted(self, "pipeline_")
        expert = self.ensemble_.encoder_expert
        return ClassifierState(
            self.labels_,
            self.lm_,
            self.index_,
            self.method_,
            self.seed_,
            self.settings_,
            self.fitted_,
            None if expert is None else expert.identity,
        )


def load(
    path: str | Path,
    *,
    index: str | Path | Index | None = None,
    lm: str | LanguageModel | None = None,
    encoder: str | Encoder | None = None,
    offline: bool = False,
) -> TextClassifier:
    """Load a saved classifier, ready to predict: a ``ZICLClassifier``, or a ``DistilledClassifier``.

    ``index`` and ``lm`` say where they are now, if elsewhere; ``encoder`` does so for a distilled classifier, which
    needs neither.
    """
    folder = Path(path)
    content = read_folder(folder)
    if "kind" in content:
        if index is not None or lm is not None:
            raise UsageError(
                f"{folder.name} is {content['kind']}: it needs no corpus and no language model", hint="leave them out"
            )
        loaded: TextClassifier = SAVED_KINDS.get(content["kind"])(folder, content, encoder=encoder, offline=offline)
        return loaded
    if encoder is not None:
        raise UsageError(
            f"an encoder was given for {folder.name}, which takes its corpus' own", hint="give index=… instead"
        )
    return _load(folder, content, index, lm, offline=offline)


def _load(
    folder: Path,
    content: dict[str, Any],
    index: str | Path | Index | None,
    lm: str | LanguageModel | None,
    *,
    offline: bool,
) -> ZICLClassifier:
    settings, fitted, labels = restore_settings(folder, content)
    groups: dict[str, Any] = dict(settings)
    classifier = ZICLClassifier(
        find_corpus(folder, content["corpus"], index, offline=offline),
        labels,
        lm or find_lm(folder, content["lm"]),
        method=content["method"],
        seed=content["seed"],
        offline=offline,
        calibrate=groups.pop("calibration"),
        **groups,
    )._restore(fitted)
    expert = classifier.ensemble_.encoder_expert
    if expert is not None and content["encoder"] not in (None, expert.identity):
        raise EncoderMismatchError(
            f"the encoder that {folder.name} asks is not the one it was saved with",
            hint="name the corpus it was made with: zicl.load(…, index=…), or --corpus on the command line",
        )
    if lm is None and classifier.lm_.identity != content["lm"]["identity"]:
        raise ModelError(
            f"the language model {content['lm']['name']} is not the one {folder.name} was saved with",
            hint="its weights or tokenizer changed: get the old ones, or pass lm=… to use these knowingly",
        )
    return classifier


def _check_targets(y: Iterable[str], labels: Labels) -> None:
    unknown = sorted({value if isinstance(value, str) else repr(value) for value in y} - set(labels.names))
    if unknown:
        raise LabelError(
            f"y holds values that are no label: {', '.join(map(repr, unknown[:5]))}",
            hint=f"the labels are: {', '.join(labels.names)}",
        )
