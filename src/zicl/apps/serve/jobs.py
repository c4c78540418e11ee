"""A group of works computed together: all prompts through the language model at once, a failure stays alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Protocol

from zicl.apps.serve import schema
from zicl.apps.serve.configurations import ClassifierCache, RequestedSettings
from zicl.corpus.store import Sentence
from zicl.exceptions import SynonymError
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
    """What the language model is asked, and how its scores become an answer."""

    finish: Callable[[Sequence[BranchScores]], Any]
    prompts: Sequence[Prompt] = field(default=())


class Job(Protocol):
    """Work that is begun, scored with others, and finished."""

    def begin(self) -> PendingJob:
        """Everything before the language model."""
        ...


def compute(works: Sequence[Job], score: Score) -> list[Any]:
    """An answer or an exception for each work."""
    begun = [_tried(work.begin) for work in works]
    asked = [each for each in begun if isinstance(each, PendingJob)]
    scored = iter(_scored(asked, score))
    return [_finished(each, next(scored)) if isinstance(each, PendingJob) else each for each in begun]


def _tried(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except Exception as error:
        # It is the answer to whoever asked for this, and to nobody else.
        return error


def _scored(asked: Sequence[PendingJob], score: Score) -> list[Any]:
    together = _tried(lambda: score([prompt for each in asked for prompt in each.prompts]))
    if isinstance(together, Exception):
        # One of them did it: alone, only that one fails.
        return [_tried(partial(score, each.prompts)) for each in asked] if len(asked) > 1 else [together]
    scores = iter(together)
    return [list(islice(scores, len(each.prompts))) for each in asked]


def _finished(begun: PendingJob, scores: Any) -> Any:
    return scores if isinstance(scores, Exception) else _tried(lambda: begun.finish(scores))


# -- Why a text got its label, as the API tells it. A sentence is named by its row, never by a file.


def explanation_out(result: Prediction) -> schema.ExplanationOut:
    """The demonstrations, the prompt and the scores of a result."""
    prompt, names = result.prepared.prompt, [score.label for score in result.scores]
    return schema.ExplanationOut(
        text=str(result.text),
        scores={
            s.label: schema.LabelScores(log_likelihood=s.log_likelihood, tokens=s.tokens, value=s.value)
            for s in result.scores
        },
        terms={term: dict(zip(names, values, strict=True)) for term, values in result.terms.items()},
        demonstrations=[_demonstration_out(demo) for demo in result.prepared.demos],
        prompt=schema.PromptParts(
            prefix=prompt.prefix.text,
            stem=prompt.stem.text,
            # Behind the labels' branches stand those of inputs without content, which are left out.
            branches=[
                schema.PromptBranch(label=name, given=branch.given.text, scored=branch.scored.text)
                for name, branch in zip(names, prompt.branches, strict=False)
            ],
            kept=prompt.kept,
            dropped=prompt.dropped,
            demos_cut=prompt.demos_cut,
            input_cut=prompt.input_cut,
        ),
    )


def sentence_out(found: Sentence, nearest: Sentence | None, similarity: float | None) -> schema.FoundSentence:
    """A sentence and how it was found."""
    return schema.FoundSentence(
        row=found.row,
        text=str(found.text),
        document=found.document,
        domain=found.domain,
        nearest=None if nearest is None else schema.Near(row=nearest.row, text=str(nearest.text)),
        similarity=similarity,
        relation=_relation(found, nearest),
    )


def _relation(found: Sentence, nearest: Sentence | None) -> schema.Relation:
    if nearest is None:
        return "random"
    if nearest.row == found.row:
        return "nearest"
    beside = abs(nearest.row - found.row) == 1 and nearest.document == found.document
    return "neighbour" if beside else "domain"


def _demonstration_out(demo: Demonstration) -> schema.ShownSentence:
    found = sentence_out(demo.sentence, demo.nearest, demo.similarity)
    return schema.ShownSentence(**dict(found), label=demo.label, words=demo.words, kept=demo.kept)


# -- What a client may have computed: a text classified, sentences retrieved, synonyms suggested.


@dataclass(frozen=True)
class ClassifyAnswer:
    """A result, for whatever place in a request, and the settings it was made with."""

    result: schema.ResultOut
    settings: schema.SettingsOut
    weight: int

    def at(self, index: int) -> schema.ResultOut:
        """The result at its place in a request."""
        return self.result.model_copy(update={"index": index})


@dataclass(frozen=True)
class ClassifyJob:
    """A text to classify under a configuration."""

    configurations: ClassifierCache
    text: str
    configuration: RequestedSettings
    explain: bool

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "classify", self.text, self.configuration, self.explain

    def begin(self) -> PendingJob:
        """The prompts of the text."""
        configured = self.configurations.get(self.configuration)
        prepared = configured.ensemble.prepare(self.text)

        def finish(scores: Sequence[BranchScores]) -> ClassifyAnswer:
            result = _result_out(configured.ensemble.predict(prepared, scores), explain=self.explain)
            # What it is kept under counts as well: a request may name many labels.
            weight = len(result.model_dump_json(exclude_unset=True)) + len(self.text) + configured.weight
            return ClassifyAnswer(result, configured.settings, weight)

        return PendingJob(finish, [item.prompt for item in prepared])


def _result_out(result: Prediction, *, explain: bool) -> schema.ResultOut:
    """A result as the API tells it."""
    told = schema.ResultOut(
        index=0,
        label=result.label,
        margin=result.margin,
        probabilities=result.probabilities,
        log_likelihoods={score.label: score.log_likelihood for score in result.scores},
    )
    # What is not set is left out of the answer.
    return told.model_copy(update={"explanation": explanation_out(result)}) if explain else told


@dataclass(frozen=True)
class JobAnswer:
    """An answer that does not come from the language model's scores."""

    response: schema.RetrieveResponse | schema.SynonymsResponse

    @property
    def weight(self) -> int:
        """About its size in bytes."""
        return len(self.response.model_dump_json())


@dataclass(frozen=True)
class RetrieveJob:
    """A text to find sentences for."""

    index: Index
    retriever: Retriever
    text: str
    method: str
    k: int
    seed: int

    @property
    def key(self) -> Hashable:
        """What the answer depends on: the retriever follows from its method, with the server's own settings."""
        return "retrieve", self.text, self.method, self.k, self.seed

    def begin(self) -> PendingJob:
        """The sentences; the language model is not asked."""
        found = self.retriever.retrieve(self.index, Query(self.text, self.seed), self.k)
        sentences = [
            sentence_out(
                self.index.sentence(item.row),
                None if item.nearest is None else self.index.sentence(item.nearest),
                item.similarity,
            )
            for item in found
        ]
        response = schema.RetrieveResponse(sentences=sentences, method=self.method, k=self.k)
        return PendingJob(lambda _: JobAnswer(response))


@dataclass(frozen=True)
class SynonymsJob:
    """Labels to find synonyms for."""

    labels: Labels
    encoder: Encoder | None
    lm: LanguageModel

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "synonyms", self.labels

    def begin(self) -> PendingJob:
        """The synonyms; the search asks the language model by itself."""
        given = {label.name: [_known(word) for word in label.synonyms] for label in self.labels}
        known = paper_table(self.labels.words)
        if known is not None:
            found = {label.name: [_known(word) for word in known[label.words]] for label in self.labels}
        else:
            found = self._search()
        response = schema.SynonymsResponse(synonyms={name: given[name] or found.get(name, []) for name in given})
        return PendingJob(lambda _: JobAnswer(response))

    def _search(self) -> dict[str, list[schema.SuggestionOut]]:
        if all(label.synonyms for label in self.labels):
            return {}
        if self.encoder is None:
            raise SynonymError("synonyms are found with the corpus' encoder, and there is no corpus")
        found = suggest_synonyms(self.labels, self.encoder, self.lm, offline=True)
        return {
            name: [schema.SuggestionOut(word=option.word, score=option.score) for option in options]
            for name, options in found.items()
        }


def _known(word: str) -> schema.SuggestionOut:
    return schema.SuggestionOut(word=word, score=None)
