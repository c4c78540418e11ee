"""Settings as small frozen values, each documented where it is declared; unknown keys are errors.

``resolve`` joins them: a method's preset, with whatever was set over it, is what is in force.

>>> found = resolve("z-icl", {"retrieval": Retrieval(k=8)}).retrieval
>>> found.method, found.k, found.order
('physical', 8, 'nearest-last')
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from zicl._util.registry import did_you_mean
from zicl._util.validation import config_error
from zicl.exceptions import ConfigError

Order = Literal["nearest-last", "nearest-first", "shuffled"]
Inference = Literal["direct", "channel"]
ExpertName = Literal["prompt", "direct", "channel", "encoder", "cosine"]
# How accelerate spreads a model by itself.
DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
MAP_PREFIX = "map:"
DEVICE_FORM = (
    f"auto, cpu, cuda, cuda:1 or mps; or a map: {', '.join(MAP_PREFIX + name for name in DEVICE_MAPS)}, "
    """map:{"model.layers.0": "cuda:0", "": "cpu"}"""
)


def parse_device_map(device: str) -> str | dict[str, str | int] | None:
    """Return the device map that a device name holds, if it holds one.

    >>> parse_device_map("map:auto"), parse_device_map("cuda:1")
    ('auto', None)
    """
    if not device.startswith(MAP_PREFIX):
        return None
    text = device.removeprefix(MAP_PREFIX)
    if text in DEVICE_MAPS:
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found or not all(type(place) in (str, int) for place in found.values()):
        raise ConfigError(f"{device!r} is no map of a model's parts to devices", hint=f"expected {DEVICE_FORM}")
    return found


class FrozenSettings(BaseModel):
    """A frozen group of settings; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def over(self, base: Self) -> Self:
        """Return ``base`` with the fields that were set here: ``Retrieval(k=8)`` changes k and nothing else.

        >>> Retrieval(k=8).over(Retrieval(method="nearest")) == Retrieval(method="nearest", k=8)
        True
        """
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


class Retrieval(FrozenSettings):
    """Which sentences become demonstrations, and their order in the prompt."""

    # A name of ``zicl.retrieve.strategies``, or of an installed plug-in.
    method: str = "physical"
    # The number of demonstrations.
    k: int = Field(16, ge=0)
    # "diverse" draws from this many nearest sentences: a number, or a fraction of the corpus (at least 2 k sentences).
    pool: int | float = 4096
    # Never show a text, or its document, as its own demonstration.
    exclude_self: bool = True
    # Texts given to fit() join the corpus, in memory only.
    include_fit_texts: bool = False
    # Share one demonstration set among about this many similar inputs: clusters of the texts given to fit(), frozen.
    share: int = Field(1, ge=1)
    # Whatever the order, a prompt that is too long loses its farthest demonstrations.
    order: Order = "nearest-last"
    # Where "physical" finds the sentence beside a nearest one: in its "paragraph", or as in the authors' code the one
    # before it in its "domain", also across paragraphs and documents.
    neighbours: Literal["paragraph", "domain"] = "paragraph"

    @field_validator("pool")
    @classmethod
    def _number_or_fraction(cls, value: int | float) -> int | float:
        if not (value >= 1 if isinstance(value, int) else 0 < value < 1):
            raise ValueError("a whole number of sentences, at least 1, or a fraction of the corpus between 0 and 1")
        return value


class Labelling(FrozenSettings):
    """Which labels the demonstrations get, and the words that show them."""

    # "neighbours": sentences near a demonstration, for options that differ from text to text. "none": no label at all.
    words: Literal["original", "synonyms", "random-words", "neighbours", "none"] = "synonyms"
    # Random labels, or the model's own confident zero-shot predictions.
    source: Literal["random", "self"] = "random"
    # Every label equally often, instead of independent draws.
    balanced: bool = False
    # Average the scores over this many draws of labels for the same demonstrations.
    assignments: int = Field(1, ge=1)
    # Draw labels with this seed; the run's seed then draws sentences only.
    seed: int | None = Field(None, ge=0)
    # Where all inputs have the same demonstrations: one draw of labels for all, so that their prompts begin alike and
    # are computed once. A seed is then one draw, and all inputs may lean to the same label.
    shared: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        drawn = self.balanced or self.assignments > 1 or self.seed is not None or self.shared
        if self.words == "none" and (drawn or self.source == "self"):
            raise ValueError(
                "words = 'none' shows no labels: it excludes balanced, assignments, seed, shared and source"
            )
        if self.source == "self" and drawn:
            raise ValueError("source = 'self' draws no labels: it excludes balanced, assignments, seed and shared")
        return self


class PromptSettings(FrozenSettings):
    """How the prompt is written and cut. ``template`` is a name, or its two lines."""

    template: str | tuple[str, str] = "auto"
    tokens_per_demo: int = Field(256, ge=1)
    tokens_all_demos: int = Field(1024, ge=0)
    tokens_input: int = Field(256, ge=1)
    # Cut the prompt of each label to this many tokens, from the left, as the authors' code does.
    tokens_prompt: int | None = Field(None, ge=1)
    bos: Literal["auto", "on", "off"] = "auto"


class Scoring(FrozenSettings):
    """How a label is scored, and where a language model that is loaded here runs (device, dtype, batch size)."""

    inference: Literal["direct", "channel", "both"] = "channel"
    # Which experts are asked about a text, and joined. "prompt" is the language model with the demonstrations that
    # retrieval and labelling describe; "direct" and "channel" ask it without any. "encoder" compares the text with all
    # that is known of a label, "cosine" with its description or its words alone; neither loads a language model.
    experts: tuple[ExpertName, ...] = ("prompt",)
    # Compare the sum of a label's token log-likelihoods, or their mean.
    reduce: Literal["sum", "mean"] = "sum"
    # One device, or a map over several: map:auto. See docs/how-to/models.md.
    device: str = "auto"
    dtype: Literal["float32", "bfloat16", "float16", "int8"] = "float32"
    # The maximum number of prompts per batch; fewer where they are long, or where memory runs out.
    batch_size: int = Field(8, ge=1)

    @field_validator("experts", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        # On the command line and in --set they are separated by commas.
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.experts or len(set(self.experts)) < len(self.experts):
            raise ValueError("experts: name at least one, each once")
        if {"encoder", "cosine"} <= set(self.experts):
            raise ValueError("experts: encoder and cosine are two ways to ask the same encoder: name one of them")
        asked = {"direct", "channel"} if self.inference == "both" else {self.inference}
        if "prompt" in self.experts and (twice := sorted(asked & set(self.experts))):
            raise ValueError(f"experts: the prompt's inference is {twice[0]} already: set another scoring.inference")
        return self

    @property
    def asks_lm(self) -> bool:
        """Whether a language model is asked about a text."""
        return bool({"prompt", "direct", "channel"} & set(self.experts))

    @property
    def encoder_expert(self) -> str | None:
        """The expert that uses the encoder, if there is one."""
        return next((name for name in self.experts if name in ("encoder", "cosine")), None)

    @field_validator("device")
    @classmethod
    def _valid_map(cls, value: str) -> str:
        parse_device_map(value)
        return value


# Calibration settings that only one method uses.
_CALIBRATION_OPTIONS = {"priors": "batch", "texts": "batch", "draws": "domain", "premise": "pmi"}


class Calibration(FrozenSettings):
    """What to subtract from a label's score because the model would give it to any text.

    ``batch`` fits label priors on texts given to fit(), or takes ``priors``; ``neutral`` fits them once on sentences
    without content that come with the package. The others score content-free inputs under the same demonstrations:
    ``contextual`` three fixed ones, ``domain`` random words of the demonstrations, ``pmi`` the bare input line, or
    ``premise`` in it.
    """

    method: Literal["none", "batch", "neutral", "contextual", "domain", "pmi"] = "none"
    # The probability of each label, instead of fitting it.
    priors: dict[str, float] | None = None
    # Fit on a seeded sample of this many of the texts given to fit().
    texts: int = Field(200, ge=1)
    # The number of random content-free inputs.
    draws: int = Field(4, ge=1)
    premise: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, method in _CALIBRATION_OPTIONS.items():
            if self.method != method and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} belongs to the method {method!r} and changes nothing with {self.method!r}")
        if self.priors is not None and not all(0 < prior <= 1 for prior in self.priors.values()):
            raise ValueError("priors are probabilities, each above 0 and at most 1")
        return self

    @property
    def fits_priors(self) -> bool:
        """Whether label priors are fitted on texts, not given."""
        return self.method == "batch" and self.priors is None


class Pile(FrozenSettings):
    """What fit() learns from the unlabelled texts themselves: which of them are alike.

    ``mixture`` is one Gaussian per label over the texts' vectors, held to the experts' answers.
    """

    method: Literal["none", "mixture"] = "none"
    # Learn from a seeded sample of this many of the different texts given to fit().
    texts: int = Field(5000, ge=20)
    # The labels' shares, where they are known; learned otherwise.
    shares: dict[str, float] | None = None
    # Ask the language model about this many of the texts, the least certain ones, and learn from its answers.
    lm_rows: int = Field(0, ge=0)
    # Whom to ask: the language model alone, or the prompt with demonstrations.
    lm_expert: Literal["direct", "channel", "prompt"] = "direct"

    @field_validator("shares")
    @classmethod
    def _add_up(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        if value is not None and not all(0 < share < 1 for share in value.values()):
            raise ValueError("each share is above 0 and below 1")
        if value is not None and abs(sum(value.values()) - 1) > 0.005:
            raise ValueError(f"they add up to {sum(value.values()):g}, not to 1: give every label its share")
        return value


class Decision(FrozenSettings):
    """How many labels a text gets: exactly one, one or ``none``, or with ``multi`` any number."""

    # The name for texts that fit no label. Without it, every text gets a label.
    none: str | None = None
    # Judge each label by itself: a text gets any number of labels, also none of them.
    multi: bool = False
    # The probability from which on a text gets ``none``, or with ``multi`` a label; one number, or one per label.
    # Without it, 0.5.
    threshold: float | dict[str, float] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.multi and self.none is not None:
            raise ValueError("with multi a text may get no label at all: leave out none")
        if self.none is not None and not self.none.strip():
            raise ValueError("none is a name, for example 'other'")
        if self.threshold is not None and not (self.multi or self.none):
            raise ValueError("threshold is for none or multi, and neither is set")
        if isinstance(self.threshold, dict) and not self.multi:
            raise ValueError("thresholds by label are for multi: give one number for none")
        values = self.threshold.values() if isinstance(self.threshold, dict) else [self.threshold]
        if not all(value is None or 0 <= value <= 1 for value in values):
            raise ValueError("a threshold is a probability, from 0 to 1")
        return self

    def label_threshold(self, label: str) -> float:
        """Return the probability from which on a text gets a label, with ``multi``.

        >>> Decision(multi=True, threshold={"sports": 0.8}).label_threshold("sports")
        0.8
        """
        value = self.threshold.get(label) if isinstance(self.threshold, dict) else self.threshold
        return 0.5 if value is None else value

    def choose(self, probabilities: Mapping[str, float]) -> tuple[str, ...]:
        """Return the labels of a text with these probabilities: one, or with ``multi`` any number.

        >>> Decision(none="other").choose({"a": 0.2, "b": 0.3, "other": 0.5})
        ('other',)
        """
        if self.multi:
            return tuple(name for name, p in probabilities.items() if p >= self.label_threshold(name))
        none = self.none
        if none is not None and probabilities.get(none, 0.0) >= self.label_threshold(none):
            return (none,)
        return (max((name for name in probabilities if name != self.none), key=probabilities.__getitem__),)

    def margin(self, probabilities: Mapping[str, float]) -> float:
        """Return how far the probabilities are from another answer.

        That is the highest minus the second, and where a threshold decides the distance to it.
        """
        if self.multi:
            return min(abs(p - self.label_threshold(name)) for name, p in probabilities.items())
        none = self.none
        if none is None or none not in probabilities:
            first, second = sorted(probabilities.values(), reverse=True)[:2]
            return first - second
        distance = probabilities[none] - self.label_threshold(none)
        first, second = sorted((p for name, p in probabilities.items() if name != none), reverse=True)[:2]
        return distance if distance >= 0 else min(-distance, first - second)


ONE_LABEL = Decision()


class Settings(NamedTuple):
    """All settings in force, by group."""

    retrieval: Retrieval = Retrieval()
    labelling: Labelling = Labelling()
    prompt: PromptSettings = PromptSettings()
    scoring: Scoring = Scoring()
    calibration: Calibration = Calibration()
    pile: Pile = Pile()
    decision: Decision = ONE_LABEL


# Groups of settings by the names that the command line and saved classifiers use.
GROUPS: dict[str, type[FrozenSettings]] = {
    "retrieval": Retrieval,
    "labelling": Labelling,
    "prompt": PromptSettings,
    "scoring": Scoring,
    "calibration": Calibration,
    "pile": Pile,
    "decision": Decision,
}

_NO_DEMOS = Settings(Retrieval(k=0), Labelling(words="original"))

METHODS = {
    "no-demos": _NO_DEMOS,
    "random-inputs": Settings(Retrieval(method="random"), Labelling(words="original")),
    "naive": Settings(Retrieval(method="nearest"), Labelling(words="original")),
    "z-icl": Settings(Retrieval(method="physical"), Labelling(words="synonyms")),
    # Chosen and confirmed in docs/results/default-method.md.
    "encoder": _NO_DEMOS._replace(scoring=Scoring(experts=("encoder",))),
    "z-icl+": _NO_DEMOS._replace(scoring=Scoring(experts=("encoder",)), pile=Pile(method="mixture")),
}
DEFAULT_METHOD = "z-icl+"


def get_method(name: str) -> Settings:
    """Return the settings of a method by name."""
    if name not in METHODS:
        raise did_you_mean("method", name, METHODS)
    return METHODS[name]


def resolve(
    method: str | Settings, overrides: Mapping[str, FrozenSettings | None], *, counted: bool = False
) -> Settings:
    """Return the settings in force: a method's, with the fields set in ``overrides`` (by group) over them.

    ``counted`` labels are options that differ from text to text: they have no synonyms, so demonstrations show
    neighbouring sentences instead unless the overrides name other words.
    """
    base = get_method(method) if isinstance(method, str) else method
    given = {name: value for name, value in overrides.items() if value is not None}
    changed: dict[str, Any] = {name: value.over(getattr(base, name)) for name, value in given.items()}
    settings = base._replace(**changed)
    if counted and not ("labelling" in given and "words" in given["labelling"].model_fields_set):
        settings = settings._replace(labelling=settings.labelling.model_copy(update={"words": "neighbours"}))
    return settings


def parse_group(name: str, values: Mapping[str, Any], where: str = "") -> Any:
    """Return a group of settings from plain values; wrong names and values are errors in a user's words."""
    try:
        return GROUPS[name].model_validate(dict(values))
    except ValidationError as error:
        raise config_error(error, GROUPS[name], where) from error
