"""The methods of the comparison as small frozen configurations; an experiment may define more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from zicl._util.registry import did_you_mean
from zicl.config import METHODS as ZERO_SHOT
from zicl.config import Calibration, ExpertName, FrozenSettings, Labelling, Pile, Retrieval, Scoring
from zicl.exceptions import ConfigError
from zicl.retrieve.strategies.base import RETRIEVERS

Inference = Literal["direct", "channel", "both"]


class ExperimentMethod(FrozenSettings):
    """How a method finds and labels its demonstrations, or which control it is.

    ``demos`` says where they come from: the raw corpus, or the task's labelled training examples.
    """

    title: str = ""
    kind: Literal["prompt", "encoder", "majority", "cosine-words", "cosine-descriptions", "logistic", "instruction"] = (
        "prompt"
    )
    demos: Literal["corpus", "train"] = "corpus"
    labels: Literal["random", "gold"] = "random"
    retrieval: Retrieval = Retrieval()
    labelling: Labelling = Labelling(words="original")
    # Batch calibration needs all rows of a cell: the report applies it, the rows are stored without.
    calibration: Calibration = Calibration()
    # The experts that are asked and joined, as in Scoring.
    experts: tuple[ExpertName, ...] = ("prompt",)
    # What is learned from the task's texts, without their labels.
    pile: Pile = Pile()
    # Inferences to run instead of the experiment's.
    inferences: tuple[Inference, ...] = ()
    # Use only a share of the corpus' paragraphs, drawn once per seed, and leave out domains.
    corpus_share: float = Field(1.0, gt=0, le=1)
    without: tuple[str, ...] = ()
    # Replace one demonstration with the test input, labelled correctly or not.
    identical: Literal["correct", "incorrect"] | None = None
    # Add paraphrases of all test inputs to the corpus, each beside a random sentence.
    planted: bool = False
    # Attention heads, as (layer, head), whose output is zero during scoring.
    silenced: tuple[tuple[int, int], ...] = ()

    @model_validator(mode="after")
    def _possible(self) -> ExperimentMethod:
        if self.labels == "gold" and self.demos == "corpus":
            raise ValueError("gold labels need demos = 'train': raw text has no labels")
        if self.labels == "gold" and self.labelling != Labelling(words="original"):
            raise ValueError("gold labels are neither drawn nor shown as other words: leave out labelling")
        if self.demos == "train" and self._strategy.needs_neighbours:
            raise ValueError("training examples have no neighbours or domains: use random, nearest or diverse")
        if self.demos == "train" and (self.retrieval.share > 1 or self.labelling.source == "self"):
            raise ValueError("shared demonstrations and labels from the model are for raw text: demos = 'corpus'")
        if self.silenced and self.labelling.source == "self":
            raise ValueError("labels from the model are cached for the intact model: not with silenced heads")
        if self.calibration.priors is not None:
            raise ValueError("an experiment fits its priors: leave them out")
        return self

    @model_validator(mode="after")
    def _experts(self) -> ExperimentMethod:
        asks = Scoring(experts=self.experts).asks_lm
        if self.kind == "prompt" and not asks:
            raise ValueError("a prompt needs an expert that asks the language model; without one, kind = 'encoder'")
        if self.kind == "encoder" and asks:
            raise ValueError("kind = 'encoder' asks no language model: experts = ['encoder'] or ['cosine']")
        if self.pile.method != "none" and self.kind != "encoder":
            raise ValueError("a pile is learned from with kind = 'encoder'")
        if self.pile.lm_rows or self.pile.shares:
            raise ValueError("an experiment learns from texts alone: leave out pile.lm_rows and pile.shares")
        return self

    @model_validator(mode="after")
    def _effective(self) -> ExperimentMethod:
        """Check that no option is set that would silently change nothing."""
        if (self.corpus_share < 1 or self.without) and not self.needs_corpus:
            raise ValueError("corpus_share and without apply to the raw corpus, which this method does not read")
        if self.planted and not self.needs_corpus:
            raise ValueError("planted paraphrases are added to the raw corpus, which this method does not read")
        shows = self.kind == "prompt" and self.retrieval.k > 0
        if self.retrieval.order != "nearest-last" and (not shows or self._strategy.shared):
            raise ValueError("retrieval.order applies to demonstrations found by nearness, and this method has none")
        if self.identical and not (shows and self.labels == "gold" and self._strategy.shared):
            raise ValueError("identical is for demos = 'train', labels = 'gold', retrieval.method = 'random'")
        if self.labelling.shared and not (shows and self._strategy.shared):
            raise ValueError(
                "labelling.shared is for demonstrations that all inputs share: retrieval.method = 'random'"
            )
        if self.silenced and self.kind != "prompt":
            raise ValueError("silenced heads apply to a prompt's scoring, and this method has no prompt")
        if len(set(self.silenced)) < len(self.silenced) or any(min(head) < 0 for head in self.silenced):
            raise ValueError("silenced heads are pairs of layer and head, counted from 0, each once")
        return self

    @property
    def _strategy(self) -> Any:
        """The retrieval strategy, for its traits."""
        return RETRIEVERS.get(self.retrieval.method)

    @property
    def control(self) -> bool:
        """Whether it is a baseline without demonstrations, for comparison."""
        return self.kind not in ("prompt", "encoder", "majority")

    @property
    def labelled(self) -> bool:
        """Whether it reads labelled training examples."""
        return self.kind == "logistic" or (self.kind == "prompt" and self.demos == "train" and self.retrieval.k > 0)

    @property
    def seeded(self) -> bool:
        """Whether anything in it is drawn at random."""
        if self.kind != "prompt":
            return self.kind == "logistic"
        labelling, retrieval = self.labelling, self.retrieval
        fixed_labels = self.labels == "gold" or labelling.words == "none" or labelling.seed is not None
        fixed_demos = not self._strategy.draws and retrieval.share == 1 and self.corpus_share == 1
        fixed = fixed_labels and fixed_demos and retrieval.order != "shuffled"
        return self.retrieval.k > 0 and (not fixed or self.calibration.method == "domain")

    @property
    def needs_corpus(self) -> bool:
        """Whether it reads the raw corpus."""
        return self.kind == "prompt" and self.demos == "corpus" and self.retrieval.k > 0

    @property
    def embeds(self) -> bool:
        """Whether it uses the encoder."""
        return (
            (self.control and self.kind != "instruction")
            or bool({"encoder", "cosine"} & set(self.experts))
            or (self.kind == "prompt" and self.retrieval.k > 0 and not self._strategy.shared)
        )

    @property
    def needs_lm(self) -> bool:
        """Whether it uses the language model."""
        return self.kind in ("prompt", "instruction")


def _icl(title: str, labels: Literal["random", "gold"], retriever: str) -> ExperimentMethod:
    return ExperimentMethod(title=title, demos="train", labels=labels, retrieval=Retrieval(method=retriever))


def _zero_shot(title: str, name: str) -> ExperimentMethod:
    preset = ZERO_SHOT[name]
    return ExperimentMethod(
        title=title,
        kind="prompt" if preset.scoring.asks_lm else "encoder",
        retrieval=preset.retrieval,
        labelling=preset.labelling,
        calibration=preset.calibration,
        experts=preset.scoring.experts,
        pile=preset.pile,
    )


EXPERIMENT_METHODS: Mapping[str, ExperimentMethod] = {
    "majority": ExperimentMethod(title="Majority", kind="majority"),
    "no-demos": _zero_shot("No-demos", "no-demos"),
    "random-inputs": _zero_shot("Random inputs", "random-inputs"),
    "naive": _zero_shot("Naive Z-ICL", "naive"),
    "z-icl": _zero_shot("Z-ICL", "z-icl"),
    # z-icl with the plain cosine to the descriptions as one more term.
    "z-icl+cosine": _zero_shot("Z-ICL + cosine", "z-icl").model_copy(update={"experts": ("prompt", "cosine")}),
    "encoder": _zero_shot("Encoder", "encoder"),
    "z-icl+": _zero_shot("Z-ICL+", "z-icl+"),
    "icl-gold": _icl("ICL-gold", "gold", "random"),
    "icl-random": _icl("ICL-random", "random", "random"),
    "nearest-icl-gold": _icl("Nearest ICL-gold", "gold", "nearest"),
    "nearest-icl-random": _icl("Nearest ICL-random", "random", "nearest"),
    "cosine-words": ExperimentMethod(title="Cosine to label words", kind="cosine-words"),
    "cosine-descriptions": ExperimentMethod(title="Cosine to descriptions", kind="cosine-descriptions"),
    "logistic": ExperimentMethod(title="Logistic regression, k gold", kind="logistic"),
    "instruction": ExperimentMethod(title="Instruction", kind="instruction"),
}


def get_experiment_method(name: str, defined: Mapping[str, ExperimentMethod]) -> ExperimentMethod:
    """Return a method by name: one the experiment defines, or a built-in one."""
    if name in defined:
        return defined[name]
    if name not in EXPERIMENT_METHODS:
        raise did_you_mean("method", name, {*EXPERIMENT_METHODS, *defined})
    return EXPERIMENT_METHODS[name]


def check_name(kind: str, name: str) -> None:
    """Check that a name can be part of cell keys and file names."""
    if not name or set(name) & set("/.\\ \t\n"):
        raise ConfigError(
            f"the {kind} {name!r} has a name with a slash, a dot or a blank", hint="use letters, digits, - and _"
        )


def check_definitions(defined: Mapping[str, ExperimentMethod]) -> None:
    """Check that no defined method has the name of a built-in one."""
    for name in defined:
        check_name("method", name)
    taken = sorted(set(defined) & set(EXPERIMENT_METHODS))
    if taken:
        raise ConfigError(
            f"the experiment defines {', '.join(taken)}, which zicl has already", hint="choose other names"
        )
