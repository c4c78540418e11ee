"""Join the experts' scores of a text into one prediction; most often there is only one.

pipelines, one per inference and draw of labels ─┐
             mean over the draws of labels       ├─ one term each ─ minus its prior ─ joined ─ with the pile
encoder expert ──────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from zicl._util.counts import counted
from zicl._util.progress import Progress, ProgressReport, silent
from zicl._util.random import rng
from zicl.config import ONE_LABEL, Calibration, Decision
from zicl.exceptions import ConfigError, UsageError
from zicl.inputs.pair import Text, text_key
from zicl.prompt.builder import BranchScores
from zicl.prompt.labelers import AssignedLabel
from zicl.prompt.labels import Labels
from zicl.score.calibration import Scores, join_terms, log_prior, log_softmax
from zicl.score.experts import EncoderExpert, Vectors, neutral_sentences
from zicl.score.pile import PileModel
from zicl.score.pipeline import Pipeline, split_probe
from zicl.score.results import LabelScore, Prediction, PreparedText

# The term of what was learned from the pile.
PILE = "pile"
# A prompt with demonstrations costs a second: this many sentences without content have to do.
_NEUTRAL = 16
_SMALLEST_PRIOR = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Ensemble:
    """Experts that are joined: pipelines over one language model, and the encoder expert; either may be missing.

    The first pipeline is the one that is explained. ``priors`` holds, for each term, the log-probabilities of the
    labels over some texts, ``pile`` what was learned from a pile: both are fitted once, then frozen.
    """

    labels: Labels
    pipelines: tuple[Pipeline, ...] = ()
    encoder_expert: EncoderExpert | None = None
    priors: Mapping[str, Scores] = field(default_factory=dict)
    pile: PileModel | None = None
    decision: Decision = ONE_LABEL

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that a text can get: the labels, and last the name for none of them."""
        return self.labels.names if self.decision.none is None else (*self.labels.names, self.decision.none)

    def closeness(self, vectors: Vectors) -> Scores | None:
        """Return how close texts are to the labels, where they may fit none."""
        if self.decision.none is None or self.encoder_expert is None:
            return None
        return self.encoder_expert.closeness(vectors, self.labels)

    def embed(self, texts: Sequence[Text]) -> Vectors:
        """Return the vectors of texts by the encoder expert, encoded together, whatever is known of them."""
        assert self.encoder_expert is not None
        return self.encoder_expert.embed(texts)

    def nearest_words(
        self, text: Text, labels: Labels | None = None, vector: Vectors | None = None
    ) -> dict[str, list[tuple[str, float]]]:
        """Return which words of each label a text is close to, where the encoder expert compared it with them."""
        expert = self.encoder_expert
        if expert is None or expert.plain:
            return {}
        known = expert.text_vectors([text.strip()])[0] if vector is None else vector
        return expert.nearest_words(known, labels or self.labels)

    def with_known(self, known: Mapping[Text, Vectors]) -> Ensemble:
        """Return the same ensemble, whose encoder expert has these vectors of texts."""
        expert = self.encoder_expert
        return self if expert is None else replace(self, encoder_expert=replace(expert, known=known))

    @property
    def main(self) -> Pipeline | None:
        """The pipeline whose prompt and demonstrations are explained; None without a language model."""
        return self.pipelines[0] if self.pipelines else None

    @property
    def term_names(self) -> tuple[str, ...]:
        """The names of the experts' terms that are joined."""
        terms = dict.fromkeys(pipeline.term for pipeline in self.pipelines)
        return (*terms, self.encoder_expert.name) if self.encoder_expert else tuple(terms)

    @property
    def costs(self) -> dict[str, str]:
        """What each expert costs for a text, by term."""
        costs = {pipeline.term: pipeline.cost for pipeline in self.pipelines}
        return costs | ({self.encoder_expert.name: self.encoder_expert.cost} if self.encoder_expert else {})

    @property
    def joins(self) -> bool:
        """Whether the values compared are made of terms: of several experts, of an encoder, or minus a prior."""
        return len(self.pipelines) > 1 or bool(self.encoder_expert or self.priors)

    @property
    def is_calibrated(self) -> bool:
        """Whether the values compared are more than one prompt's log-likelihoods."""
        return self.joins or bool(self.main and self.main.probes)

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
        vectors = self._vectors(texts, progress)
        rows = zip(texts, choices, same, vectors, strict=True)
        prepared = [self.prepare(text, labels, own, vector) for text, labels, own, vector in rows]
        if self.main is None:
            return [self.predict(item, ()) for item in prepared]
        prompts = [prompt for item in prepared for prompt in item.prompts]
        scores = iter(self.main.lm.score(prompts, _per_text(len(self.pipelines), progress)))
        return [self.predict(item, list(islice(scores, len(item.inputs)))) for item in prepared]

    def _vectors(self, texts: Sequence[Text], progress: Progress | None) -> Iterable[Vectors | None]:
        """Return the vectors of texts, encoded together, where an expert needs them."""
        if self.encoder_expert is None:
            return [None] * len(texts)
        vectors = self.encoder_expert.text_vectors([text.strip() for text in texts])
        if progress is not None and self.main is None:
            progress(len(texts))
        return vectors

    def prepare(
        self,
        text: Text,
        labels: Labels | None = None,
        identical: AssignedLabel | None = None,
        vector: Vectors | None = None,
    ) -> PreparedText:
        """Prepare one text for every expert."""
        if vector is None and self.encoder_expert is not None:
            vector = self.encoder_expert.text_vectors([text.strip()])[0]
        inputs = tuple(pipeline.prepare(text, labels, identical) for pipeline in self.pipelines)
        return PreparedText(text.strip(), labels or self.labels, inputs, vector)

    def cuts(self, prepared: PreparedText) -> bool:
        """Return whether a text is too long for an expert, which then sees only a part of it."""
        in_prompt = any(prompt.input_cut for prompt in prepared.prompts)
        return in_prompt or (self.encoder_expert is not None and self.encoder_expert.cuts(str(prepared.text)))

    def predict(self, prepared: PreparedText, scores: Sequence[BranchScores]) -> Prediction:
        """Turn a text's vector and the scores of all its prompts into one prediction."""
        rows = zip(self.pipelines, prepared.inputs, scores, strict=True)
        return self._join(prepared, [pipeline.predict(item, score) for pipeline, item, score in rows])

    def _choices(self, count: int, options: Sequence[Sequence[str]] | None) -> list[Labels]:
        """Return the labels that each text has to choose from."""
        if options is None:
            if self.labels.counted:
                raise ConfigError(
                    "the labels only count options, and no text's options were given",
                    hint="give them: `options=…`; batch calibration needs labels of all texts",
                )
            return [self.labels] * count
        if len(options) != count:
            raise UsageError(
                f"{counted(count, 'text was', 'texts were')} given, and options for {len(options)}",
                hint="give each text its own",
            )
        choices = [self.labels.among(each, f"row {number}") for number, each in enumerate(options)]
        if (self.priors or self.pile) and any(labels.names != self.labels.names for labels in choices):
            fitted = "the pile was learned" if self.pile else "priors were fitted"
            raise ConfigError(
                f"{fitted} for all labels, and some texts have only some of them",
                hint="use `method='encoder'` or `method='z-icl'`, without batch calibration",
            )
        return choices

    def _join(self, prepared: PreparedText, parts: Sequence[Prediction]) -> Prediction:
        if not self.joins:
            return parts[0]
        terms = self._terms(prepared, parts)
        values = self._joined_values(terms, prepared.vector)
        if self.pile is not None and prepared.vector is not None:
            terms[PILE] = self.pile.scores(prepared.vector[None])[0]
        first = parts[0] if parts else Prediction(prepared.text, ())
        names = self.names if self.pile is not None else prepared.labels.names
        # The prompt's labels come first; none of them, and all where no prompt was scored, have no log-likelihood.
        likelihoods = chain((score.log_likelihood for score in first.scores), repeat(None))
        tokens = chain((score.tokens for score in first.scores), repeat(0))
        return replace(
            first,
            scores=tuple(map(LabelScore, names, likelihoods, tokens, values.tolist())),
            parts=tuple(parts) if len(parts) > 1 else (),
            terms={name: tuple(values.tolist()) for name, values in terms.items()},
            spread=self._spread(prepared, parts, int(np.argmax(values))),
            decision=self.decision,
        )

    def _joined_values(self, terms: Mapping[str, Scores], vector: Vectors | None) -> Scores:
        joined = join_terms(np.stack([values - self.priors.get(name, 0.0) for name, values in terms.items()]))
        if self.pile is None or vector is None:
            return joined
        together: Scores = self.pile.join(joined[None], vector[None], self.closeness(vector[None]))[0]
        return together

    def _spread(self, prepared: PreparedText, parts: Sequence[Prediction], best: int) -> float | None:
        """Return the standard deviation of the best label's probability over the draws of labels."""
        draws: dict[int, list[Prediction]] = {}
        for part in parts:
            if part.prepared is not None:
                draws.setdefault(part.prepared.assignment, []).append(part)
        if len(draws) < 2:
            return None
        probabilities = []
        for drawn in draws.values():
            values = self._joined_values(self._terms(prepared, drawn), prepared.vector)
            probabilities.append(np.exp(log_softmax(values))[best])
        return float(np.std(probabilities, ddof=1))

    def _terms(self, prepared: PreparedText, parts: Sequence[Prediction]) -> dict[str, Scores]:
        """Return each expert's term before its prior; a pipeline's is its mean over the draws of labels."""
        rows: dict[str, list[list[float]]] = {}
        for part in parts:
            assert part.prepared is not None
            rows.setdefault(part.prepared.inference, []).append([score.value for score in part.scores])
        terms: dict[str, Scores] = {name: np.mean(values, axis=0) for name, values in rows.items()}
        if self.encoder_expert is not None and prepared.vector is not None:
            terms[self.encoder_expert.name] = self.encoder_expert.scores(prepared.vector[None], prepared.labels)[0]
        return terms

    # -- label priors ----------------------------------------------------------------------------------

    def fit_priors(self, texts: Sequence[Text], progress: Progress | None = None) -> Ensemble:
        """Return the same ensemble with each term's prior fitted on texts."""
        rows: dict[str, list[tuple[float, ...]]] = {}
        for prediction in replace(self, priors={}, pile=None).run(texts, progress):
            single = {self.term_names[0]: tuple(score.value for score in prediction.scores)}
            for name, values in (prediction.terms or single).items():
                rows.setdefault(name, []).append(values)
        if self.encoder_expert is not None and not self.encoder_expert.plain:
            # It has subtracted its bias already.
            del rows[self.encoder_expert.name]
        return replace(self, priors={name: log_prior(np.array(values)) for name, values in rows.items()})

    def with_priors(self, priors: Mapping[str, Mapping[str, float]]) -> Ensemble:
        """Return the same ensemble with these label probabilities for each term."""
        if unknown := sorted(set(priors) - set(self.term_names)):
            raise ConfigError(
                f"there are priors for {unknown[0]!r}, which no expert is called",
                hint=f"the experts are: {', '.join(self.term_names)}",
            )
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
    """What a classifier learned from texts: label priors per term, the central text of each cluster, and the pile.

    >>> Fitted.from_dict(Fitted({"direct": {"yes": 0.7, "no": 0.3}}).to_dict()).priors["direct"]["yes"]
    0.7
    """

    priors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cluster_texts: tuple[Text, ...] = ()
    pile: PileModel | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; the weights of the pile's model are named by their hash."""
        return {
            "priors": {term: dict(priors) for term, priors in self.priors.items()},
            "cluster_texts": [
                text if isinstance(text, str) else [text.first, text.second] for text in self.cluster_texts
            ],
            "pile": None if self.pile is None else self.pile.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], pile: PileModel | None = None) -> Fitted:
        """Return what ``to_dict`` wrote, with the pile's model, which is stored beside it."""
        from zicl.inputs.texts import check_texts

        texts = check_texts(tuple(text) if isinstance(text, list) else text for text in values["cluster_texts"])
        return cls(values["priors"], tuple(texts), pile)


def fit_priors(
    ensemble: Ensemble, settings: Calibration, texts: Sequence[Text], seed: int, report: ProgressReport = silent
) -> Ensemble:
    """Fit label priors, if the settings ask for it: on a seeded sample of the distinct texts, or on neutral ones."""
    distinct: list[Text]
    if settings.method == "neutral":
        two_fields = ensemble.main is not None and ensemble.main.builder.template.two_fields
        distinct = [split_probe(text) if two_fields else text for text in neutral_sentences()[:_NEUTRAL]]
    elif settings.fits_priors:
        distinct = sorted(set(texts), key=text_key)
    else:
        return ensemble
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
