"""What a client may have computed: a text classified, sentences retrieved, synonyms suggested."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from zicl.apps.serve import schema
from zicl.apps.serve.configurations import Configuration, Configurations
from zicl.apps.serve.explained import explained, sentence
from zicl.apps.serve.worker import Begun
from zicl.exceptions import SynonymError
from zicl.lm.base import BranchScores, LanguageModel
from zicl.prompt.labels import Labels
from zicl.prompt.synonyms import paper_table, suggest
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import Index
from zicl.retrieve.strategies.base import Query, Retriever
from zicl.score.results import Result


@dataclass(frozen=True)
class Classified:
    """A result, for whatever place in a request, and the settings it was made with."""

    result: schema.ResultOut
    settings: schema.SettingsOut
    weight: int

    def at(self, index: int) -> schema.ResultOut:
        """The result at its place in a request."""
        return self.result.model_copy(update={"index": index})


@dataclass(frozen=True)
class Classify:
    """A text to classify under a configuration."""

    configurations: Configurations
    text: str
    configuration: Configuration
    explain: bool

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "classify", self.text, self.configuration, self.explain

    def begin(self) -> Begun:
        """The prompts of the text."""
        configured = self.configurations.get(self.configuration)
        prepared = configured.ensemble.prepare(self.text)

        def finish(scores: Sequence[BranchScores]) -> Classified:
            result = _told(configured.ensemble.result(prepared, scores), explain=self.explain)
            # What it is kept under counts as well: a request may name many labels.
            weight = len(result.model_dump_json(exclude_unset=True)) + len(self.text) + configured.weight
            return Classified(result, configured.settings, weight)

        return Begun(finish, [item.prompt for item in prepared])


def _told(result: Result, *, explain: bool) -> schema.ResultOut:
    """A result as the API tells it."""
    told = schema.ResultOut(
        index=0,
        label=result.label,
        margin=result.margin,
        probabilities=result.probabilities,
        log_likelihoods={score.label: score.log_likelihood for score in result.scores},
    )
    # What is not set is left out of the answer.
    return told.model_copy(update={"explanation": explained(result)}) if explain else told


@dataclass(frozen=True)
class Answered:
    """An answer that does not come from the language model's scores."""

    response: schema.RetrieveResponse | schema.SynonymsResponse

    @property
    def weight(self) -> int:
        """About its size in bytes."""
        return len(self.response.model_dump_json())


@dataclass(frozen=True)
class Retrieve:
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

    def begin(self) -> Begun:
        """The sentences; the language model is not asked."""
        found = self.retriever.retrieve(self.index, Query(self.text, self.seed), self.k)
        sentences = [
            sentence(
                self.index.sentence(item.row),
                None if item.nearest is None else self.index.sentence(item.nearest),
                item.similarity,
            )
            for item in found
        ]
        response = schema.RetrieveResponse(sentences=sentences, method=self.method, k=self.k)
        return Begun(lambda _: Answered(response))


@dataclass(frozen=True)
class Synonyms:
    """Labels to find synonyms for."""

    labels: Labels
    encoder: Encoder | None
    lm: LanguageModel

    @property
    def key(self) -> Hashable:
        """What the answer depends on."""
        return "synonyms", self.labels

    def begin(self) -> Begun:
        """The synonyms; the search asks the language model by itself."""
        given = {label.name: [_known(word) for word in label.synonyms] for label in self.labels}
        known = paper_table(self.labels.words)
        if known is not None:
            found = {label.name: [_known(word) for word in known[label.words]] for label in self.labels}
        else:
            found = self._search()
        response = schema.SynonymsResponse(synonyms={name: given[name] or found.get(name, []) for name in given})
        return Begun(lambda _: Answered(response))

    def _search(self) -> dict[str, list[schema.SuggestionOut]]:
        if all(label.synonyms for label in self.labels):
            return {}
        if self.encoder is None:
            raise SynonymError("synonyms are found with the corpus' encoder, and there is no corpus")
        found = suggest(self.labels, self.encoder, self.lm, offline=True)
        return {
            name: [schema.SuggestionOut(word=option.word, score=option.score) for option in options]
            for name, options in found.items()
        }


def _known(word: str) -> schema.SuggestionOut:
    return schema.SuggestionOut(word=word, score=None)
