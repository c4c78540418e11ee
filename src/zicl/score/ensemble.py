"""Join the experts' scores of a text into one prediction; most often there is only one.

pipelines, one per inference and draw of labels ─┐
             mean over the draws of labels       ├─ one term each ─ minus its prior ─ joined
encoder expert ──────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from zicl._util.progress import Progress, ProgressReport, silent
from zicl._util.random import rng
from zicl.config import Calibration
from zicl.exceptions import ConfigError, UsageError
from zicl.inputs.pair import Text, text_key
from zicl.prompt.builder import BranchScores
from zicl.prompt.labelers import AssignedLabel
from zicl.prompt.labels import Labels
from zicl.score.calibration import Scores, join_terms, log_prior, log_softmax
from zicl.score.experts import EncoderExpert
from zicl.score.pipeline import Pipeline
from zicl.score.results import Prediction, PreparedInput

ENCODER = "encoder"
_SMALLEST_PRIOR = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Ensemble:
    """Pipelines over one language model, the first of which is explained, and possibly the encoder expert.

    ``priors`` holds, for each term, the log-probabilities of the labels over some texts: fitted once, then frozen.
    """

    pipelines: tuple[Pipeline, ...]
    encoder_expert: EncoderExpert | None = None
    priors: Mapping[str, Scores] = field(default_factory=dict)

    @property
    def main(self) -> Pipeline:
        """The pipeline whose prompt and demonstrations are explained."""
        return self.pipelines[0]

    @property
    def labels(self) -> Labels:
        """The labels, with the synonyms in use."""
        return self.main.labels

    @property
    def term_names(self) -> tuple[str, ...]:
        """The names of the terms that are joined."""
        inferences = dict.fromkeys(pipeline.scoring.inference for pipeline in self.pipelines)
        return (*inferences, ENCODER) if self.encoder_expert else tuple(inferences)

    @property
    def joins(self) -> bool:
        """Whether several terms are joined, or one has a prior."""
        return len(self.pipelines) > 1 or bool(self.encoder_expert or self.priors)

    @property
    def is_calibrated(self) -> bool:
        """Whether the values compared are more than one prompt's log-likelihoods."""
        return self.joins or bool(self.main.probes)

    def run(
        self,
        texts: Sequence[Text],
        progress: Progress | None = None,
        options: Sequence[Sequence[str]] | None = None,
        identical: Sequence[AssignedLabel] | None = None,
    ) -> list[Prediction]:
        """Classify texts, in order; ``options`` are each text's own labels, where texts differ in them.

        With ``identical``, each text is put among its own demonstrations under that label.
        """
        choices = self._choices(len(texts), options)
        same: Sequence[AssignedLabel | None] = identical or [None] * len(texts)
        prepared = [self.prepare(text, labels, own) for text, labels, own in zip(texts, choices, same, strict=True)]
        prompts = [part.prompt for parts in prepared for part in parts]
        scores = iter(self.main.lm.score(prompts, _per_text(len(self.pipelines), progress)))
        return [self.predict(parts, list(islice(scores, len(parts)))) for parts in prepared]

    def prepare(
        self, text: Text, labels: Labels | None = None, identical: AssignedLabel | None = None
    ) -> list[PreparedInput]:
        """Prepare one text for every pipeline."""
        return [pipeline.prepare(text, labels, identical) for pipeline in self.pipelines]

    def predict(self, prepared: Sequence[PreparedInput], scores: Sequence[BranchScores]) -> Prediction:
        """Turn the scores of all prepared prompts of a text into one prediction."""
        return self._join(
            [p.predict(item, score) for p, item, score in zip(self.pipelines, prepared, scores, strict=True)]
        )

    def _choices(self, count: int, options: Sequence[Sequence[str]] | None) -> list[Labels]:
        """Return the labels that each text has to choose from."""
        if options is None:
            if self.labels.counted:
                raise ConfigError(
                    "the labels only count options, and no text's options were given",
                    hint="classify(texts, options=…) or --options-column; batch calibration needs labels of all texts",
                )
            return [self.labels] * count
        if len(options) != count:
            raise UsageError(f"{count} texts were given, and options for {len(options)}", hint="give each text its own")
        choices = [self.labels.among(each, f"row {number}") for number, each in enumerate(options)]
        if self.priors and any(labels.names != self.labels.names for labels in choices):
            raise ConfigError(
                "priors were fitted for all labels, and some texts have only some of them",
                hint="use another calibration, or none",
            )
        return choices

    def _join(self, parts: Sequence[Prediction]) -> Prediction:
        first = parts[0]
        if not self.joins:
            return first
        terms = self._terms(parts)
        values = self._joined_values(terms)
        return replace(
            first,
            scores=tuple(replace(s, value=float(v)) for s, v in zip(first.scores, values, strict=True)),
            parts=tuple(parts) if len(parts) > 1 else (),
            terms={name: tuple(values.tolist()) for name, values in terms.items()},
            spread=self._spread(parts, int(np.argmax(values))),
        )

    def _joined_values(self, terms: Mapping[str, Scores]) -> Scores:
        return join_terms(np.stack([values - self.priors.get(name, 0.0) for name, values in terms.items()]))

    def _spread(self, parts: Sequence[Prediction], best: int) -> float | None:
        """Return the standard deviation of the best label's probability over the draws of labels."""
        draws = dict.fromkeys(part.prepared.assignment for part in parts)
        if len(draws) < 2:
            return None
        probabilities = []
        for draw in draws:
            own = [part for part in parts if part.prepared.assignment == draw]
            probabilities.append(np.exp(log_softmax(self._joined_values(self._terms(own))))[best])
        return float(np.std(probabilities, ddof=1))

    def _terms(self, parts: Sequence[Prediction]) -> dict[str, Scores]:
        """Return each term before its prior: an inference's mean over its draws of labels, and the encoder expert."""
        rows: dict[str, list[list[float]]] = {}
        for part in parts:
            rows.setdefault(part.prepared.inference, []).append([score.value for score in part.scores])
        terms: dict[str, Scores] = {name: np.mean(values, axis=0) for name, values in rows.items()}
        if self.encoder_expert:
            terms[ENCODER] = self.encoder_expert.scores(parts[0].text, parts[0].prepared.labels)
        return terms

    # -- label priors ----------------------------------------------------------------------------------

    def fit_priors(self, texts: Sequence[Text], progress: Progress | None = None) -> Ensemble:
        """Return the same ensemble with each term's prior fitted on texts."""
        rows: dict[str, list[tuple[float, ...]]] = {}
        for prediction in replace(self, priors={}).run(texts, progress):
            single = {self.term_names[0]: tuple(score.value for score in prediction.scores)}
            for name, values in (prediction.terms or single).items():
                rows.setdefault(name, []).append(values)
        return replace(self, priors={name: log_prior(np.array(values)) for name, values in rows.items()})

    def with_priors(self, priors: Mapping[str, Mapping[str, float]]) -> Ensemble:
        """Return the same ensemble with these label probabilities for each term."""
        names = self.labels.names
        logs = {term: np.log([by_label[name] for name in names]) for term, by_label in priors.items()}
        return replace(self, priors=logs)

    def label_priors(self) -> dict[str, dict[str, float]]:
        """Return the priors as probabilities by term and label."""
        names = self.labels.names
        return {
            # A probability that rounds to 0 would be minus infinity when it is read again.
            term: {name: max(float(p), _SMALLEST_PRIOR) for name, p in zip(names, np.exp(prior), strict=True)}
            for term, prior in self.priors.items()
        }


@dataclass(frozen=True)
class Fitted:
    """What a classifier learned from unlabelled texts: label priors per term, and the central text of each cluster.

    >>> Fitted.from_dict(Fitted({"direct": {"yes": 0.7, "no": 0.3}}).to_dict()).priors["direct"]["yes"]
    0.7
    """

    priors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cluster_texts: tuple[Text, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "priors": {term: dict(priors) for term, priors in self.priors.items()},
            "cluster_texts": [
                text if isinstance(text, str) else [text.first, text.second] for text in self.cluster_texts
            ],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Fitted:
        """Return what ``to_dict`` wrote."""
        from zicl.inputs.texts import check_texts

        texts = check_texts(tuple(text) if isinstance(text, list) else text for text in values["cluster_texts"])
        return cls(values["priors"], tuple(texts))


def fit_priors(
    ensemble: Ensemble, settings: Calibration, texts: Sequence[Text], seed: int, report: ProgressReport = silent
) -> Ensemble:
    """Fit label priors on a seeded sample of the distinct texts, if the settings ask for it."""
    if not settings.fits_priors:
        return ensemble
    distinct = sorted(set(texts), key=text_key)
    count = min(settings.texts, len(distinct))
    chosen = rng(seed, "texts to measure shares on").choice(len(distinct), count, replace=False)
    done = 0

    def advance(moved: int) -> None:
        nonlocal done
        done += moved
        report("fitting label priors", done, count)

    advance(0)
    return ensemble.fit_priors([distinct[int(n)] for n in chosen], advance)


def with_given_priors(ensemble: Ensemble, settings: Calibration) -> Ensemble:
    """Use the priors that the settings give; only one term can have given priors."""
    if settings.priors is None:
        return ensemble
    if len(ensemble.term_names) > 1:
        raise ConfigError(
            f"priors were given, but several terms are joined: {', '.join(ensemble.term_names)}",
            hint="fit them on texts, or use one inference without the encoder expert",
        )
    missing = sorted(set(ensemble.labels.names) ^ set(settings.priors))
    if missing:
        raise ConfigError(
            f"the priors and the labels differ in: {', '.join(missing)}",
            hint=f"give a probability for each of: {', '.join(ensemble.labels.names)}",
        )
    return ensemble.with_priors({ensemble.term_names[0]: settings.priors})


def _per_text(count: int, progress: Progress | None) -> Callable[[int], None] | None:
    """Report progress in texts, where each text has ``count`` prompts."""
    if progress is None or count == 1:
        return progress
    done = 0

    def advance(prompts: int) -> None:
        nonlocal done
        before, done = done // count, done + prompts
        progress(done // count - before)

    return advance
