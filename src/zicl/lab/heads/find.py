"""Find the attention heads that copy labels, by their prefix-matching score.

Prompts show labelled demonstrations for a training example whose label is known. At the token that predicts the answer,
a head that copies attends to demonstrations with the same label, and not to those with other labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from zicl._util.progress import Progress, ProgressReport, silent
from zicl.exceptions import ConfigError, LabelError, PromptError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.examples import subsample
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS, ExperimentMethod
from zicl.lab.evaluate.plan import PlanCell
from zicl.lab.evaluate.run import Runner
from zicl.lab.heads.scores import FoundOn, HeadScores
from zicl.lm.base import LanguageModel
from zicl.lm.heads import head_layout, last_token_attention
from zicl.prompt.builder import PromptBuilder
from zicl.prompt.tokens import Tokenizer, tokenize
from zicl.retrieve.index import Searchable
from zicl.retrieve.strategies.base import CandidateFilter, Query, Retrieved, sort_by_similarity, too_few_error
from zicl.score.pipeline import Pipeline
from zicl.score.results import PreparedInput

# The method whose prompts show each kind of demonstrations.
FINDERS: Mapping[FoundOn, str] = {"training": "nearest-icl-gold", "corpus": "naive"}


def finder_methods(found_on: FoundOn) -> dict[str, ExperimentMethod]:
    """Return the methods of an experiment for ``find_on_task``; one of them always needs training examples."""
    return {name: EXPERIMENT_METHODS[name] for name in (FINDERS["training"], FINDERS[found_on])}


def find_on_task(
    context: ExperimentContext, task: str, count: int, found_on: FoundOn, report: ProgressReport = silent
) -> HeadScores:
    """Score every head on direct prompts for ``count`` training examples of a task; ``context`` has the methods."""
    # Labels of corpus sentences are random, so they need a seed; training examples have gold labels.
    seed = context.experiment.seeds_of("direct")[0] if found_on == "corpus" else None
    pipeline = Runner(context).ensemble(PlanCell(task, FINDERS[found_on], "task", "direct", seed)).pipelines[0]
    training = context.training[task]
    if found_on == "training":
        pipeline = balanced_pipeline(pipeline, [example.label for example in training])
    examples = subsample(training, count, context.tasks[task].sample_seed)
    prepared = [pipeline.prepare(example.text) for example in examples]
    if found_on == "training" and any(each.prompt.dropped for each in prepared):
        raise ConfigError(
            f"{pipeline.k} training examples of {task} do not fit into the model's context, and without some of them "
            "the labels would not be balanced",
            hint="find the heads on a task with shorter texts (option task of this study), or with a smaller --k",
        )
    prompts = [
        mark_labels(each, pipeline.builder, example.label) for each, example in zip(prepared, examples, strict=True)
    ]
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        report("finding heads", done, len(prompts))

    return find_heads(context.lm, prompts, task=task, found_on=found_on, progress=advance)


def find_heads(
    lm: LanguageModel,
    prompts: Sequence[MarkedPrompt],
    *,
    task: str = "",
    found_on: FoundOn = "training",
    progress: Progress | None = None,
) -> HeadScores:
    """Return the prefix-matching score of every head, averaged over the prompts."""
    if not prompts:
        raise ConfigError("no prompts were given to find heads on", hint="give some training examples of a task")
    layout = head_layout(lm)
    total = np.zeros((layout.layers, layout.heads))
    for prompt in prompts:
        attention = last_token_attention(lm, prompt.tokens)[:, :, list(prompt.keys)]
        total += attention.astype(np.float64) @ prompt.weights
        if progress:
            progress(1)
    scores = tuple(tuple(row) for row in (total / len(prompts)).tolist())
    return HeadScores(
        model=lm.name, identity=lm.identity, task=task, prompts=len(prompts), found_on=found_on, scores=scores
    )


@dataclass(frozen=True)
class MarkedPrompt:
    """The ``tokens`` of a prompt up to the one that predicts the answer, with the positions of the labels shown.

    ``keys`` are the positions of the first token of each demonstration's label, ``shown`` these labels; ``answer`` is
    the label of the input, one of ``classes``.
    """

    tokens: tuple[int, ...]
    keys: tuple[int, ...]
    shown: tuple[str, ...]
    answer: str
    classes: int

    @property
    def weights(self) -> NDArray[np.float64]:
        """Return the weight of attention to each key: 1 for the answer's class, and -1 spread over the other classes.

        >>> MarkedPrompt((5, 6, 7, 8), (1, 2), ("good", "bad"), "good", classes=3).weights.tolist()
        [1.0, -0.5]
        """
        return np.array([1.0 if label == self.answer else -1.0 / (self.classes - 1) for label in self.shown])


def mark_labels(prepared: PreparedInput, builder: PromptBuilder, answer: str) -> MarkedPrompt:
    """Mark the labels in the direct prompt that ``builder`` built for a text whose label is ``answer``."""
    if prepared.inference != "direct":
        raise ConfigError(
            "heads are found on direct prompts: in channel prompts no label is predicted",
            hint="set the inference to 'direct'",
        )
    if answer not in prepared.labels.names:
        raise LabelError(f"there is no label {answer!r}", hint=f"there are: {', '.join(prepared.labels.names)}")
    demos = [demo for demo in prepared.demos if demo.kept]
    if not any(demo.words for demo in demos):
        raise PromptError("the prompt shows no label", hint="raise k or the limit of tokens, or show labels")
    if len(prepared.prompt.ends) != len(demos):
        raise PromptError(
            "the labels of a prompt that was cut cannot be found in it", hint="leave out prompt.tokens_prompt"
        )
    template, tokenizer = builder.template, builder.tokenizer
    before_label = template.joint + template.label.partition("{label}")[0]
    prompt, number = prepared.prompt, prepared.labels.names.index(answer)
    keys = []
    for demo, end in zip(demos, prompt.ends, strict=True):
        # A demonstration of a direct prompt ends with its label line.
        line = tokenize(tokenizer, template.joint + template.label_line(demo.words)).tokens
        keys.append(end - len(line) + first_token_after(tokenizer, line, before_label))
    tokens, scored = prompt.tokens(number), prompt.branches[number].scored.tokens
    answer_at = len(tokens) - len(scored) + first_token_after(tokenizer, scored, before_label)
    shown = tuple(demo.label for demo in demos)
    return MarkedPrompt(tokens[:answer_at], tuple(keys), shown, answer, len(prepared.labels))


def first_token_after(tokenizer: Tokenizer, tokens: Sequence[int], text: str) -> int:
    """Return the position of the first token that ends after ``text``; it may begin with a space of ``text``."""
    for number in range(len(tokens)):
        if len(tokenizer.decode(tokens[: number + 1])) > len(text):
            return number
    raise PromptError(f"the label line ends with {text!r}", hint="give the label at least a letter")


@dataclass(frozen=True)
class NearestPerLabel:
    """A retriever of the nearest training examples, the same number per label; ``labels`` holds one label per row."""

    labels: tuple[str, ...]
    exclude_self: bool = True
    draws: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = False

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return exactly ``k`` rows with distinct texts, nearest first."""
        candidates, hits = CandidateFilter(index, query, exclude_self=self.exclude_self), list[Retrieved]()
        missing = dict.fromkeys(self.labels, k // len(set(self.labels)))
        for hit in candidates.hits():
            if len(hits) == k:
                break
            if missing[self.labels[hit.row]] and candidates.take(hit.row):
                missing[self.labels[hit.row]] -= 1
                hits.append(Retrieved(hit.row, hit.row, hit.similarity))
        if len(hits) < k:
            label, count = min(Counter(self.labels).items(), key=lambda each: each[1])
            why = f"each label is shown equally often, and of {label!r} there are {count} examples"
            raise too_few_error(len(hits), k, why, "use a smaller k, or name more training examples")
        return sort_by_similarity(hits)


def balanced_pipeline(pipeline: Pipeline, labels: Sequence[str], *, exclude_self: bool = True) -> Pipeline:
    """Return a pipeline that shows training examples balanced over ``labels`` (one per row), in random order.

    Otherwise a head that attends to all labels, or to the last one, would score like one that copies. ``k`` is rounded
    down to a multiple of the number of classes, but shows each at least once.
    """
    classes = len(set(labels))
    return replace(
        pipeline,
        retriever=NearestPerLabel(tuple(labels), exclude_self),
        k=max(pipeline.k // classes, 1) * classes,
        order="shuffled",
    )
