"""ZICLClassifier: the method as a scikit-learn classifier, and ``load`` for saved ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from zicl._util.progress import Progress, ProgressReport, silent
from zicl._util.random import stable_hash
from zicl._util.registry import Registry
from zicl.config import (
    DEFAULT_METHOD,
    GROUPS,
    ONE_LABEL,
    Calibration,
    Labelling,
    Pile,
    PromptSettings,
    Retrieval,
    Scoring,
    Settings,
    get_method,
    parse_group,
    resolve,
)
from zicl.exceptions import ConfigError, EncoderMismatchError, LabelError, ModelError, UsageError
from zicl.explanation import Explanation
from zicl.inputs.pair import Text
from zicl.inputs.texts import check_texts
from zicl.lm.base import DEFAULT_LM, LanguageModel
from zicl.lm.model_cache import cached_embedder, cached_encoder, cached_index, cached_lm
from zicl.persistence import (
    ClassifierState,
    check_dimension,
    find_corpus,
    find_encoder,
    find_lm,
    read_folder,
    restore_settings,
)
from zicl.prompt.labels import Labels
from zicl.retrieve.clusters import Clusters, fit_clusters
from zicl.retrieve.concat import ConcatIndex
from zicl.retrieve.embedding import each_text
from zicl.retrieve.encoder import DEFAULT_ENCODER, Encoder, cuts
from zicl.retrieve.from_texts import index_texts
from zicl.retrieve.index import Index, Searchable
from zicl.score.checks import check_settings, learns_from_texts
from zicl.score.ensemble import Ensemble, Fitted, fit_priors, with_given_priors
from zicl.score.experts import EncoderExpert, Vectors
from zicl.score.factory import build_ensemble
from zicl.score.fit import Question, learn_pile
from zicl.score.gold import read_labels_of_texts
from zicl.score.manifest import ClassifierContent
from zicl.score.pipeline import Pipeline
from zicl.score.results import Prediction

# Saved classifiers of other classes, by kind; each is loaded by the module that knows it.
SAVED_KINDS = Registry("kind of saved classifier", {"distilled": "zicl.apps.distill.classifier:load_distilled"})
# What is built on any classifier and is also a method of it.
EXTENSIONS = Registry("method", {"map": "zicl.apps.map.run:map_texts"})


class TextClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier that takes a list of texts instead of a table of numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.requires_fit = True
        return tags

    def map(self, X: Iterable[Any], *, layout: str = "auto", seed: int = 0) -> Any:
        """Label texts and lay them out in two dimensions: a ``TextMap`` to ``save`` as a page; notebooks show it.

        ``layout`` is ``"tsne"``, ``"pca"``, or ``"auto"``: t-SNE where openTSNE is installed.
        """
        return EXTENSIONS.get("map")(self, X, layout=layout, seed=seed)


def binary_difference(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores as scikit-learn's scorers expect them: for binary problems, ``score[1] - score[0]``.

    >>> binary_difference(np.array([[1.0, 3.0]])).tolist()
    [2.0]
    """
    return columns[:, 1] - columns[:, 0] if columns.shape[1] == 2 else columns


class FitCompute(Protocol):
    """Where the slow steps of a fit are done. What each group of texts gets comes in the order of the groups."""

    @property
    def workers(self) -> int:
        """How many groups are computed at a time."""
        ...

    def encode(self, classifier: ZICLClassifier, groups: Sequence[Sequence[Text]]) -> Iterable[Vectors]:
        """Return the vectors of each group by the classifier's encoder."""
        ...

    def ask(self, classifier: ZICLClassifier, groups: Sequence[Sequence[Text]]) -> Iterable[list[Prediction]]:
        """Return the classifier's predictions for each group."""
        ...


class LocalFit:
    """Do the slow steps of a fit in this process."""

    workers = 1

    def encode(self, classifier: ZICLClassifier, groups: Sequence[Sequence[Text]]) -> Iterable[Vectors]:
        """Yield the vectors of each group."""
        return map(classifier.ensemble_.embed, groups)

    def ask(self, classifier: ZICLClassifier, groups: Sequence[Sequence[Text]]) -> Iterable[list[Prediction]]:
        """Yield the predictions for each group."""
        return map(classifier.classify, groups)


class ZICLClassifier(TextClassifier):
    """Classify texts without a labelled example, from a pile of unlabelled ones, a corpus, or nothing but the labels.

    Parameters
    ----------
    index : path of a corpus built with ``zicl corpus build``, or an open ``Index``: demonstrations come from it
    labels : names, a mapping name → synonyms, ``Labels``, or the path of a labels.toml; a number N if every text has N
        options of its own
    lm : a catalog name, ``hf:ID``, a folder, ``gguf:FILE``, ``http://HOST/v1#ID``, or a loaded language model; loaded
        only if an expert asks it
    method : "z-icl+" (the encoder and the pile), "encoder", "z-icl" (the paper's), "naive", "random-inputs", "no-demos"
    texts : the pile, for a ``fit`` without texts; also the corpus, where there is no other
    encoder : the sentence encoder, where no corpus brings its own
    retrieval, labelling, prompt, scoring, pile : settings; the fields that are set override those of the method
    none : the name for texts that fit no label, which is then one of the classes
    multi : judge each label by itself: a text gets any number of labels, also none of them
    threshold : the probability from which on a text gets ``none``, or with ``multi`` a label; also one per label
    calibrate : "batch", "neutral", "contextual", "domain", "pmi", or a ``Calibration`` with more settings
    seed : decides every random draw, together with the text itself
    offline : reach no network

    Attributes
    ----------
    classes_ : label names and ``none``, sorted, the order of all columns
    labels_ : the labels with the synonyms in use
    settings_ : the settings in force, those of the method and the defaults included
    ensemble_ : what predicts; ``pipeline_`` is the part of it that asks the language model, if any
    fitted_ : what was learned from the texts given to ``fit``: label priors, clusters and the pile's model, frozen
    index_, lm_, method_, seed_ : what predicts, whatever parameters are set before the next ``fit``; ``lm_`` is None
        where no language model is asked

    ``decision_function`` returns the values that are compared; for binary problems their difference. ``predict_proba``
    is their softmax. With ``multi``, ``predict`` returns an indicator matrix, one column per class, and the values are
    log-odds, whose probabilities need not add up to 1.

    """

    def __init__(
        self,
        index: str | Path | Index | None = None,
        labels: Any = None,
        lm: str | Path | LanguageModel = DEFAULT_LM,
        *,
        method: str = DEFAULT_METHOD,
        texts: Sequence[Any] | None = None,
        encoder: str | Encoder = DEFAULT_ENCODER,
        retrieval: Retrieval | None = None,
        labelling: Labelling | None = None,
        prompt: PromptSettings | None = None,
        scoring: Scoring | None = None,
        pile: Pile | None = None,
        none: str | None = None,
        multi: bool = False,
        threshold: float | Mapping[str, float] | None = None,
        calibrate: str | Calibration | None = None,
        seed: int = 0,
        offline: bool = False,
    ) -> None:
        self.index = index
        self.labels = labels
        self.lm = lm
        self.method = method
        self.texts = texts
        self.encoder = encoder
        self.retrieval = retrieval
        self.labelling = labelling
        self.prompt = prompt
        self.scoring = scoring
        self.pile = pile
        self.none = none
        self.multi = multi
        self.threshold = threshold
        self.calibrate = calibrate
        self.seed = seed
        self.offline = offline

    @classmethod
    def from_texts(cls, texts: Iterable[str], labels: Any, **settings: Any) -> ZICLClassifier:
        """Return a classifier whose pile is ``texts``; ``fit()`` learns from them.

        They are also the corpus of a method with demonstrations, one document each: a text is never its own.
        """
        return cls(None, labels, texts=check_texts(texts), **settings)

    # -- fitting: load and check everything; learn from texts what the settings ask for ----------------

    def fit(
        self,
        X: Iterable[Any] | None = None,
        y: Iterable[Any] | None = None,
        *,
        budget: float | None = None,
        compute: FitCompute | None = None,
        report: ProgressReport = silent,
    ) -> ZICLClassifier:
        """Learn from unlabelled texts, and from labels where ``y`` has some.

        Parameters
        ----------
        X
            The pile: texts like those to be labelled, or these themselves. None stands for ``texts``; without these
            either, nothing is learned, and ``z-icl+`` is the encoder alone. Fewer than 20 are a ``PileWarning``.
        y
            Labels of some of the texts; None, NaN or -1 where a label is not known. A method that learns from the pile
            holds them fixed; others only check them. With ``multi`` sets of labels, labels joined by ``|``, or an
            indicator matrix.
        budget
            Ask the language model about the least certain texts for about this many seconds, and learn from it.
        compute
            Encodes the pile and asks the language model elsewhere, with the same result.
        report
            Called with the progress of each stage.

        """
        given = self.texts if X is None else X
        texts = None if given is None else check_texts(given)
        if self.labels is None:
            raise LabelError("no labels were given", hint='ZICLClassifier(labels=["terrible", "great"])')
        labels, settings = Labels.of(self.labels), self._settings()
        gold = {} if y is None else read_labels_of_texts(texts, y, labels, settings.decision)
        check_settings(labels, settings, texts, budget)
        ensemble, cluster_texts = self._build(labels, settings, texts, report=report)
        ensemble = fit_priors(ensemble, settings.calibration, texts or (), int(self.seed), report)
        pile, fitted, compute = settings.pile, Fitted(ensemble.label_priors(), cluster_texts), compute or LocalFit()
        if pile.method != "none" and texts is not None:
            learned = learn_pile(
                ensemble,
                pile,
                texts,
                gold,
                seed=int(self.seed),
                question=self._question(labels, settings, texts, compute, report) if pile.lm_rows or budget else None,
                budget=budget,
                encode=partial(compute.encode, copy(self)._set_fitted(settings, ensemble, fitted)),
                report=report,
            )
            if learned is not None:
                ensemble = replace(ensemble.with_known(learned.vectors), pile=learned.model)
                settings = settings._replace(pile=pile.model_copy(update={"lm_rows": learned.asked}))
                fitted = replace(fitted, pile=learned.model)
        return self._set_fitted(settings, ensemble, fitted)

    def learns(self) -> list[str]:
        """Return what the settings cannot do without texts given to ``fit``; most often nothing."""
        return learns_from_texts(self._settings())

    def _question(
        self,
        labels: Labels,
        settings: Settings,
        texts: Sequence[Text],
        compute: FitCompute,
        report: ProgressReport,
    ) -> Callable[[], Question]:
        """Return what loads the language model that the least certain texts of the pile are asked about."""

        def load() -> Question:
            asked, key = self._load_question(labels, settings, texts, report)
            return Question(asked.ensemble_, key, partial(compute.ask, asked), compute.workers)

        return load

    def _load_question(
        self, labels: Labels, settings: Settings, texts: Sequence[Text], report: ProgressReport
    ) -> tuple[ZICLClassifier, str]:
        """Return a classifier that only asks the language model, and a key for what its answers depend on."""
        asking = settings._replace(
            scoring=settings.scoring.model_copy(update={"experts": (settings.pile.lm_expert,)}),
            calibration=Calibration(method="neutral"),
            # An answer does not depend on how many others are asked for, nor on what becomes of it.
            pile=Pile(),
            decision=ONE_LABEL,
        )
        if settings.pile.lm_expert == "prompt" and not settings.retrieval.k:
            preset = get_method("z-icl")
            asking = asking._replace(retrieval=preset.retrieval, labelling=preset.labelling)
        ensemble, cluster_texts = self._build(labels, asking, texts, report=report)
        ensemble = fit_priors(ensemble, asking.calibration, (), int(self.seed), report)
        fitted = Fitted(ensemble.label_priors())
        depends = _state_of(ensemble, self.method, int(self.seed), asking, fitted).fingerprint()
        asked = copy(self)._set_fitted(asking, ensemble, replace(fitted, cluster_texts=cluster_texts))
        return asked, f"{stable_hash(json.dumps(depends, sort_keys=True)):032x}"

    def _restore(self, fitted: Fitted) -> ZICLClassifier:
        """Load everything, with what was fitted before."""
        settings = self._settings()
        ensemble, _ = self._build(Labels.of(self.labels), settings, None, fitted)
        return self._set_fitted(settings, replace(ensemble, pile=fitted.pile), fitted)

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
            "pile": self.pile,
            "decision": parse_group(
                "decision",
                {
                    "none": self.none,
                    "multi": self.multi,
                    "threshold": dict(self.threshold) if isinstance(self.threshold, Mapping) else self.threshold,
                },
            ),
        }
        return resolve(self.method, given, counted=Labels.of(self.labels).counted)

    def _check_types(self) -> None:
        """Check the types of parameters: only now, because ``__init__`` of an estimator may not."""
        for name in ("retrieval", "labelling", "prompt", "scoring", "pile"):
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
        self,
        labels: Labels,
        settings: Settings,
        texts: Sequence[Text] | None,
        fitted: Fitted | None = None,
        report: ProgressReport = silent,
    ) -> tuple[Ensemble, tuple[Text, ...]]:
        """Return the ensemble, and the central texts of its clusters."""
        scoring = settings.scoring
        index = self._search_index(settings.retrieval, texts, report) if "prompt" in scoring.experts else None
        if scoring.asks_lm:
            report("loading the language model", 0, None, str(getattr(self.lm, "name", self.lm)))
        lm = self._load_lm(scoring, offline=self.offline) if scoring.asks_lm else None
        share, clusters = settings.retrieval.share, None
        if index is not None and share > 1:
            if fitted is not None:
                clusters = Clusters.from_texts(fitted.cluster_texts, index.embed)
            elif texts is not None:
                clusters = fit_clusters(texts, index.embed, share, int(self.seed))
        if scoring.encoder_expert:
            report("loading the encoder", 0, None)
        ensemble = build_ensemble(
            labels,
            lm,
            index,
            settings,
            seed=int(self.seed),
            offline=self.offline,
            clusters=clusters,
            report=report,
            encoder_expert=self._encoder_expert(index, scoring) if scoring.encoder_expert else None,
        )
        ensemble = replace(ensemble, decision=settings.decision)
        return with_given_priors(ensemble, settings.calibration), clusters.texts if clusters else ()

    def _encoder_expert(self, index: Searchable | None, scoring: Scoring) -> EncoderExpert:
        """Use the corpus' encoder, also where no demonstration is shown."""
        plain, searched = scoring.encoder_expert == "cosine", index is not None
        if index is None and self.index is not None:
            index = self._open_index()
        if searched and index is not None:
            # The queries are embedded for the search already.
            encoder = index.encoder
            return EncoderExpert(each_text(index.embed), encoder.identity, encoder.name, plain, partial(cuts, encoder))
        encoder = index.encoder if index is not None else cached_encoder(self.encoder, self.offline)
        return EncoderExpert(cached_embedder(encoder), encoder.identity, encoder.name, plain, partial(cuts, encoder))

    def _set_fitted(self, settings: Settings, ensemble: Ensemble, fitted: Fitted) -> ZICLClassifier:
        # With the priors as they are saved: their last digits are those of the same classifier loaded again.
        self.ensemble_, self.pipeline_ = ensemble.with_priors(fitted.priors), ensemble.main
        self.fitted_ = fitted
        self.index_ = None if ensemble.main is None else ensemble.main.index
        self.lm_ = None if ensemble.main is None else ensemble.main.lm
        self.method_, self.seed_ = self.method, int(self.seed)
        self.labels_ = ensemble.labels
        if ensemble.main is not None:
            template = ensemble.main.builder.template
            prompt = settings.prompt.model_copy(update={"template": (template.input, template.label)})
            settings = settings._replace(prompt=prompt)
        self.settings_ = settings
        self.classes_ = np.array(sorted(ensemble.names), dtype=object)
        return self

    def _search_index(
        self, retrieval: Retrieval, texts: Sequence[Text] | None, report: ProgressReport
    ) -> Searchable | None:
        if retrieval.k == 0:
            return None
        if self.index is None and (self.texts is not None or texts):
            pile = texts if self.texts is None else check_texts(self.texts)
            documents = [str(text) for text in pile or ()]
            return index_texts(documents, encoder=self.encoder, offline=self.offline, report=report)
        if self.index is None:
            raise ConfigError(
                f"the method {self.method!r} needs a corpus to take its {retrieval.k} demonstrations from",
                hint="give the texts to be labelled (`fit`), or a corpus (zicl corpus build): `index=…`",
            )
        index = self._open_index()
        if retrieval.include_fit_texts and texts is not None:
            documents = [str(text) for text in texts]
            return ConcatIndex(index, index_texts(documents, encoder=index.encoder, keep=False, report=report))
        return index

    def _open_index(self) -> Index:
        assert self.index is not None
        return self.index if isinstance(self.index, Index) else cached_index(Path(self.index), self.offline)

    def load_lm(self, *, offline: bool) -> LanguageModel:
        """Return the language model that is named, whether or not the method asks it."""
        return self._load_lm(self._settings().scoring, offline=offline)

    def _load_lm(self, scoring: Scoring, *, offline: bool) -> LanguageModel:
        if not isinstance(self.lm, str | Path):
            return self.lm
        return cached_lm(str(self.lm), scoring.device, scoring.dtype, scoring.batch_size, offline)

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
        check_is_fitted(self, "ensemble_")
        return self.ensemble_.run(check_texts(X), progress, options)

    def order(self, texts: Sequence[Any]) -> list[int]:
        """Return the best order to classify many texts in chunks: texts that share demonstrations together."""
        check_is_fitted(self, "ensemble_")
        index, checked = self.index_, check_texts(texts)
        clusters = None if self.pipeline_ is None else self.pipeline_.clusters
        if clusters is None or index is None:
            return list(range(len(checked)))
        numbers = {text: number for number, text in enumerate(clusters.texts)}
        return sorted(range(len(checked)), key=lambda n: numbers[clusters.nearest(index.embed(checked[n].strip()))])

    def decision_function(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """Return the values that are compared, one column per class; for binary problems ``score[1] - score[0]``."""
        rows = [{score.label: score.value for score in prediction.scores} for prediction in self.classify(X)]
        columns = self._columns(rows)
        return columns if self.settings_.decision.multi else binary_difference(columns)

    def predict_proba(self, X: Iterable[Any]) -> NDArray[np.float64]:
        """Return the softmax of the values that are compared, one column per class; with ``multi`` each class' own."""
        return self._columns([prediction.probabilities for prediction in self.classify(X)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = bool(self.multi)
        return tags

    def predict(self, X: Iterable[Any]) -> NDArray[Any]:
        """Return the predicted labels; with ``multi`` an indicator matrix, one column per class."""
        predictions = self.classify(X)
        if not self.settings_.decision.multi:
            return np.array([prediction.label for prediction in predictions], dtype=object)
        rows = [[name in prediction.labels for name in self.classes_] for prediction in predictions]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.classes_))

    def _columns(self, rows: Sequence[dict[str, float]]) -> NDArray[np.float64]:
        return np.array([[row[name] for name in self.classes_] for row in rows]).reshape(len(rows), len(self.classes_))

    def explain(self, text: Any) -> Explanation:
        """Explain why a text, or a pair, gets its label: what each expert says, near words, and the prompt, if any."""
        prediction = self.classify([text])[0]
        return Explanation(prediction, self.ensemble_.nearest_words(prediction.text))

    def prompting(self) -> Pipeline:
        """Return the pipeline that asks the language model, or raise an error if none does."""
        check_is_fitted(self, "ensemble_")
        if self.pipeline_ is None:
            raise UsageError(
                f"{self.method_} asks no language model about a text: there is no prompt and no demonstration",
                hint="use `method='z-icl'`, or name an expert that asks it: `scoring.experts=('encoder', 'direct')`",
            )
        return self.pipeline_

    # -- saving ---------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write a small readable folder that ``zicl.load`` and ``zicl classify --with`` take."""
        return self._state().save(path)

    def fingerprint(self) -> dict[str, Any]:
        """Return all that predictions depend on as plain values: equal ones give equal predictions."""
        return self._state().fingerprint()

    def _state(self) -> ClassifierState:
        check_is_fitted(self, "ensemble_")
        return _state_of(self.ensemble_, self.method_, self.seed_, self.settings_, self.fitted_)


def _state_of(ensemble: Ensemble, method: str, seed: int, settings: Settings, fitted: Fitted) -> ClassifierState:
    expert, main = ensemble.encoder_expert, ensemble.main
    return ClassifierState(
        ensemble.labels,
        None if main is None else main.lm,
        None if main is None else main.index,
        method,
        seed,
        settings,
        fitted,
        None if expert is None else (expert.encoder, expert.identity),
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

    ``index``, ``lm`` and ``encoder`` say where they are now, if elsewhere; a distilled classifier needs only the last.
    """
    folder = Path(path)
    content = read_folder(folder)
    if not isinstance(content, ClassifierContent):
        if index is not None or lm is not None:
            raise UsageError(
                f"{folder.name} is {content.kind}: it needs no corpus and no language model", hint="leave them out"
            )
        loaded: TextClassifier = SAVED_KINDS.get(content.kind)(folder, encoder=encoder, offline=offline)
        return loaded
    if lm is not None and content.lm is None:
        raise UsageError(f"a language model was given for {folder.name}, which asks none", hint="leave it out")
    if encoder is not None and content.encoder is None:
        raise UsageError(
            f"an encoder was given for {folder.name}, which takes its corpus' own", hint="give `index=…` instead"
        )
    return _load(folder, content, index, lm, encoder, offline=offline)


def _load(
    folder: Path,
    content: ClassifierContent,
    index: str | Path | Index | None,
    lm: str | LanguageModel | None,
    encoder: str | Encoder | None,
    *,
    offline: bool,
) -> ZICLClassifier:
    settings, fitted, labels = restore_settings(folder, content)
    groups: dict[str, Any] = dict(settings)
    saved_lm, saved_encoder = content.lm, content.encoder
    if encoder is None:
        encoder = DEFAULT_ENCODER if saved_encoder is None else find_encoder(folder, saved_encoder)
    classifier = ZICLClassifier(
        find_corpus(folder, content.corpus, index, offline=offline),
        labels,
        lm or (DEFAULT_LM if saved_lm is None else find_lm(folder, saved_lm)),
        method=content.method,
        encoder=encoder,
        seed=content.seed,
        offline=offline,
        calibrate=groups.pop("calibration"),
        **groups.pop("decision").model_dump(),
        **groups,
    )._restore(fitted)
    expert = classifier.ensemble_.encoder_expert
    if expert is not None and saved_encoder is not None and saved_encoder.identity != expert.identity:
        raise EncoderMismatchError(
            f"the encoder that {folder.name} asks is not the one it was saved with, {saved_encoder.name}",
            hint="name the corpus or the encoder it was made with: `index=…` or `encoder=…`",
        )
    if expert is not None and fitted.pile is not None:
        check_dimension(folder, fitted.pile.linear, expert.label_vectors(classifier.labels_)[0].shape[1])
    changed = saved_lm is not None and classifier.lm_ is not None and classifier.lm_.identity != saved_lm.identity
    if lm is None and saved_lm is not None and changed:
        raise ModelError(
            f"the language model {saved_lm.name} is not the one {folder.name} was saved with",
            hint="its weights or tokenizer changed: get the old ones, or name it to use these knowingly: `lm=…`",
        )
    return classifier
