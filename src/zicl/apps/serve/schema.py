"""The requests and answers of the API as strict models; the OpenAPI document is generated from them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from zicl.apps.serve.queue import MOST_LONG_JOBS
from zicl.config import METHODS

# Fixed limits; those that an operator may change are in limits.py.
_WORDS = 200
_SYNONYMS = 20
_LINE = 1000
# The largest integer that JavaScript represents exactly.
_MAX_INTEGER = 2**53 - 1

Words = Annotated[str, StringConstraints(min_length=1, max_length=_WORDS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=_WORDS)]
TemplateLine = Annotated[str, StringConstraints(min_length=1, max_length=_LINE)]
FitId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
Inference = Literal["channel", "direct", "both"]


class _Model(BaseModel):
    # Strict: "5" is not a number and 1 not a truth value; unknown keys are errors.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LabelSpec(_Model):
    """A label: the model reads its ``words`` (by default its name), demonstrations show its ``synonyms``.

    >>> LabelSpec(name="positive", words="great", synonyms=["good"]).words
    'great'
    """

    name: Words
    words: Words | None = None
    synonyms: list[Words] = Field(default=[], max_length=_SYNONYMS)
    description: str = Field(
        "", max_length=_WORDS, description="What the encoder compares texts with; by default the words."
    )


class ClassifierChoice(_Model):
    """The settings of one request; the server has a default for each."""

    labels: list[Words | LabelSpec] | None = Field(None, min_length=2, description="At least two.")
    template: Name | Annotated[list[TemplateLine], Field(min_length=2, max_length=2)] | None = Field(
        None, description="A name, or two lines: one with {input} and one with {label}."
    )
    method: Name | None = Field(
        None, description="Who is asked, and how demonstrations are made.", json_schema_extra={"enum": [*METHODS]}
    )
    inference: Inference | None = Field(None, description="P(text | label), P(label | text), or both joined.")
    k: int | None = Field(None, ge=0, le=_MAX_INTEGER, description="The number of demonstrations, where there are any.")
    seed: int | None = Field(None, ge=0, le=_MAX_INTEGER, description="The seed of all random draws.")


class ClassifyRequest(ClassifierChoice):
    """One ``text`` or many ``texts``, and the settings for them, or the ``fit`` that has its own."""

    text: str | None = Field(None, description="One text; or give texts.")
    texts: list[str] | None = Field(None, min_length=1, description="Many texts; or give text.")
    fit: FitId | None = Field(None, description="What /v1/fit answered: classify with what it learned.")
    top: int | None = Field(
        None, ge=1, le=_MAX_INTEGER, description="Only the probabilities of this many labels, the likeliest first."
    )
    explain: bool = Field(False, description="Include each result's demonstrations and prompt.")
    stream: bool = Field(False, description="NDJSON: one result per line, as soon as it is computed.")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.text is not None and self.texts is not None:
            raise ValueError("text and texts were both given")
        if self.text is None and self.texts is None:
            raise ValueError("neither text nor texts was given")
        return self


class FitRequest(ClassifierChoice):
    """The ``texts`` to learn from, and the settings of the classifier that learns; its method is z-icl+."""

    texts: list[str] = Field(min_length=1, description="The pile: unlabelled texts, most often those to be labelled.")
    stream: bool = Field(False, description="NDJSON: a line of progress per group of texts, and the answer last.")


class MapRequest(_Model):
    """The ``texts`` to lay out in two dimensions."""

    texts: list[str] = Field(min_length=3, description="At least three.")
    stream: bool = Field(False, description="NDJSON: lines of progress, and the answer last.")


class RetrieveRequest(_Model):
    """A text to find sentences for; ``method`` is a retrieval method, by default the server's."""

    text: str
    k: int | None = Field(None, ge=1, le=_MAX_INTEGER)
    method: Name | None = Field(None, description="physical, nearest, diverse, random or domain-random.")
    seed: int | None = Field(None, ge=0, le=_MAX_INTEGER)


class SynonymsRequest(_Model):
    """Labels to find synonyms for; labels with synonyms keep them."""

    labels: list[Words | LabelSpec] = Field(min_length=2)


class Near(_Model):
    """The nearest sentence, through which a demonstration was found."""

    row: int
    text: str


# How a sentence was chosen: it is the nearest one, next to it, in its domain, or drawn at random.
Relation = Literal["nearest", "neighbour", "domain", "random"]


class FoundSentence(_Model):
    """A sentence of the corpus and how it was found; ``row`` is its id for /v1/paragraph/{row}."""

    row: int
    text: str
    document: int
    domain: str
    nearest: Near | None
    similarity: float | None
    relation: Relation


class ShownSentence(FoundSentence):
    """A pseudo-demonstration: a sentence with its random label and the words shown for it.

    ``kept`` is false if it was dropped because the prompt would have been too long.
    """

    label: str
    words: str
    kept: bool


class LabelScores(_Model):
    """The log-likelihood of the ``tokens`` scored tokens, and the ``value`` that is compared (calibrated, joined).

    Where no language model was asked, there is no log-likelihood.
    """

    log_likelihood: float | None
    tokens: int
    value: float


class PromptBranch(_Model):
    """What one label adds to the prompt: a given part, then the scored part."""

    label: str
    given: str
    scored: str


class PromptParts(_Model):
    """The exact prompt: ``prefix`` + ``stem`` come before every branch."""

    prefix: str
    stem: str
    branches: list[PromptBranch]
    kept: int
    dropped: int
    demos_cut: int
    input_cut: bool


class NearWords(_Model):
    """Words of a label, and the cosine of the text to them."""

    words: str
    similarity: float


class ExplanationOut(_Model):
    """Why a text got its label. Demonstrations are in the order of the prompt: by default the farthest first."""

    text: str
    scores: dict[str, LabelScores]
    terms: dict[str, dict[str, float]] = Field(
        description="The scores that were joined, by expert and label; {} for one prompt."
    )
    experts: dict[str, dict[str, float]] = Field(
        description="What each expert says by itself: probabilities by expert and label; {} for one prompt."
    )
    nearest: dict[str, list[NearWords]] = Field(
        description="The words and descriptions that the encoder compared the text with, by label, nearest first; {} "
        "where no encoder was asked."
    )
    demonstrations: list[ShownSentence]
    prompt: PromptParts | None = Field(description="Null where no language model was asked.")


class ResultOut(_Model):
    """One classified text: its ``index`` in the request; ``margin``: how far it is from another answer.

    ``labels`` has one label, or where a text may have several any number; ``label`` joins them with ``|``.
    """

    index: int
    label: str
    labels: list[str]
    margin: float
    probabilities: dict[str, float]
    log_likelihoods: dict[str, float] = Field(description="By label; {} where no language model was asked.")
    truncated: bool = Field(description="Whether the text was too long: only a part of it was read.")
    explanation: ExplanationOut | None = None


class LabelOut(_Model):
    """A label with the synonyms in use."""

    name: str
    words: str
    synonyms: list[str]
    description: str


class SettingsOut(_Model):
    """The settings that were used, the server's defaults included."""

    labels: list[LabelOut]
    template: list[str]
    method: str
    retrieval: str
    inference: Inference
    experts: list[str]
    pile: int = Field(description="How many texts were learned from; 0 where none were, as for other labels.")
    k: int
    seed: int
    calibration: str
    share: int
    none: str | None = Field(description="The label of texts that fit no other, if there is one.")
    multi: bool = Field(description="Whether a text may have any number of labels.")


class ClassifyResponse(_Model):
    """Results in the order of the texts."""

    results: list[ResultOut]
    settings: SettingsOut


class FitResponse(_Model):
    """What was learned: its id for /v1/classify, and ``settings.pile``, the number of different texts behind it.

    ``weight`` says how much the texts count, from 0 to 1: less where halves of them lead to different labels. What was
    learned is kept for a while; one that is gone is a 404, and its texts have to be sent again.
    """

    fit: FitId
    weight: float
    warnings: list[str]
    settings: SettingsOut


class MapResponse(_Model):
    """The places of the texts, in their order, from -1 to 1; ``outlying`` texts are like no others."""

    points: list[list[float]] = Field(description="x and y of each text.")
    outlying: list[bool]
    layout: Literal["tsne", "pca"]


class ProgressLine(_Model):
    """How far a piece of work is, in a stream."""

    stage: str = Field(description="encoding, learning or drawing.")
    done: int
    total: int


class RetrieveResponse(_Model):
    """Sentences, nearest first."""

    sentences: list[FoundSentence]
    method: str
    k: int


class ParagraphSentence(_Model):
    """A sentence of a paragraph."""

    row: int
    text: str


class ParagraphResponse(_Model):
    """The paragraph that contains the sentence ``row``, in reading order."""

    row: int
    document: int
    domain: str
    sentences: list[ParagraphSentence]


class SuggestionOut(_Model):
    """A synonym that demonstrations can show for a label; the higher its score the better."""

    word: str
    score: float | None = Field(description="None for a given synonym, or one of the paper's.")


class SynonymsResponse(_Model):
    """Suggested synonyms of each label, best first; an empty list where none is good enough."""

    synonyms: dict[str, list[SuggestionOut]]


class CorpusInfo(_Model):
    """The corpus that demonstrations come from; older ones do not say how many of the documents they kept."""

    sentences: int
    indexed: int
    documents_read: int
    documents_kept: int | None
    domains: list[str]
    hash: str


class ModelInfo(_Model):
    """A model; its name is "local" if it is a folder or file, and the server's name for it if it is remote."""

    name: str
    identity: str


class LimitsInfo(_Model):
    """The limits of a request, of the queue, and of the time for an answer."""

    body: int = Field(description="Bytes per request.")
    texts: int = Field(description="Texts per request.")
    characters: int = Field(description="Characters per text.")
    labels: int
    k: int
    pile: int = Field(description="Texts that are learned from, or drawn on a map, together.")
    queue: int = Field(
        description="Texts that may wait, of all requests; a fit or a map counts as one, and at most "
        f"{MOST_LONG_JOBS} are admitted."
    )
    deadline: float = Field(description="Seconds.")


class InfoResponse(_Model):
    """What this server runs, its settings, and the names and limits that requests can use."""

    corpus: CorpusInfo | None
    encoder: ModelInfo | None
    lm: ModelInfo | None = Field(description="Null where the server's settings ask no language model.")
    versions: dict[str, str]
    settings: SettingsOut
    limits: LimitsInfo
    methods: list[str]
    retrievals: list[str]
    inferences: list[str]
    templates: dict[str, list[str]] = Field(
        description="The two lines of each template, by name; templates for pairs are left out."
    )


class HealthResponse(_Model):
    """Whether the server runs, and whether its models are loaded."""

    status: Literal["ok", "starting", "stopping"]


class Problem(_Model):
    """An error as in RFC 9457, with what was expected and what to do. ``field`` names the part of the request."""

    type: str
    title: str
    status: int
    detail: str
    expected: str | None = None
    hint: str | None = None
    field: str | None = Field(None, description='For example "labels", "texts.3", "template" or "k".')
    index: int | None = Field(None, description="The index of the text that failed, if one did.")
