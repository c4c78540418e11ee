"""The paper's method for one text: retrieve → assign labels → build the prompt → score.

An ``Ensemble`` holds one pipeline, or several that differ in inference or in the draw of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zicl._util.progress import Progress
from zicl._util.random import rng
from zicl.config import Order, Scoring
from zicl.corpus.store import Sentence
from zicl.exceptions import ConfigError, PromptError, TextError
from zicl.inputs.pair import Pair, Text, text_key
from zicl.lm.base import LanguageModel
from zicl.prompt.builder import BranchScores, LabelledText, Prompt, PromptBuilder, demonstration_order
from zicl.prompt.labelers import AssignedLabel, Labeler, RandomLabels
from zicl.prompt.labels import Labels
from zicl.prompt.template import Template
from zicl.retrieve.clusters import Clusters
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import SHARED_ITEM, Query, Retrieved, Retriever
from zicl.score.calibration import Probes, log_prior
from zicl.score.results import Demonstration, LabelScore, Prediction, PreparedInput, log_likelihoods

# The source of the input itself, where it is put among its own demonstrations.
INPUT_ITSELF = "(the input itself)"


@dataclass(frozen=True)
class Pipeline:
    """One inference with one draw of labels. No text's prediction depends on another text.

    ``assignment`` numbers the draws of labels for the same demonstrations. Inputs of one of the ``clusters`` share
    their demonstrations and labels. ``probes`` are scored beside each text and subtracted from its scores. Labels are
    drawn with ``seed``, or with ``label_seed`` if it is set: for each text anew, also where all have the same
    demonstrations, unless ``shared_labels``.
    """

    labels: Labels
    builder: PromptBuilder
    lm: LanguageModel
    scoring: Scoring
    k: int = 0
    seed: int = 0
    index: Searchable | None = None
    retriever: Retriever | None = None
    labeler: Labeler | None = None
    assignment: int = 0
    clusters: Clusters | None = None
    probes: Probes | None = None
    order: Order = "nearest-last"
    label_seed: int | None = None
    shared_labels: bool = False

    @property
    def term(self) -> str:
        """The name of its term where several experts are joined."""
        return self.scoring.inference

    @property
    def cost(self) -> str:
        """What a text costs."""
        shown = f"with up to {self.k} demonstrations" if self.k else "without demonstrations"
        return f"one prompt of {self.lm.name} {shown}"

    def run(self, texts: Sequence[Text], progress: Progress | None = None) -> list[Prediction]:
        """Classify texts, in order."""
        prepared = [self.prepare(text) for text in texts]
        scores = self.lm.score([item.prompt for item in prepared], progress)
        return [self.predict(item, score) for item, score in zip(prepared, scores, strict=True)]

    def prepare(
        self, text: Text, labels: Labels | None = None, identical: AssignedLabel | None = None
    ) -> PreparedInput:
        """Retrieve the demonstrations of one text and build its prompt.

        ``labels`` are the text's own, where texts differ in them. With ``identical``, the text itself replaces one of
        its demonstrations, under that label.
        """
        text, labels = text.strip(), labels or self.labels
        check_fields(self.builder.template, text)
        demos = self._demonstrations(text, labels)
        prompt = self._build(text, demos, labels)
        if identical is not None:
            demos, place = insert_input(demos, prompt.shown, text, identical, self.seed)
            prompt = self._build(text, demos, labels, keep=place)
            check_kept(place, prompt.shown)
        return PreparedInput(
            text, _in_prompt_order(demos, prompt), prompt, labels, self.builder.inference, self.assignment
        )

    def predict(self, prepared: PreparedInput, scores: BranchScores) -> Prediction:
        """Turn the scores of a prompt's branches into a prediction, minus what the probes got."""
        labels, reduce = prepared.labels, self.scoring.reduce
        count = len(labels)
        raw = label_scores(labels, scores[:count], reduce)
        if not prepared.prompt.probes:
            return Prediction(prepared.text, raw, prepared)
        probes = [
            label_scores(labels, scores[start : start + count], reduce) for start in range(count, len(scores), count)
        ]
        prior = log_prior(np.array([[score.value for score in row] for row in probes]))
        calibrated = tuple(s._replace(value=s.value - float(p)) for s, p in zip(raw, prior, strict=True))
        return Prediction(prepared.text, calibrated, prepared, tuple(map(log_likelihoods, probes)))

    def retrieve(self, text: Text) -> list[Retrieved]:
        """Return the rows for one text, nearest first. Changing only the labels searches nothing again."""
        if self.k == 0 or self.index is None or self.retriever is None:
            return []
        index, retriever, query = self.index, self.retriever, self._query(text)
        k = self.k if self.labeler is None else self.k * self.labeler.candidates
        return index.cached((retriever, query, k), lambda: retriever.retrieve(index, query, k))

    def _query(self, text: Text) -> Query:
        if self.clusters is None or self.index is None:
            return Query(text, self.seed)
        center = self.clusters.nearest(self.index.embed(text))
        return Query(text, self.seed, text_key(center), center)

    def _item(self, text: Text) -> str:
        """Return what random draws for a text are derived from: its order and its probes."""
        return SHARED_ITEM if self.retriever is not None and self.retriever.shared else self._query(text).key

    def _demonstrations(self, text: Text, labels: Labels) -> list[Demonstration]:
        """Return demonstrations with their labels, farthest first: the nearest is next to the test input."""
        found = self.retrieve(text)
        if not found or self.labeler is None or self.index is None:
            return []
        # Texts of a cluster share their labels as well.
        item = self._item(text) if self.shared_labels else self._query(text).key
        key = item if self.assignment == 0 else f"{item} #{self.assignment}"
        seed = self.seed if self.label_seed is None else self.label_seed
        assigned = self._labeler_for(labels).label([item.row for item in found], seed, key)
        chosen = sorted(_most_confident(assigned, self.k))
        return [self._demonstration(found[n], assigned[n]) for n in chosen][::-1]

    def _labeler_for(self, labels: Labels) -> Labeler:
        """Return the labeler of a text that may have only some of the labels."""
        assert self.labeler is not None
        if labels.names == self.labels.names:
            return self.labeler
        if self.labeler.candidates > 1:
            raise ConfigError("the model's own labels are for one set of labels", hint="`labelling.source='random'`")
        if not isinstance(self.labeler, RandomLabels):
            return self.labeler
        return replace(self.labeler, words={name: self.labeler.words[name] for name in labels.names})

    def _demonstration(self, item: Retrieved, assigned: AssignedLabel) -> Demonstration:
        assert self.index is not None
        nearest = None if item.nearest is None else self.index.sentence(item.nearest)
        return Demonstration(self.index.sentence(item.row), nearest, item.similarity, assigned.label, assigned.words)

    def _build(self, text: Text, demos: Sequence[Demonstration], labels: Labels, keep: int | None = None) -> Prompt:
        shown = [LabelledText(self.demo_text(demo), demo.words) for demo in demos]
        probes: list[Text] = []
        if self.probes is not None:
            probes += self.probes.inputs([str(demo.text) for demo in shown], self.seed, self._item(text))
            if self.builder.template.two_fields:
                probes = [split_probe(str(probe)) for probe in probes]
        order = demonstration_order(self.order, len(shown), self.seed, self._item(text))
        return self.builder.build(text, shown, labels.words, probes, order, keep)

    def demo_text(self, demo: Demonstration) -> Text:
        """Return the sentence; for pairs, the sentence and its nearest one in the order of the paragraph."""
        if not self.builder.template.two_fields or isinstance(demo.sentence.text, Pair):
            return demo.sentence.text
        if demo.nearest is None or demo.nearest.row == demo.sentence.row:
            raise ConfigError(
                "a demonstration of a pair is a sentence with its physical neighbour, and this retrieval gives none",
                hint="`retrieval.method='physical'`, that of the method z-icl, or `method='no-demos'`",
            )
        first, second = sorted((demo.nearest, demo.sentence), key=lambda sentence: sentence.row)
        return Pair(str(first.text), str(second.text)).strip()


def check_fields(template: Template, text: Text) -> None:
    """Check that pairs meet a template with two fields, and single texts one with one."""
    if template.two_fields != isinstance(text, Pair):
        raise TextError(
            "a pair of texts needs a template with {first} and {second}, one text a template with {input}",
            hint="`prompt.template='pair'`, or your own: 'Premise: {first}\\nHypothesis: {second}|Answer: {label}'",
        )


def label_scores(labels: Labels, scores: BranchScores, reduce: str) -> tuple[LabelScore, ...]:
    """Return each label's score: the sum over its scored tokens, and the value that is compared."""
    rows = []
    for label, row in zip(labels, scores, strict=True):
        # In double precision: the order of summation must not show in the result.
        total = float(np.sum(row, dtype=np.float64))
        rows.append(LabelScore(label.name, total, len(row), total if reduce == "sum" else total / len(row)))
    return tuple(rows)


def split_probe(probe: str) -> Pair:
    """Split a content-free input for a template of two fields: half of its words each, a single word in both."""
    words = probe.split()
    half = len(words) // 2
    return Pair(" ".join(words[:half]), " ".join(words[half:])) if half else Pair(probe.strip(), probe.strip())


def _most_confident(assigned: Sequence[AssignedLabel], k: int) -> list[int]:
    """Return the k labels with the highest confidence, the nearer first among equals: random labels are all equal."""
    return sorted(range(len(assigned)), key=lambda n: -(assigned[n].confidence or 0.0))[:k]


def _in_prompt_order(demos: Sequence[Demonstration], prompt: Prompt) -> tuple[Demonstration, ...]:
    """Return the demonstrations that were dropped when the prompt was cut, then the others in its order."""
    dropped = [replace(demo, kept=False) for number, demo in enumerate(demos) if number not in prompt.shown]
    return (*dropped, *(demos[number] for number in prompt.shown))


# -- The test input among its own demonstrations, to measure how often the label beside it is copied.


def identical_label(gold: str, labels: Labels, seed: int, text: Text, *, correct: bool) -> AssignedLabel:
    """Return the correct label, or one drawn uniformly from the others.

    >>> identical_label("great", Labels.of(["terrible", "great"]), 0, "A gem.", correct=False).words
    'terrible'
    """
    others = [name for name in labels.names if name != gold]
    name = gold if correct else others[int(rng(seed, text_key(text), "identical label").integers(len(others)))]
    return AssignedLabel(name, labels[name].words)


def insert_input(
    demos: Sequence[Demonstration], kept: Sequence[int], text: Text, label: AssignedLabel, seed: int
) -> tuple[list[Demonstration], int]:
    """Replace a random kept demonstration by the text itself; return the demonstrations and its place."""
    check_kept(next(iter(kept), None), kept)
    place = sorted(kept)[int(rng(seed, text_key(text), "identical place").integers(len(kept)))]
    itself = Demonstration(Sentence(-1, text, -1, 0, "", INPUT_ITSELF), None, None, label.label, label.words)
    return [itself if number == place else other for number, other in enumerate(demos)], place


def check_kept(place: int | None, kept: Sequence[int]) -> None:
    """Check that the prompt has room for the input among its demonstrations."""
    if place is None or place not in kept:
        raise PromptError(
            "the input does not fit among its own demonstrations: the prompt has no room for it",
            hint="raise `prompt.tokens_all_demos`",
        )
