"""Settings as a few small frozen values, each open to new options; unknown keys are errors."""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from zicl._registry import did_you_mean


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def over(self, base: Self) -> Self:
        """``base`` with what was set here: ``Retrieval(k=8)`` changes k and nothing else of a method.

        >>> Retrieval(k=8).over(Retrieval(method="nearest"))
        Retrieval(method='nearest', k=8, pool=4096, exclude_self=True, include_fit_texts=False, share=1)
        """
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


class Retrieval(_Settings):
    """Which sentences become demonstrations."""

    method: str = "physical"
    k: int = Field(16, ge=0)
    pool: int = Field(4096, ge=1)
    exclude_self: bool = True
    # Texts given to fit() join the corpus, in memory only.
    include_fit_texts: bool = False
    # About so many inputs share one set of demonstrations: clusters of the texts given to fit(), then frozen.
    share: int = Field(1, ge=1)


class Labelling(_Settings):
    """Which labels the demonstrations get, and which words these are shown as."""

    # "neighbours": sentences that stand near a demonstration, for options that are other words for every text.
    words: Literal["original", "synonyms", "random-words", "neighbours"] = "synonyms"
    # Drawn at random, or the model's own confident zero-shot answers.
    source: Literal["random", "self"] = "random"
    # Every label as often as every other, instead of independent draws.
    balanced: bool = False
    # Scores are averaged over so many draws of labels for the same demonstrations.
    assignments: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if self.source == "self" and (self.balanced or self.assignments > 1):
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
    # One more term beside the language model: the encoder's cosine of the text to the label words.
    encoder: bool = False
    reduce: Literal["sum", "mean"] = "sum"
    device: str = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: int = Field(8, ge=1)


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
        if self.priors is not None and self.method != "batch":
            raise ValueError("priors belong to the method 'batch'")
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
    """A preset: what the paper calls a method."""

    retrieval: Retrieval
    labelling: Labelling
    scoring: Scoring = Scoring()
    calibration: Calibration = Calibration()


METHODS = {
    "no-demos": Method(Retrieval(k=0), Labelling(words="original")),
    "random-inputs": Method(Retrieval(method="random"), Labelling(words="original")),
    "naive": Method(Retrieval(method="nearest"), Labelling(words="original")),
    "z-icl": Method(Retrieval(method="physical"), Labelling(words="synonyms")),
}


def get_method(name: str) -> Method:
    """A preset by name."""
    if name not in METHODS:
        raise did_you_mean("method", name, METHODS)
    return METHODS[name]
