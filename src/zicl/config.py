"""Settings as a few small frozen values, each open to new options; unknown keys are errors."""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field

from zicl._registry import did_you_mean


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def over(self, base: Self) -> Self:
        """``base`` with what was set here: ``Retrieval(k=8)`` changes k and nothing else of a method.

        >>> Retrieval(k=8).over(Retrieval(method="nearest"))
        Retrieval(method='nearest', k=8, pool=4096, exclude_self=True, include_fit_texts=False)
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


class Labelling(_Settings):
    """Which words the demonstrations' random labels are shown as."""

    words: Literal["original", "synonyms", "random-words"] = "synonyms"


class PromptSettings(_Settings):
    """How the prompt is written and cut. ``template`` is a name, or the two lines themselves."""

    template: str | tuple[str, str] = "auto"
    tokens_per_demo: int = Field(256, ge=1)
    tokens_all_demos: int = Field(1024, ge=0)
    tokens_input: int = Field(256, ge=1)
    bos: Literal["auto", "on", "off"] = "auto"


class Scoring(_Settings):
    """How the language model scores a label, and where it runs (device, dtype and batch size: if it is loaded here)."""

    inference: Literal["direct", "channel"] = "channel"
    reduce: Literal["sum", "mean"] = "sum"
    device: str = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: int = Field(8, ge=1)


class Method(NamedTuple):
    """A preset: what the paper calls a method."""

    retrieval: Retrieval
    labelling: Labelling


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
