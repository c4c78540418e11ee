"""``classifier.json`` as a strict schema: a saved classifier may come from a stranger."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from zicl._util.printable import UNPRINTABLE
from zicl._util.schema import Count, Entries, Sha256, Strict
from zicl.config import Calibration, Decision, Labelling, Pile, PromptSettings, Retrieval, Scoring
from zicl.retrieve.manifest import EncoderEntry

# A model behind a server: no text is sent there unless whoever runs the program allows it.
_ADDRESS = re.compile(r"https?://")


def _plain_name(name: str) -> str:
    """Check a name or a path that a stranger wrote: it is printed, and looked up."""
    if not name.strip() or UNPRINTABLE.search(name):
        raise ValueError("expected a name without control characters")
    if any(len(part.encode()) > 255 for part in name.split("/")):
        raise ValueError("expected parts of at most 255 bytes")
    return name


def _relative(path: str) -> str:
    """Check a path that is looked up from the folder of the classifier."""
    place = _plain_name(path).removeprefix("gguf:")
    if PurePosixPath(place).is_absolute() or PureWindowsPath(place).anchor or place.startswith("~"):
        raise ValueError("expected a path as seen from the folder, not an absolute one")
    return path


def _no_path(name: str) -> str:
    """Check the name of a model that is not in a folder here: it must not be one nevertheless."""
    if _ADDRESS.match(name):
        return name
    place = name.removeprefix("gguf:")
    if place != name or place.endswith(".gguf") or "\\" in place or place.startswith(("/", "~", ".")) or ".." in place:
        raise ValueError("expected the name of a model, not a path")
    return name


Name = Annotated[str, Field(max_length=1024), AfterValidator(_plain_name)]
Probability = Annotated[FiniteFloat, Field(gt=0, le=1.001)]


class ModelEntry(Strict):
    """A language model or an encoder: by name, or by its path as seen from the folder."""

    name: Name
    local: bool
    identity: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _place(self) -> ModelEntry:
        (_relative if self.local else _no_path)(self.name)
        return self


class CorpusEntry(Strict):
    """The corpus, by its path as seen from the folder."""

    path: Annotated[Name, AfterValidator(_relative)]
    hash: str
    encoder: EncoderEntry
    kind: Name
    index: str


class SettingsEntry(BaseModel):
    """The settings in force, all groups of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retrieval: Retrieval
    labelling: Labelling
    prompt: PromptSettings
    scoring: Scoring
    calibration: Calibration
    pile: Pile
    decision: Decision


class NoneEntry(Strict):
    """From which closeness on a text fits a label."""

    threshold: FiniteFloat
    scale: Annotated[FiniteFloat, Field(gt=0)]
    component: bool


class MultiEntry(Strict):
    """Slope and offset of each label's log-odds."""

    slopes: Entries[FiniteFloat]
    offsets: Entries[FiniteFloat]


class PileEntry(Strict):
    """What was learned from a pile, without its weights."""

    weights: Sha256
    shares: Entries[Probability]
    stability: FiniteFloat
    texts: Count
    shares_known: bool
    source: str
    none: NoneEntry | None
    multi: MultiEntry | None


class FittedEntry(Strict):
    """What was fitted."""

    priors: dict[str, dict[str, Probability]]
    cluster_texts: Entries[str | Annotated[list[str], Field(min_length=2, max_length=2)]]
    pile: PileEntry | None


class KindOfContent(Strict):
    """What all kinds of classifiers hold that have a name, such as distilled ones."""

    kind: Name


class ClassifierContent(Strict):
    """What ``classifier.json`` holds, for a classifier that is not distilled."""

    labels: Entries[str]
    corpus: CorpusEntry | None
    lm: ModelEntry | None
    method: Name
    seed: int
    settings: SettingsEntry
    fitted: FittedEntry
    encoder: ModelEntry | None

    @model_validator(mode="after")
    def _complete(self) -> ClassifierContent:
        if self.settings.scoring.asks_lm and self.lm is None:
            raise ValueError("its experts ask a language model, and lm is null")
        decision, pile = self.settings.decision, self.fitted.pile
        if pile is not None and ((pile.none is None), (pile.multi is None)) != (
            decision.none is None,
            not decision.multi,
        ):
            raise ValueError("fitted.pile and settings.decision differ in whether a text may have no label, or several")
        if bool(self.fitted.priors) != (self.settings.calibration.method in ("batch", "neutral")):
            raise ValueError("fitted.priors and settings.calibration differ in whether label priors are subtracted")
        return self
