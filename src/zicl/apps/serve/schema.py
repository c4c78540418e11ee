"""What the API takes and gives, as strict models; the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from zicl.config import METHODS

# Fixed bounds of small things; those that an operator may want to move are in limits.py.
_WORDS = 200
_SYNONYMS = 20
_LINE = 1000
# Numbers that JavaScript keeps exactly.
_MOST = 2**53 - 1

Words = Annotated[str, StringConstraints(min_length=1, max_length=_WORDS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=_WORDS)]
TemplateLine = Annotated[str, StringConstraints(min_length=1, max_length=_LINE)]
Inference = Literal["channel", "direct", "both"]


class _Model(BaseModel):
    # Strict: "5" is no number and 1 no truth value; unknown keys are errors.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# -- requests ---------------------------------------------------------------------------------------------------


class LabelSpec(_Model):
    """A label: ``words`` is what the model reads for it (the name, if left out), ``synonyms`` what demonstrations show.

    >>> LabelSpec(name="positive", words="great", synonyms=["good"]).words
    'great'
    """

    name: Words
    words: Words | None = None
    synonyms: list[Words] = Field(default=[], max_length=_SYNONYMS)
    description: str = Field(
        "", max_length=_WORDS, description="What the encoder compares texts with; the words, if none."
    )


class ClassifierChoice(_Model):
    """The settings of one request; what is left out is the server's own."""

    labels: list[Words | LabelSpec] | None = Field(None, min_length=2, description="At least two; the server's own.")
    template: Name | Annotated[list[TemplateLine], Field(min_length=2, max_length=2)] | None = Field(
        None, description="A name, or two lines: one with {input} and one with {label}."
    )
    method: Name | None = Field(
        None, description="How demonstrations are made.", json_schema_extra={"enum": [*METHODS]}
    )
    inference: Inference | None = Field(None, description="P(text | label), P(label | text), or both joined.")
    k: int | None = Field(None, ge=0, le=_MOST, description="Demonstrations; no-demos has none, whatever k is.")
    seed: int | None = Field(None, ge=0, le=_MOST, description="Decides every random draw.")


class ClassifyRequest(ClassifierChoice):
    """One ``text`` or many ``texts``, and the settings to use for them."""

    text: str | None = Field(None, description="One text; or give texts.")
    texts: list[str] | None = Field(None, min_length=1, description="Many texts; or give text.")
    explain: bool = Field(False, description="Give each result's demonstrations and prompt.")
    stream: bool = Field(False, description="NDJSON: a result a line, as each is done.")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.text is not None and self.texts is not None:
            raise ValueError("text and texts were both given")
        if self.text is None and self.texts is None:
            raise ValueError("neither text nor texts was given")
        return self

    @property
    def all_texts(self) -> list[str]:
        """The texts, however they were given."""
        return [self.text] if self.text is not None else self.texts or []


class RetrieveRequest(_Model):
    """A text to find sentences for; ``method`` is a retrieval method, the server's own if left out."""

    text: str
    k: int | None = Field(None, ge=1, le=_MOST)
    method: Name | None = Field(None, description="physical, nearest, diverse, random or domain-random.")
    seed: int | None = Field(None, ge=0, le=_MOST)


class SynonymsRequest(_Model):
    """Labels to find synonyms for; those that have some keep them."""

    labels: list[Words | LabelSpec] = Field(min_length=2)


# -- answers ----------------------------------------------------------------------------------------------------


class Near(_Model):
    """The nearest sentence, through which a demonstration was found."""

    row: int
    text: str


# How a sentence came to be shown: it is itself the nearest one, stands beside it, is of its domain, or was drawn.
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
    """A pseudo-demonstration: a sentence with its drawn label and the words shown for it.

    ``kept`` is false where it was dropped because the prompt would have been too long.
    """

    label: str
    words: str
    kept: bool


class LabelScores(_Model):
    """The sum over ``tokens`` scored tokens, and the value that is compared (calibrated or joined, if asked for)."""

    log_likelihood: float
    tokens: int
    value: float


class PromptBranch(_Model):
    """What one label adds to the prompt: a part that is given, then the part that is scored."""

    label: str
    given: str
    scored: str


class PromptParts(_Model):
    """The exact prompt: ``prefix`` + ``stem`` stand before every branch."""

    prefix: str
    stem: str
    branches: list[PromptBranch]
    kept: int
    dropped: int
    demos_cut: int
    input_cut: bool


class ExplanationOut(_Model):
    """Why a text got its label. Demonstrations stand as in the prompt: farthest first, unless ordered otherwise."""

    text: str
    scores: dict[str, LabelScores]
    terms: dict[str, dict[str, float]] = Field(description="What was joined, by term and label; {} for one prompt.")
    demonstrations: list[ShownSentence]
    prompt: PromptParts


class ResultOut(_Model):
    """One classified text; ``index`` is its place in the request, ``margin`` the first probability less the second."""

    index: int
    label: str
    margin: float
    probabilities: dict[str, float]
    log_likelihoods: dict[str, float]
    explanation: ExplanationOut | None = None


class LabelOut(_Model):
    """A label with the synonyms in use."""

    name: str
    words: str
    synonyms: list[str]
    description: str


class SettingsOut(_Model):
    """The settings that were used, the server's own included."""

    labels: list[LabelOut]
    template: list[str]
    method: str
    retrieval: str
    inference: Inference
    encoder: bool
    k: int
    seed: int
    calibration: str
    share: int


class ClassifyResponse(_Model):
    """Results in the order of the texts."""

    results: list[ResultOut]
    settings: SettingsOut


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
    """The paragraph that the sentence ``row`` stands in, in reading order."""

    row: int
    document: int
    domain: str
    sentences: list[ParagraphSentence]


class SuggestionOut(_Model):
    """A synonym that may stand for a label; the higher its score the better."""

    word: str
    score: float | None = Field(description="None for a synonym given, or one of the paper's.")


class SynonymsResponse(_Model):
    """Suggested synonyms of each label, best first; an empty list where none is good enough."""

    synonyms: dict[str, list[SuggestionOut]]


class CorpusInfo(_Model):
    """The corpus that demonstrations come from."""

    sentences: int
    indexed: int
    documents: int
    domains: list[str]
    hash: str


class ModelInfo(_Model):
    """A model; "local" stands for one from a folder or file; one behind an address goes by its own name."""

    name: str
    identity: str


class LimitsInfo(_Model):
    """What a request may hold, how many texts may wait, and how long an answer may take."""

    body: int = Field(description="Bytes of a request.")
    texts: int = Field(description="Texts of a request.")
    characters: int = Field(description="Characters of a text.")
    labels: int
    k: int
    queue: int = Field(description="Texts of all requests that may wait.")
    deadline: float = Field(description="Seconds.")


class InfoResponse(_Model):
    """What this server runs, its own settings, and what may be asked of it."""

    corpus: CorpusInfo | None
    encoder: ModelInfo | None
    lm: ModelInfo
    versions: dict[str, str]
    settings: SettingsOut
    limits: LimitsInfo
    methods: list[str]
    retrievals: list[str]
    inferences: list[str]
    templates: dict[str, list[str]] = Field(description="By name, the two lines; templates of pairs are left out.")


class HealthResponse(_Model):
    """Whether the server runs, and whether its models are loaded."""

    status: Literal["ok", "starting", "stopping"]


class Problem(_Model):
    """An error as RFC 9457 has it, with what was expected and what to do. ``field`` names the part of the request."""

    type: str
    title: str
    status: int
    detail: str
    expected: str | None = None
    hint: str | None = None
    field: str | None = Field(None, description='For example "labels", "texts.3", "template" or "k".')
    index: int | None = Field(None, description="The text that failed, where one did.")
