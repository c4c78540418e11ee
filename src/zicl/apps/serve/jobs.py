"""What a client may have computed (labels, sentences, synonyms), and how a group of such jobs is computed together.

All prompts of a group go through the language model in one call; a job that fails does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Protocol

from pydantic import BaseModel

from zicl.apps.serve import schema
from zicl.apps.serve.configurations import ClassifierCache, RequestedSettings
from zicl.apps.serve.queue import Unfinished
from zicl.corpus.store import Sentence
from zicl.exceptions import SynonymError
from zicl.explanation import Explanation
from zicl.lm.base import LanguageModel
from zicl.prompt.builder import BranchScores, Prompt
from zicl.prompt.labels import Labels
from zicl.prompt.synonyms import paper_table, suggest_synonyms
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import Index
from zicl.retrieve.strategies.base import Query, Retriever
from zicl.score.results import Demonstration, Prediction

Score = Callable[[Sequence[Prompt]], Sequence[BranchScores]]


@dataclass(frozen=True)
class PendingJob:
    """A job that waits for the scores of its prompts: ``finish`` turns them into its answer."""

    finish: Callable[[Sequence[BranchScores]], Any]
    prompts: Sequence[Prompt] = field(default=())


class Job(Protocol):
    """A job that is prepared, scored together with others, and finished."""

    def begin(self) -> PendingJob | Unfinished:
        """Do everything that comes before the language model, or a part of it where that takes several turns."""
        ...


def compute(jobs: Sequence[Job], score: Score) -> list[Any]:
    """Return an answer or an exception for each job."""
    begun = [_try(job.begin) for job in jobs]
    pending = [each for each in begun if isinstance(each, PendingJob)]
    scores = iter(_score(pending, score))
    return [_finish(each, next(scores)) if isinstance(each, PendingJob) else each for each in begun]


def _try(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except Exception as error:
        # It is the answer of this job, and of no other.
        return error


def _score(pending: Sequence[PendingJob], score: Score) -> list[Any]:
    prompts = [prompt for each in pending for prompt in each.prompts]
    if not prompts:
        # No language model is loaded for answers that need none.
        return [[] for _ in pending]
    together = _try(lambda: score(prompts))
    if isinstance(together, Exception):
        # Score them one by one: only the job that caused it fails.
        if len(pending) == 1:
            return [together]
        return [_try(partial(score, each.prompts)) if each.prompts else [] for each in pending]
    scores = iter(together)
    return [list(islice(scores, len(each.prompts))) for each in pending]


def _finish(pending: PendingJob, scores: Any) -> Any:
    return scores if isinstance(scores, Exception) else _try(lambda: pending.finish(scores))


@dataclass(frozen=True)
class ClassifyAnswer:
    """A result, independent of its place in a request, and the settings it was made with."""

    result: schema.ResultOut
    settings: schema.SettingsOut
    weight: int

    def at(self, index: int) -> schema.ResultOut:
        """Return the result with its place in a request."""
        return self.result.model_copy(update={"index": index})


@dataclass(frozen=True)
class ClassifyJob:
    """Classify a text under the settings of a request."""

    configurations: ClassifierCache
    text: str
    # The settings of the request, or what was learned from texts, by its id.
    settings: RequestedSettings | str
    explain: bool
    top: int | None = None

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "classify", self.text, self.settings, self.explain, self.top

    def begin(self) -> PendingJob:
        """Build the prompts of the text."""
        configured = self.configurations.get(self.settings)
        prepared = configured.ensemble.prepare(self.text)

        def finish(scores: Sequence[BranchScores]) -> ClassifyAnswer:
            prediction = configured.ensemble.predict(prepared, scores)
            truncated = configured.ensemble.cuts(prepared)
            result = _result_out(prediction, truncated=truncated, top=self.top)
            if self.explain:
                nearest = configured.ensemble.nearest_words(prepared.text, prepared.labels, prepared.vector)
                explanation = _explanation_out(Explanation(prediction, nearest))
                # A field that is not set is left out of the answer.
                result = result.model_copy(update={"explanation": explanation})
            # The cache's key counts as well: a request may name many labels.
            weight = len(result.model_dump_json(exclude_unset=True)) + len(self.text) + configured.weight
            return ClassifyAnswer(result, configured.settings, weight)

        return PendingJob(finish, prepared.prompts)


@dataclass(frozen=True)
class JobAnswer:
    """An answer that needs no scores of the language model, and whether it may be given again."""

    response: schema.RetrieveResponse | schema.SynonymsResponse | schema.FitResponse | schema.MapResponse
    keep: bool = True

    @property
    def weight(self) -> int | None:
        """About its size in bytes; None if it is not kept."""
        return len(self.response.model_dump_json()) if self.keep else None

    def at(self, _index: int) -> BaseModel:
        """Return the answer: it is the only one of its request."""
        return self.response


@dataclass(frozen=True)
class RetrieveJob:
    """Find sentences for a text."""

    index: Index
    retriever: Retriever
    text: str
    method: str
    k: int
    seed: int

    @property
    def key(self) -> Hashable:
        """What the answer depends on: the retriever follows from its method and the server's settings."""
        return "retrieve", self.text, self.method, self.k, self.seed

    def begin(self) -> PendingJob:
        """Find the sentences; no prompt is scored."""
        sentences = [
            _sentence_out(
                self.index.sentence(hit.row),
                None if hit.nearest is None else self.index.sentence(hit.nearest),
                hit.similarity,
            )
            for hit in self.retriever.retrieve(self.index, Query(self.text, self.seed), self.k)
        ]
        response = schema.RetrieveResponse(sentences=sentences, method=self.method, k=self.k)
        return PendingJob(lambda _: JobAnswer(response))


@dataclass(frozen=True)
class SynonymsJob:
    """Find synonyms for labels."""

    labels: Labels
    encoder: Encoder | None
    lm: Callable[[], LanguageModel]

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "synonyms", self.labels

    def begin(self) -> PendingJob:
        """Find the synonyms; the search scores its candidates itself."""
        given = {label.name: [_unscored(word) for word in label.synonyms] for label in self.labels}
        paper = paper_table(self.labels.words)
        if paper is not None:
            suggested = {label.name: [_unscored(word) for word in paper[label.words]] for label in self.labels}
        else:
            suggested = self._search()
        response = schema.SynonymsResponse(synonyms={name: given[name] or suggested.get(name, []) for name in given})
        return PendingJob(lambda _: JobAnswer(response))

    def _search(self) -> dict[str, list[schema.SuggestionOut]]:
        if all(label.synonyms for label in self.labels):
            return {}
        if self.encoder is None:
            raise SynonymError("synonyms are found with the corpus' encoder, and there is no corpus")
        suggestions = suggest_synonyms(self.labels, self.encoder, self.lm(), offline=True)
        return {
            name: [schema.SuggestionOut(word=option.word, score=option.score) for option in options]
            for name, options in suggestions.items()
        }


def _unscored(word: str) -> schema.SuggestionOut:
    return schema.SuggestionOut(word=word, score=None)


def _result_out(prediction: Prediction, *, truncated: bool, top: int | None = None) -> schema.ResultOut:
    return schema.ResultOut(
        index=0,
        label=prediction.label,
        labels=[*prediction.labels],
        margin=prediction.margin,
        probabilities=prediction.probabilities if top is None else dict(prediction.top(top)),
        log_likelihoods={s.label: s.log_likelihood for s in prediction.scores if s.log_likelihood is not None},
        truncated=truncated,
    )


def _explanation_out(explanation: Explanation) -> schema.ExplanationOut:
    prediction, prepared = explanation.prediction, explanation.prediction.prepared
    names = [score.label for score in prediction.scores]
    return schema.ExplanationOut(
        text=str(prediction.text),
        scores={
            s.label: schema.LabelScores(log_likelihood=s.log_likelihood, tokens=s.tokens, value=s.value)
            for s in prediction.scores
        },
        # An expert may have no score for none of the labels, which comes last.
        terms={term: dict(zip(names, values, strict=False)) for term, values in prediction.terms.items()},
        experts=explanation.experts,
        nearest={
            name: [schema.NearWords(words=words, similarity=round(cosine, 4)) for words, cosine in parts]
            for name, parts in explanation.nearest.items()
        },
        demonstrations=[_demonstration_out(demo) for demo in explanation.demonstrations],
        prompt=None if prepared is None else _prompt_out(prepared.prompt, prepared.labels.names),
    )


def _prompt_out(prompt: Prompt, names: Sequence[str]) -> schema.PromptParts:
    return schema.PromptParts(
        prefix=prompt.prefix.text,
        stem=prompt.stem.text,
        # The branches of content-free inputs, behind those of the labels, are left out.
        branches=[
            schema.PromptBranch(label=name, given=branch.given.text, scored=branch.scored.text)
            for name, branch in zip(names, prompt.branches, strict=False)
        ],
        kept=prompt.kept,
        dropped=prompt.dropped,
        demos_cut=prompt.demos_cut,
        input_cut=prompt.input_cut,
    )


def _demonstration_out(demo: Demonstration) -> schema.ShownSentence:
    sentence = _sentence_out(demo.sentence, demo.nearest, demo.similarity)
    return schema.ShownSentence(**dict(sentence), label=demo.label, words=demo.words, kept=demo.kept)


def _sentence_out(sentence: Sentence, nearest: Sentence | None, similarity: float | None) -> schema.FoundSentence:
    # A sentence goes by its row: files are never named.
    return schema.FoundSentence(
        row=sentence.row,
        text=str(sentence.text),
        document=sentence.document,
        domain=sentence.domain,
        nearest=None if nearest is None else schema.Near(row=nearest.row, text=str(nearest.text)),
        similarity=similarity,
        relation=_relation(sentence, nearest),
    )


def _relation(sentence: Sentence, nearest: Sentence | None) -> schema.Relation:
    if nearest is None:
        return "random"
    if nearest.row == sentence.row:
        return "nearest"
    adjacent = abs(nearest.row - sentence.row) == 1 and nearest.document == sentence.document
    return "neighbour" if adjacent else "domain"
