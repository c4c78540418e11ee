"""Several ways to ask about a text, joined to one answer; most often there is only one.

pipelines, one an inference and draw of labels ─┐
             mean over the draws of labels      ├─ a term each ─ less its prior ─ joined
the encoder's opinion ──────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from zicl.exceptions import ConfigError, UsageError
from zicl.lm.base import BranchScores, Progress
from zicl.prompt.labelers import Drawn
from zicl.prompt.labels import Labels
from zicl.score.calibration import Scores, joined, log_prior, log_softmax
from zicl.score.experts import Opinion
from zicl.score.pipeline import Pipeline
from zicl.score.results import Prepared, Result

ENCODER = "encoder"


@dataclass(frozen=True)
class Ensemble:
    """Pipelines over one language model, the first of them the one that is shown.

    ``priors`` holds, for each term, the logarithms of the labels' shares over some texts: fitted once, then frozen.
    """

    pipelines: tuple[Pipeline, ...]
    opinion: Opinion | None = None
    priors: Mapping[str, Scores] = field(default_factory=dict)

    @property
    def main(self) -> Pipeline:
        """The pipeline whose prompt and demonstrations are shown."""
        return self.pipelines[0]

    @property
    def labels(self) -> Labels:
        """The labels, with the synonyms in use."""
        return self.main.labels

    @property
    def names(self) -> tuple[str, ...]:
        """The terms that are joined."""
        inferences = dict.fromkeys(pipeline.scoring.inference for pipeline in self.pipelines)
        return (*inferences, ENCODER) if self.opinion else tuple(inferences)

    @property
    def joins(self) -> bool:
        """Whether an answer is put together from terms, or from one less its prior."""
        return len(self.pipelines) > 1 or bool(self.opinion or self.priors)

    @property
    def compares_more(self) -> bool:
        """Whether what is compared is more than one prompt's log-likelihoods."""
        return self.joins or bool(self.main.probes)

    def run(
        self,
        texts: Sequence[str],
        progress: Progress | None = None,
        options: Sequence[Sequence[str]] | None = None,
        identical: Sequence[Drawn] | None = None,
    ) -> list[Result]:
        """Classify texts, in their order; ``options`` are each text's own labels, where texts differ in them.

        ``identical`` are the labels under which each text stands among its own demonstrations, if it is to.
        """
        chosen = self._choices(len(texts), options)
        same: Sequence[Drawn | None] = identical or [None] * len(texts)
        prepared = [self.prepare(text, labels, own) for text, labels, own in zip(texts, chosen, same, strict=True)]
        prompts = [part.prompt for parts in prepared for part in parts]
        scores = iter(self.main.lm.score(prompts, _each(len(self.pipelines), progress)))
        return [self.result(parts, list(islice(scores, len(parts)))) for parts in prepared]

    def prepare(self, text: str, labels: Labels | None = None, identical: Drawn | None = None) -> list[Prepared]:
        """What the language model is asked about one text: a prompt for each pipeline."""
        return [pipeline.prepare(text, labels, identical) for pipeline in self.pipelines]

    def result(self, prepared: Sequence[Prepared], scores: Sequence[BranchScores]) -> Result:
        """The answer, from the scores of the prompts that were prepared."""
        return self._joined(
            [p.result(item, score) for p, item, score in zip(self.pipelines, prepared, scores, strict=True)]
        )

    def _choices(self, count: int, options: Sequence[Sequence[str]] | None) -> list[Labels]:
        """The labels each text has to choose from."""
        if options is None:
            if self.labels.counted:
                raise ConfigError(
                    "the labels only count options, and no text's options were given",
                    hint="classify(texts, options=…) or --options-column; batch calibration needs labels of all texts",
                )
            return [self.labels] * count
        if len(options) != count:
            raise UsageError(f"{count} texts were given, and options for {len(options)}", hint="give each text its own")
        chosen = [self.labels.among(each, f"row {number}") for number, each in enumerate(options)]
        if self.priors and any(labels.names != self.labels.names for labels in chosen):
            raise ConfigError(
                "shares were fitted for all labels, and some texts have only some of them",
                hint="use another calibration, or none",
            )
        return chosen

    def _joined(self, parts: Sequence[Result]) -> Result:
        first = parts[0]
        if not self.joins:
            return first
        terms = self._terms(parts)
        values = self._compared(terms)
        return replace(
            first,
            scores=tuple(replace(s, value=float(v)) for s, v in zip(first.scores, values, strict=True)),
            parts=tuple(parts) if len(parts) > 1 else (),
            terms={name: tuple(values.tolist()) for name, values in terms.items()},
            spread=self._spread(parts, int(np.argmax(values))),
        )

    def _compared(self, terms: Mapping[str, Scores]) -> Scores:
        return joined(np.stack([values - self.priors.get(name, 0.0) for name, values in terms.items()]))

    def _spread(self, parts: Sequence[Result], chosen: int) -> float | None:
        """How far the chosen label's probability lies apart over the draws of labels: a standard deviation."""
        draws = dict.fromkeys(part.prepared.assignment for part in parts)
        if len(draws) < 2:
            return None
        shares = []
        for draw in draws:
            own = [part for part in parts if part.prepared.assignment == draw]
            shares.append(np.exp(log_softmax(self._compared(self._terms(own))))[chosen])
        return float(np.std(shares, ddof=1))

    def _terms(self, parts: Sequence[Result]) -> dict[str, Scores]:
        """Each term before its prior: an inference's mean over its draws of labels, and the encoder's opinion."""
        rows: dict[str, list[list[float]]] = {}
        for part in parts:
            rows.setdefault(part.prepared.inference, []).append([score.value for score in part.scores])
        terms: dict[str, Scores] = {name: np.mean(values, axis=0) for name, values in rows.items()}
        if self.opinion:
            terms[ENCODER] = self.opinion.scores(parts[0].text, parts[0].prepared.labels)
        return terms

    def fitted(self, texts: Sequence[str], progress: Progress | None = None) -> Ensemble:
        """The same, with each term's prior fitted on texts."""
        rows: dict[str, list[tuple[float, ...]]] = {}
        for result in replace(self, priors={}).run(texts, progress):
            own = {self.names[0]: tuple(score.value for score in result.scores)}
            for name, values in (result.terms or own).items():
                rows.setdefault(name, []).append(values)
        return replace(self, priors={name: log_prior(np.array(values)) for name, values in rows.items()})


def _each(count: int, progress: Progress | None) -> Callable[[int], None] | None:
    """Progress in texts, where each has ``count`` prompts."""
    if progress is None or count == 1:
        return progress
    done = 0

    def advance(prompts: int) -> None:
        nonlocal done
        before, done = done // count, done + prompts
        progress(done // count - before)

    return advance
