"""Settings as a few small frozen values, each open to new options; unknown keys are errors."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from zicl._util.registry import did_you_mean
from zicl.lm.devices import read_map

# Retrievers that draw nothing: with gold labels a run of them is the same under every seed.
WITHOUT_DRAWS = ("nearest", "physical")
Order = Literal["nearest-last", "nearest-first", "shuffled"]


class Dumped(BaseModel):
    """Settings that, written down, leave out what came ``later`` and nobody set: older folders stay what they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    later: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _without_later(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        fields = type(self).model_fields
        unset = [name for name in self.later if getattr(self, name) == fields[name].default]
        return {name: value for name, value in written.items() if name not in unset}


class _Settings(Dumped):
    def over(self, base: Self) -> Self:
        """``base`` with what was set here: ``Retrieval(k=8)`` changes k and nothing else of a method.

        >>> Retrieval(k=8).over(Retrieval(method="nearest")) == Retrieval(method="nearest", k=8)
        True
        """
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


class Retrieval(_Settings):
    """Which sentences become demonstrations, and in which order they stand."""

    later = ("order",)

    method: str = "physical"
    k: int = Field(16, ge=0)
    # Of how many nearest sentences "diverse" draws: a number, or a share of the corpus (at least 2 k sentences).
    pool: int | float = 4096
    exclude_self: bool = True
    # Texts given to fit() join the corpus, in memory only.
    include_fit_texts: bool = False
    # About so many inputs share one set of demonstrations: clusters of the texts given to fit(), then frozen.
    share: int = Field(1, ge=1)
    # Whatever the order, a prompt that is too long loses its farthest demonstrations.
    order: Order = "nearest-last"

    @field_validator("pool")
    @classmethod
    def _number_or_share(cls, value: int | float) -> int | float:
        if not (value >= 1 if isinstance(value, int) else 0 < value < 1):
            raise ValueError("a whole number of sentences, at least 1, or a share of the corpus between 0 and 1")
        return value


class Labelling(_Settings):
    """Which labels the demonstrations get, and which words these are shown as."""

    later = ("seed",)

    # "neighbours": sentences that stand near a demonstration, for options that are other words for every text.
    # "none": the sentences alone, no label beside them.
    words: Literal["original", "synonyms", "random-words", "neighbours", "none"] = "synonyms"
    # Drawn at random, or the model's own confident zero-shot answers.
    source: Literal["random", "self"] = "random"
    # Every label as often as every other, instead of independent draws.
    balanced: bool = False
    # Scores are averaged over so many draws of labels for the same demonstrations.
    assignments: int = Field(1, ge=1)
    # Decides the draws of labels in the place of the run's seed, which then decides those of sentences alone.
    seed: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        drawn = self.balanced or self.assignments > 1 or self.seed is not None
        if self.words == "none" and (drawn or self.source == "self"):
            raise ValueError("words = 'none' shows no labels: it goes with no option of a draw of labels")
        if self.source == "self" and drawn:
            raise ValueError("the model's own labels are not drawn: source = 'self' goes with neither option of a draw")
        return self


class PromptSettings(_Settings):
    """How the prompt is written and cut. ``template`` is a name, or the two lines themselves."""

    template: str | tuple[str, str] = "auto"
    tokens_per_demo: int = Field(256, ge=1)
    tokens_all_demos: int = Field(1024, ge=0)
    tokens_input: int = Field(256, ge=1)
    bos: Literal["auto", "on", "off"] = "auto"


class Scoring(_Settings):
    """How the language model scores a label, and where it runs (device, dtype and batch size: if it is loaded here)."""

    inference: Literal["direct", "channel", "both"] = "channel"
    # One more term: the encoder's cosine of the text to each label's description, or to its words.
    encoder: bool = False
    reduce: Literal["sum", "mean"] = "sum"
    # One device, or a map over several: map:auto. See docs/MODELS.md.
    device: str = "auto"
    dtype: Literal["float32", "bfloat16", "float16", "int8"] = "float32"
    # At most so many prompts at once; fewer where they are long, or where memory runs out.
    batch_size: int = Field(8, ge=1)

    @field_validator("device")
    @classmethod
    def _readable_map(cls, value: str) -> str:
        read_map(value)
        return value


# The method of calibration that each of its other settings belongs to.
CALIBRATES = {"priors": "batch", "texts": "batch", "draws": "domain", "premise": "pmi"}


class Calibration(_Settings):
    """What is taken off a label's score because the model would give it to any text.

    ``batch`` fits the shares on texts given to fit(), or takes ``priors``; the others score inputs without content
    under the same demonstrations: ``contextual`` three fixed ones, ``domain`` random words of the demonstrations,
    ``pmi`` the bare input line, or ``premise`` in it.
    """

    method: Literal["none", "batch", "contextual", "domain", "pmi"] = "none"
    priors: dict[str, float] | None = None
    # Of the texts given to fit(), a seeded sample of so many is scored.
    texts: int = Field(200, ge=1)
    draws: int = Field(4, ge=1)
    premise: str = ""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for name, method in CALIBRATES.items():
            if self.method != method and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} is of the method {method!r}, and changes nothing with {self.method!r}")
        if self.priors is not None and not all(0 < share <= 1 for share in self.priors.values()):
            raise ValueError("priors are shares, each above 0 and at most 1")
        return self


# The groups of settings, by the names they have on the command line and in saved classifiers.
GROUPS: dict[str, type[BaseModel]] = {
    "retrieval": Retrieval,
    "labelling": Labelling,
    "prompt": PromptSettings,
    "scoring": Scoring,
    "calibration": Calibration,
}


class Method(NamedTuple):
    """A preset: settings that go together under a name, the paper's methods and ours."""

    retrieval: Retrieval
    labelling: Labelling
    scoring: Scoring = Scoring()
    calibration: Calibration = Calibration()


METHODS = {
    "no-demos": Method(Retrieval(k=0), Labelling(words="original")),
    "random-inputs": Method(Retrieval(method="random"), Labelling(words="original")),
    "naive": Method(Retrieval(method="nearest"), Labelling(words="original")),
    "z-icl": Method(Retrieval(method="physical"), Labelling(words="synonyms")),
    # Chosen in docs/BEYOND.md; the language model reads as much as for z-icl.
    "z-icl+": Method(Retrieval(method="physical"), Labelling(words="synonyms"), Scoring(encoder=True)),
}


def get_method(name: str) -> Method:
    """A preset by name."""
    if name not in METHODS:
        raise did_you_mean("method", name, METHODS)
    return METHODS[name]
