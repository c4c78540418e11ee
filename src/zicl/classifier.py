"""ZICLClassifier: the scikit-learn face of zicl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.utils.validation import check_is_fitted

from zicl._util.progress import Report, silent
from zicl._util.validation import readable
from zicl.config import Calibration, Labelling, PromptSettings, Retrieval, Scoring, get_method
from zicl.estimator import TextClassifier, one_of_two
from zicl.exceptions import ConfigError, LabelError
from zicl.explanation import Explanation
from zicl.inputs.texts import check_texts
from zicl.lm.base import LanguageModel, Progress
from zicl.lm.load import DEFAULT_LM
from zicl.lm.model_cache import loaded, opened
from zicl.prompt.labels import Labels
from zicl.retrieve.clusters import Clusters, fit_clusters
from zicl.retrieve.concat import JointIndex
from zicl.retrieve.encoder import DEFAULT_ENCODER, Encoder, embedding, load_encoder
from zicl.retrieve.from_texts import index_texts
from zicl.retrieve.index import Index
from zicl.score.ensemble import Ensemble
from zicl.score.experts import Opinion
from zicl.score.factory import Settings, assemble, pick_template
from zicl.score.fitted import Fitted
from zicl.score.pipeline import check_fields
from zicl.score.priors import fit_priors, learns_priors, shares, with_given_priors, with_shares
from zicl.score.results import Result

if TYPE_CHECKING:
    from zicl.retrieve.index import Searchable


class ZICLClassifier(TextClassifier):
    """Classify texts with pseudo-demonstrations from a raw corpus; no labelled example is used.

    Parameters
    ----------
    index : path of a corpus built with ``zicl corpus build``, an open ``Index``, or None for no-demos
    labels : names, a mapping name → synonyms, ``Labels``, or the path of a labels.toml; a number for so many options
        that are other words for every text
    lm : a catalog name, ``hf:ID``, a folder, ``gguf:FILE``, ``http://HOST/v1#ID``, or a loaded language model
    method : "z-icl" (the paper's), "z-icl+" (with the encoder's opinion), "naive", "random-inputs" or "no-demos"
    retrieval, labelling, prompt, scoring : settings; what is set in them changes the method's and the defaults
    calibrate : "batch", "contextual", "domain", "pmi", or a ``Calibration`` with more settings
    seed : decides every random draw, together with the text itself
    offline : reach no network

    Attributes
    ----------
    classes_ : label names, sorted, the order of all columns
    labels_ : the labels with the synonyms in use
    settings_ : the settings in use, the method's and the defaults included
    ensemble_ : what runs; ``pipeline_`` is the part of it whose prompt is shown
    fitted_ : what was learned from the texts given to ``fit``: label shares and clusters, frozen
    index_, lm_, method_, seed_ : what predicts, whatever parameters are set before the next ``fit``

    ``decision_function`` is what is compared: raw log-likelihoods, unless calibration or several terms change them; for
    two labels their difference, as scikit-learn has it. ``predict_proba`` is their softmax, under a uniform prior.

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
        report: Report = silent,
        **settings: Any,
    ) -> ZICLClassifier:
        """A classifier whose corpus is ``texts``, each a document: it never demonstrates itself."""
        index = index_texts(check_texts(texts), encoder=encoder, offline=settings.get("offline", False), report=report)
        return cls(index, labels, **settings)

    # -- fitting: load and check; of texts only what the settings ask for is learned ------------------

    def fit(
        self, X: Iterable[str] | None = None, y: Iterable[str] | None = None, *, report: Report = silent
    ) -> ZICLClassifier:
        """Load everything and check it. ``y`` is only checked; ``X`` is used only if the settings say so.

        Settings that do: batch calibration without given priors (the labels' shares), ``retrieval.share`` (clusters
        that share demonstrations) and ``retrieval.include_fit_texts``.
        """
        texts = None if X is None else check_texts(X)
        if self.labels is None:
            raise LabelError("no labels were given", hint='ZICLClassifier(index, labels=["terrible", "great"])')
        labels = Labels.of(self.labels)
        if y is not None:
            _check_targets(y, labels)
        settings = self._settings()
        retrieval = settings.retrieval
        if retrieval.share > 1 and (retrieval.k == 0 or retrieval.method == "random"):
            raise ConfigError(
                "this method has no demonstrations that inputs could share in groups", hint="leave out retrieval.share"
            )
        learned = self.learns()
        if learned and not texts:
            raise ConfigError(
                f"{learned[0]} is fitted on texts, and fit() was given none",
                hint="fit(texts) with the texts to be labelled, or like ones; a shell user names --fit FILE",
            )
        if retrieval.share > 1 or learns_priors(settings.calibration):
            template = pick_template(settings.prompt.template, labels)
            for text in texts or ():
                check_fields(template, text)
        ensemble, middles = self._assemble(labels, settings, texts)
        if texts is not None:
            ensemble = fit_priors(ensemble, settings.calibration, texts, int(self.seed), report)
        return self._keep(settings, ensemble, Fitted(shares(ensemble), middles))

    def learns(self) -> list[str]:
        """What the settings ask ``fit`` to take from texts, in words; most often nothing."""
        settings = self._settings()
        wanted = {
            "batch calibration": learns_priors(settings.calibration),
            "sharing demonstrations": settings.retrieval.share > 1,
            "a corpus that the texts join": settings.retrieval.include_fit_texts,
        }
        return [what for what, needed in wanted.items() if needed]

    def _restore(self, fitted: Fitted) -> ZICLClassifier:
        """Load everything, with what was learned before."""
        settings = self._settings()
        ensemble, _ = self._assemble(Labels.of(self.labels), settings, None, fitted)
        return self._keep(settings, with_shares(ensemble, fitted.priors), fitted)

    def _settings(self) -> Settings:
        """The method's settings with what was set over them."""
        self._check_kinds()
        preset = get_method(self.method)
        labelling = self.labelling.over(preset.labelling) if self.labelling else preset.labelling
        if Labels.of(self.labels).counted and not (self.labelling and "words" in self.labelling.model_fields_set):
            # Options that are other words for every text have no synonyms.
            labelling = labelling.model_copy(update={"words": "neighbours"})
        calibrate = self.calibrate
        if isinstance(calibrate, str):
            try:
                calibrate = Calibration.model_validate({"method": calibrate})
            except ValidationError as error:
                raise readable(error, Calibration, "calibrate: ") from error
        return Settings(
            self.retrieval.over(preset.retrieval) if self.retrieval else preset.retrieval,
            labelling,
            self.prompt or PromptSettings(),
            self.scoring.over(preset.scoring) if self.scoring else preset.scoring,
            calibrate.over(preset.calibration) if calibrate else preset.calibration,
        )

    def _check_kinds(self) -> None:
        """Parameters are of the kind they have to be: not before, since ``__init__`` only stores."""
        kinds = {"retrieval": Retrieval, "labelling": Labelling, "prompt": PromptSettings, "scoring": Scoring}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if not (value is None or isinstance(value, kind)):
                raise ConfigError(f"{name} is {value!r}", hint=f"{name}={kind.__name__}(…), with what is to be set")
        if not (self.calibrate is None or isinstance(self.calibrate, str | Calibration)):
            raise ConfigError(
                f"calibrate is {self.calibrate!r}", hint='its name, "batch", or Calibration(method="batch")'
            )
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool):
            raise ConfigError(f"seed is {self.seed!r}", hint="give a whole number")

    def _assemble(
        self, labels: Labels, settings: Settings, texts: Sequence[str] | None, fitted: Fitted | None = None
    ) -> tuple[Ensemble, tuple[str, ...]]:
        """What runs, and the texts in the middle of its clusters."""
        index, lm = self._open_index(settings.retrieval, texts), self._load_lm(settings.scoring)
        share, clusters = settings.retrieval.share, None
        if index is not None and share > 1:
            if fitted is not None:
                clusters = Clusters.around(fitted.middles, index.embed)
            elif texts is not None:
                clusters = fit_clusters(texts, index.embed, share, int(self.seed))
        opinion = None
        if settings.scoring.encoder:
            # The corpus' encoder, also where nothing of the corpus is shown.
            given = index or (None if self.index is None else self._opened_index())
            encoder = given.encoder if given is not None else load_encoder(DEFAULT_ENCODER, offline=self.offline)
            opinion = Opinion(given.embed if given is not None else embedding(encoder), encoder.identity)
        ensemble = assemble(
            labels,
            lm,
            index,
            settings,
            seed=int(self.seed),
            offline=self.offline,
            clusters=clusters,
            opinion=opinion,
        )
        return with_given_priors(ensemble, settings.calibration), clusters.texts if clusters else ()

    def _keep(self, settings: Settings, ensemble: Ensemble, fitted: Fitted) -> ZICLClassifier:
        self.ensemble_, self.pipeline_, self.fitted_ = ensemble, ensemble.main, fitted
        self.index_, self.lm_ = self.pipeline_.index, self.pipeline_.lm
        # What predicts from now on, whatever parameters are set before the next fit.
        self.method_, self.seed_ = self.method, self.pipeline_.seed
        template = self.pipeline_.builder.template
        prompt = settings.prompt.model_copy(update={"template": (template.input, template.label)})
        self.labels_ = ensemble.labels
        self.settings_ = settings._replace(prompt=prompt)._asdict()
        self.classes_ = np.array(sorted(self.labels_.names), dtype=object)
        return self

    def _open_index(self, retrieval: Retrieval, texts: Sequence[str] | None) -> Searchable | None:
        if retrieval.k == 0:
            return None
        if self.index is None:
            raise ConfigError(
                f"the method {self.method!r} needs a corpus to take its {retrieval.k} demonstrations from",
                hint="give the path of a corpus (zicl corpus build), or use method='no-demos'",
            )
        index = self._opened_index()
        if retrieval.include_fit_texts and texts is not None:
            return JointIndex(index, index_texts(texts, encoder=index.encoder, keep=False))
        return index

    def _opened_index(self) -> Index:
        assert self.index is not None
        return self.index if isinstance(self.index, Index) else opened(Path(self.index), self.offline)

    def _load_lm(self, scoring: Scoring) -> LanguageModel:
        if not isinstance(self.lm, str | Path):
            return self.lm
        spec = str(self.lm)
        return loaded(spec, scoring.device, scoring.dtype, scoring.batch_size, self.offline)

    # -- predicting -----------------------------------------------------------------------------------

    def classify(
        self,
        X: Iterable[str | tuple[str, str]],
        progress: Progress | None = None,
        *,
        options: Sequence[Sequence[str]] | None = None,
    ) -> list[Result]:
        """Results with scores, demonstrations and prompts, in the order of ``X``.

        A tuple of two texts is a pair. ``options`` holds each text's own choice of labels, or, where the labels
        are a number, its own words.
        """
        check_is_fitted(self, "pipeline_")
        return self.ensemble_.run(check_texts(X), progress, options)

    def order(self, texts: Sequence[str]) -> list[int]:
        """The order in which many texts are best classified in pieces: those that share demonstrations together."""
        check_is_fitted(self, "pipeline_")
        clusters, index, texts = self.pipeline_.clusters, self.index_, check_texts(texts)
        if clusters is None or index is None:
            return list(range(len(texts)))
        numbers = {text: number for number, text in enumerate(clusters.texts)}
        return sorted(range(len(texts)), key=lambda n: numbers[clusters.nearest(index.embed(texts[n].strip()))])

    def decision_function(self, X: Iterable[str]) -> NDArray[np.float64]:
        """What is compared, a column a label in the order of ``classes_``; of two labels the second less the first."""
        return one_of_two(self._columns([{s.label: s.value for s in result.scores} for result in self.classify(X)]))

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """The softmax of what is compared, a column a label in the order of ``classes_``."""
        return self._columns([result.probabilities for result in self.classify(X)])

    def predict(self, X: Iterable[str]) -> NDArray[np.object_]:
        """The label of the highest score."""
        return np.array([result.label for result in self.classify(X)], dtype=object)

    def _columns(self, rows: Sequence[dict[str, float]]) -> NDArray[np.float64]:
        return np.array([[row[name] for name in self.classes_] for row in rows]).reshape(len(rows), len(self.classes_))

    def explain(self, text: str | tuple[str, str]) -> Explanation:
        """Why a text, or a pair, gets its label: demonstrations, prompt and the score of every label."""
        return Explanation(self.classify([text])[0])

    def save(self, path: str | Path) -> Path:
        """Write a small readable folder that ``zicl.load`` and ``zicl classify --with`` take."""
        from zicl.persistence import save

        check_is_fitted(self, "pipeline_")
        return save(self, path)


def _check_targets(y: Iterable[str], labels: Labels) -> None:
    unknown = sorted({value if isinstance(value, str) else repr(value) for value in y} - set(labels.names))
    if unknown:
        raise LabelError(
            f"y holds values that are no label: {', '.join(map(repr, unknown[:5]))}",
            hint=f"the labels are: {', '.join(labels.names)}",
        )
