"""Run an evaluation: plan the batches, compute what is missing, write it batch by batch, compact the rows."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from zicl._util.catalog import catalog
from zicl._util.locks import locked
from zicl._util.progress import ProgressReport, silent
from zicl.config import Scoring, Settings, resolve
from zicl.lab.evaluate import controls, timing
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.eta import EtaTracker
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.manifest import configuration, library_versions, manifest
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.overlap import overlaps
from zicl.lab.evaluate.plan import PlanBatch, PlanCell, RunShard, batches, group_by_prompts
from zicl.lab.evaluate.released import AllExamples, GivenRetriever, GivenSentences
from zicl.lab.evaluate.store import OVERLAP, ResultsFolder, Row, is_results
from zicl.prompt.builder import Prompt
from zicl.prompt.labelers import AssignedLabel, GoldLabels
from zicl.prompt.labels import Labels
from zicl.retrieve.embedding import each_text
from zicl.retrieve.strategies.base import Retriever
from zicl.score.ensemble import Ensemble
from zicl.score.experts import EncoderExpert
from zicl.score.factory import build_ensemble
from zicl.score.fit import learn_pile
from zicl.score.pipeline import INPUT_ITSELF, identical_label, label_scores
from zicl.score.results import Prediction, PreparedInput, log_likelihoods


@dataclass(frozen=True)
class RunSummary:
    """The rows a run computed and found, and whether the results are complete."""

    computed: int
    kept: int
    seconds: float
    complete: bool


@dataclass(frozen=True)
class ComputedBatch:
    """The rows of a batch, without their overlap, and the seconds they took where they were computed."""

    batch: PlanBatch
    rows: list[Row]
    seconds: float


class Compute(Protocol):
    """Computes rows: in this process, or on the workers of a cluster."""

    def manifest(self) -> dict[str, Any]:
        """Return everything that the rows will depend on."""
        ...

    def rows(self, todo: Sequence[PlanBatch]) -> Iterator[ComputedBatch]:
        """Yield every batch once, in any order."""
        ...


def evaluate(
    context: ExperimentContext,
    folder: Path,
    *,
    shard: RunShard | None = None,
    compute: Compute | None = None,
    report: ProgressReport = silent,
) -> RunSummary:
    """Compute the rows of an experiment that a results folder lacks, and add them to it."""
    if compute is None:
        # Before a folder is made. The workers of a cluster check what they have loaded themselves.
        context.check()
        compute = LocalCompute(context)
    with locked(folder, f"another process is writing to {folder}"):
        results = ResultsFolder.begin(folder, compute.manifest())
        overlap = overlaps(context, folder / OVERLAP)

        done = results.done()
        plan = list(batches(context.experiment, context.examples, shard))
        missing = [rest for batch in plan if (rest := batch.without(done)).examples]
        todo = group_by_prompts(missing, context.methods)

        eta, started, computed = EtaTracker(todo), time.monotonic(), 0
        if todo:
            report("evaluating", 0, eta.total, eta.describe(todo[0]))
        for result in compute.rows(todo) if todo else ():
            for row in result.rows:
                row["overlap"] = overlap[result.batch.cell.task, row["example"]]
            results.write(result.batch.name, result.rows)
            timing.add_time(folder, result.seconds, len(result.rows))
            computed += len(result.rows)
            eta.update(result.batch)
            report("evaluating", eta.elapsed, eta.total, eta.describe(result.batch))

        results.finish()
        planned = sum(len(batch.examples) for batch in plan)
        return RunSummary(computed, planned - computed, time.monotonic() - started, results.manifest["complete"])


def finished(context: ExperimentContext, folder: Path, shard: RunShard | None = None) -> RunSummary | None:
    """Return the summary of a run whose rows are all stored under the same configuration, without loading a model.

    Only for models of the catalog, whose names stand for hash-checked weights: any other is loaded to be compared.
    """
    if not is_results(folder) or context.experiment.lm not in catalog():
        return None
    stored = ResultsFolder.open(folder)
    # A run that was killed at its very end is still to be compacted.
    to_compact = stored.segments() or (shard is None and not stored.manifest["complete"])
    if to_compact or not _same_configuration(context, stored.manifest):
        return None
    done, plan = stored.done(), list(batches(context.experiment, context.examples, shard))
    if any(batch.without(done).examples for batch in plan):
        return None
    return RunSummary(0, sum(len(batch.examples) for batch in plan), 0.0, bool(stored.manifest["complete"]))


def _same_configuration(context: ExperimentContext, stored: dict[str, Any]) -> bool:
    """Return whether stored rows were computed under this configuration, as far as no model has to be loaded."""
    if context.experiment.encoder is not None and context.index is None:
        # Which encoder that is would be known once it is loaded.
        return False
    wanted, before = configuration(context), stored["fingerprint"]
    entries = [(group, name, entry) for group in ("tasks", "cells") for name, entry in wanted[group].items()]
    corpus = None if context.index is None else context.index.identity
    return (
        all(stored[group].get(name) == entry for group, name, entry in entries)
        and stored["experiment"]["lm"] == wanted["experiment"]["lm"]
        and (before["corpus"] or {}).get("identity") == corpus
        and before["dtype"] == context.experiment.scoring.dtype
        and before["versions"] == library_versions()
    )


class LocalCompute:
    """Computes batches in this process, one after the other."""

    def __init__(self, context: ExperimentContext) -> None:
        self._context = context

    def manifest(self) -> dict[str, Any]:
        """Return everything that the rows will depend on."""
        return manifest(self._context)

    def rows(self, todo: Sequence[PlanBatch]) -> Iterator[ComputedBatch]:
        """Yield every batch once, in the order given."""
        runner = Runner(self._context)
        runner.try_out(todo)
        return (runner.batch(batch) for batch in todo)


class Runner:
    """Computes the rows of cells. The ensemble of the last cell is kept for its next batch."""

    def __init__(self, context: ExperimentContext) -> None:
        self.context = context
        self._last: tuple[PlanCell, Ensemble] | None = None
        self._with_synonyms: dict[str, Labels] = {}

    def try_out(self, todo: Sequence[PlanBatch]) -> None:
        """Build one prompt of every kind of cell, so that errors show before the first row, not hours later."""
        for batch in {replace(batch.cell, seed=None): batch for batch in todo}.values():
            self.prompts(batch.cell, batch.examples[:1])

    def batch(self, batch: PlanBatch) -> ComputedBatch:
        """Compute the rows of a batch, and measure the time."""
        started = time.monotonic()
        rows = self.rows(batch.cell, batch.examples)
        return ComputedBatch(batch, rows, time.monotonic() - started)

    def rows(self, cell: PlanCell, examples: Sequence[Example]) -> list[Row]:
        """Compute the rows of some examples of a cell, without their overlap."""
        method = self.context.methods[cell.method]
        if method.kind == "prompt":
            return self._prompt_rows(cell, examples)
        if method.kind == "instruction":
            return self._instruction_rows(cell, examples)
        if method.kind == "encoder":
            results = self.ensemble(cell).run([example.text for example in examples])
            return [_encoder_row(cell, e, result) for e, result in zip(examples, results, strict=True)]
        names = self.context.tasks[cell.task].labels.names
        scored = zip(examples, self._control_scores(cell, examples), strict=True)
        return [_row(cell, example, names[: len(scores)], scores) for example, scores in scored]

    def prompts(self, cell: PlanCell, examples: Sequence[Example]) -> list[list[Prompt]]:
        """Return one list of prompts per pipeline of the cell; none for controls without a language model."""
        kind, labels = self.context.methods[cell.method].kind, self.context.tasks[cell.task].labels
        if kind == "prompt":
            options = [labels.among(example.options) if example.options else None for example in examples]
            identical: Sequence[AssignedLabel | None] = self._identical(cell, examples) or [None] * len(examples)
            inputs = list(zip(examples, options, identical, strict=True))
            return [
                [pipeline.prepare(example.text, among, label).prompt for example, among, label in inputs]
                for pipeline in self.ensemble(cell).pipelines
            ]
        if kind == "instruction":
            limit = self.context.experiment.prompt.tokens_input
            return [[controls.instruction(example.text, labels, self.context.lm, limit) for example in examples]]
        return []

    def ensemble(self, cell: PlanCell) -> Ensemble:
        """Return the ensemble of a cell with prompts."""
        if self._last is None or self._last[0] != cell:
            self._last = cell, self._build_ensemble(cell)
        return self._last[1]

    def _build_ensemble(self, cell: PlanCell) -> Ensemble:
        context, method, task = self.context, self.context.methods[cell.method], self.context.tasks[cell.task]
        if method.kind == "encoder":
            return self._encoder_ensemble(cell)
        from_train = method.demos == "train" and method.retrieval.k > 0
        seed = 0 if cell.seed is None else cell.seed
        training = context.training_index(cell.task, seed) if from_train else None
        given = context.given(cell.task, method, seed)
        gold = None
        if method.labels == "gold" and training is not None:
            words = {label.name: (label.words,) for label in task.labels}
            gold = GoldLabels(words, tuple(example.label for example in training.examples))
        settings = self._settings(cell)
        # Synonyms that no table has are found once per task.
        synonyms = settings.labelling.words == "synonyms" and method.retrieval.k > 0
        ensemble = build_ensemble(
            self._with_synonyms.get(cell.task, task.labels) if synonyms else task.labels,
            context.lm,
            training or (given[0] if given else context.corpus(cell.task, method, seed)),
            settings,
            seed=seed,
            offline=context.offline,
            labeler=gold,
            clusters=context.clusters(cell.task, method.retrieval.share, seed),
            encoder_expert=self._encoder_expert(method.experts) if settings.scoring.encoder_expert else None,
            retriever=self._retriever(cell, given),
        )
        if synonyms:
            self._with_synonyms[cell.task] = ensemble.labels
        return ensemble

    def _retriever(self, cell: PlanCell, given: tuple[GivenSentences, GivenRetriever] | None) -> Retriever | None:
        """Return what finds published demonstrations; None if the method searches for its own."""
        method = self.context.methods[cell.method]
        if given is not None:
            return given[1]
        shows_all = method.retrieval.method == "random" and self.context.taught(cell.task, method, cell.seed or 0)
        return AllExamples() if shows_all else None

    def _encoder_expert(self, experts: Sequence[str]) -> EncoderExpert:
        context = self.context
        encoder = context.encoder
        return EncoderExpert(each_text(context.embed), encoder.identity, encoder.name, plain="cosine" in experts)

    def _encoder_ensemble(self, cell: PlanCell) -> Ensemble:
        """Return the encoder expert of a cell, with what the task's texts teach without their labels."""
        method, task = self.context.methods[cell.method], self.context.tasks[cell.task]
        settings = Settings(scoring=Scoring(experts=method.experts), pile=method.pile)
        expert = self._encoder_expert(method.experts)
        ensemble = build_ensemble(task.labels, None, None, settings, encoder_expert=expert)
        if method.pile.method == "none":
            return ensemble
        texts = [example.text for example in self.context.examples[cell.task]]
        learned = learn_pile(ensemble, method.pile, texts, {})
        return ensemble if learned is None else replace(ensemble, pile=learned.model)

    def _settings(self, cell: PlanCell) -> Settings:
        """Return the settings in force for a cell: the method's, overridden by the experiment's."""
        experiment, method, task = (
            self.context.experiment,
            self.context.methods[cell.method],
            self.context.tasks[cell.task],
        )
        template = task.template if cell.template == "task" else cell.template
        overrides: dict[str, Any] = {
            "prompt": experiment.prompt.model_copy(update={"template": template}),
            "scoring": experiment.scoring.model_copy(update={"inference": cell.inference, "experts": method.experts}),
        }
        if cell.method not in EXPERIMENT_METHODS and "labelling" in method.model_fields_set:
            overrides["labelling"] = method.labelling
        preset = Settings(method.retrieval, method.labelling, calibration=method.calibration)
        return resolve(preset, overrides, counted=task.labels.counted)

    def _identical(self, cell: PlanCell, examples: Sequence[Example]) -> list[AssignedLabel] | None:
        """Return the label with which each example is shown among its demonstrations, if the method does that."""
        wanted, labels = self.context.methods[cell.method].identical, self.context.tasks[cell.task].labels
        if wanted is None:
            return None
        seed, correct = cell.seed or 0, wanted == "correct"
        return [identical_label(example.label, labels, seed, example.text, correct=correct) for example in examples]

    def _prompt_rows(self, cell: PlanCell, examples: Sequence[Example]) -> list[Row]:
        method, texts = self.context.methods[cell.method], [example.text for example in examples]
        options = [example.options for example in examples] if any(e.options for e in examples) else None
        # Built before heads are silenced: the language model may have to find synonyms.
        ensemble = self.ensemble(cell)
        with self.context.silencing(method):
            results = ensemble.run(texts, options=options, identical=self._identical(cell, examples))
        # Rows of the corpus; examples and sentences from files are named.
        named = method.demos == "train" or self.context.released is not None
        return [_prompt_row(cell, e, result, named=named) for e, result in zip(examples, results, strict=True)]

    def _instruction_rows(self, cell: PlanCell, examples: Sequence[Example]) -> list[Row]:
        labels, reduce = self.context.tasks[cell.task].labels, self.context.experiment.scoring.reduce
        prompts = self.prompts(cell, examples)[0]
        rows = []
        for example, prompt, scores in zip(examples, prompts, self.context.lm.score(prompts), strict=True):
            prepared = PreparedInput(example.text, (), prompt, labels, "direct")
            result = Prediction(example.text, label_scores(labels, scores, reduce), prepared)
            rows.append(_prompt_row(cell, example, result))
        return rows

    def _control_scores(self, cell: PlanCell, examples: Sequence[Example]) -> Any:
        """Return the scores of a control, one row per example and one column per label."""
        context, labels = self.context, self.context.tasks[cell.task].labels
        kind, texts = context.methods[cell.method].kind, [example.text for example in examples]
        if kind == "majority":
            return [controls.majority(context.counts[cell.task], labels)] * len(examples)
        if kind == "cosine-words" and labels.counted:
            return [controls.cosine([example.text], example.options, context.embed)[0] for example in examples]
        if kind == "cosine-words":
            return controls.cosine(texts, labels.words, context.embed)
        if kind == "cosine-descriptions":
            return controls.cosine(texts, controls.descriptions(cell.task, labels), context.embed)
        seed, k = cell.seed or 0, context.experiment.k
        return controls.logistic(texts, context.training_index(cell.task, seed), labels, k, seed, context.embed)


def _row(cell: PlanCell, example: Example, labels: Sequence[str], scores: Any) -> Row:
    """Return a row without a prompt."""
    return {
        "task": cell.task,
        "method": cell.method,
        "template": cell.template,
        "inference": cell.inference,
        "seed": cell.seed,
        "example": example.id,
        "gold": example.label,
        "predicted": labels[int(np.argmax(scores))],
        "log_likelihoods": [float(score) for score in scores],
        "tokens": [],
        "demos": [],
        "demo_words": [],
        "demo_labels": [],
        "similarities": [],
        "kept": 0,
        "input_cut": False,
        "prompt_hash": "",
        "overlap": None,
        "values": None,
        "terms": None,
        "raw": None,
        "identical": None,
    }


def _prompt_row(cell: PlanCell, example: Example, result: Prediction, *, named: bool = False) -> Row:
    """Return the row of a prompt; demonstrations are stored as corpus rows, or ``named`` by training example."""
    assert result.prepared is not None
    demos, prompt = result.prepared.demos, result.prepared.prompt
    return {
        **_row(cell, example, [score.label for score in result.scores], log_likelihoods(result.scores)),
        "predicted": result.label,
        "tokens": [score.tokens for score in result.scores],
        "demos": [demo.sentence.source if named else str(demo.sentence.row) for demo in demos],
        # Results hold no text: a sentence shown as an option is stored as its corpus row, too.
        "demo_words": [demo.label if result.prepared.labels.counted else demo.words for demo in demos],
        "demo_labels": [demo.label for demo in demos],
        "similarities": [demo.similarity for demo in demos if demo.similarity is not None],
        "kept": prompt.kept,
        "input_cut": prompt.input_cut,
        "identical": next((demo.label for demo in demos if demo.sentence.source == INPUT_ITSELF), None),
        "prompt_hash": prompt_hash(*(part.prepared.prompt for part in result.parts or (result,) if part.prepared)),
        **_combined_scores(result),
    }


def _encoder_row(cell: PlanCell, example: Example, result: Prediction) -> Row:
    """Return the row of a text that no language model was asked about, with the score of every term."""
    values = [score.value for score in result.scores]
    terms = [list(values) for values in result.terms.values()]
    return {**_row(cell, example, [score.label for score in result.scores], values), "values": values, "terms": terms}


def _combined_scores(result: Prediction) -> Row:
    """Return the terms of a combined score, and every log-likelihood: pipeline by pipeline, each with its probes."""
    if not (result.terms or result.probes):
        return {}
    raw: list[list[float]] = []
    for part in result.parts or (result,):
        raw += [list(log_likelihoods(part.scores)), *map(list, part.probes)]
    return {
        "values": [score.value for score in result.scores],
        "terms": [list(values) for values in result.terms.values()] or None,
        "raw": raw,
    }


def prompt_hash(*prompts: Prompt) -> str:
    """Return a hash of all tokens of prompts, branch by branch."""
    digest = hashlib.blake2b(digest_size=8)
    for prompt in prompts:
        for branch in range(len(prompt.branches)):
            digest.update(np.asarray((*prompt.tokens(branch), -1), dtype="<i4").tobytes())
    return digest.hexdigest()
