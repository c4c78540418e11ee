"""An evaluation, read from top to bottom: the plan's batches, each computed and written whole."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from zicl._util.files import locked
from zicl._util.progress import ProgressReport, silent
from zicl.config import Settings, resolve
from zicl.lab.evaluate import controls, timing
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.cost import RunningCost
from zicl.lab.evaluate.examples import Example
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.overlap import overlaps
from zicl.lab.evaluate.plan import PlanBatch, PlanCell, RunShard, batches, by_prompts
from zicl.lab.evaluate.store import ResultsFolder, Row
from zicl.prompt.builder import Prompt
from zicl.prompt.labelers import AssignedLabel, GoldLabels
from zicl.prompt.labels import Labels
from zicl.score.ensemble import Ensemble
from zicl.score.experts import EncoderExpert
from zicl.score.factory import build_ensemble
from zicl.score.pipeline import INPUT_ITSELF, identical_label, label_scores
from zicl.score.results import Prediction, PreparedInput


@dataclass(frozen=True)
class RunSummary:
    """What a run did."""

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
    """Where rows are computed: in this process, or on the workers of a cluster."""

    def manifest(self) -> dict[str, Any]:
        """What rows will depend on."""
        ...

    def rows(self, todo: Sequence[PlanBatch]) -> Iterator[ComputedBatch]:
        """Every batch once, in any order."""
        ...


class LocalCompute:
    """Batches computed in this process, one after the other."""

    def __init__(self, world: ExperimentContext) -> None:
        self.world = world

    def manifest(self) -> dict[str, Any]:
        """What rows will depend on."""
        return manifest(self.world)

    def rows(self, todo: Sequence[PlanBatch]) -> Iterator[ComputedBatch]:
        """Every batch once, in the order given."""
        runner = Runner(self.world)
        runner.try_out(todo)
        return (runner.batch(batch) for batch in todo)


def evaluate(
    world: ExperimentContext,
    folder: Path,
    *,
    shard: RunShard | None = None,
    compute: Compute | None = None,
    report: ProgressReport = silent,
) -> RunSummary:
    """Run what is missing of an experiment into a results folder."""
    if compute is None:
        # Before a folder is made. Workers check what they have loaded themselves.
        world.check()
        compute = LocalCompute(world)
    with locked(folder, f"another process is writing to {folder}"):
        results = ResultsFolder.begin(folder, compute.manifest())
        shared = overlaps(world, folder / "overlap.json")
        done = results.done()
        plan = list(batches(world.experiment, world.examples, shard))
        todo = by_prompts([left for batch in plan if (left := batch.left(done)).examples], world.methods)
        costs, begun, computed = RunningCost(todo), time.monotonic(), 0
        if todo:
            report("evaluating", 0, costs.total, costs.note(todo[0]))
        for found in compute.rows(todo) if todo else ():
            for row in found.rows:
                row["overlap"] = shared[found.batch.cell.task, row["example"]]
            results.write(found.batch.name, found.rows)
            computed += len(found.rows)
            costs.spent(found.batch)
            timing.add_time(folder, found.seconds, len(found.rows))
            report("evaluating", costs.done, costs.total, costs.note(found.batch))
        results.manifest["complete"] = results.is_complete()
        results.save()
        planned = sum(len(batch.examples) for batch in plan)
        return RunSummary(computed, planned - computed, time.monotonic() - begun, results.manifest["complete"])


class Runner:
    """Computes rows. What runs a cell is kept until another cell is run."""

    def __init__(self, world: ExperimentContext) -> None:
        self.world = world
        self._last: tuple[PlanCell, Ensemble] | None = None
        self._with_synonyms: dict[str, Labels] = {}

    def try_out(self, todo: Sequence[PlanBatch]) -> None:
        """One prompt of every kind of cell: what cannot be written is found before the first row, not hours later."""
        for batch in {replace(batch.cell, seed=None): batch for batch in todo}.values():
            self.prompts(batch.cell, batch.examples[:1])

    def batch(self, batch: PlanBatch) -> ComputedBatch:
        """The rows of a batch, timed."""
        started = time.monotonic()
        rows = self.rows(batch.cell, batch.examples)
        return ComputedBatch(batch, rows, time.monotonic() - started)

    def rows(self, cell: PlanCell, examples: Sequence[Example]) -> list[Row]:
        """The rows of some examples of a cell, without their overlap."""
        method = self.world.methods[cell.method]
        if method.kind == "prompt":
            texts, options = [example.text for example in examples], _options(examples)
            # Made by the whole model, which may have to find synonyms.
            ensemble = self.ensemble(cell)
            with self.world.silenced(method):
                results = ensemble.run(texts, options=options, identical=self._identical(cell, examples))
            named = method.demos == "train"
            return [_prompted(cell, e, r, named=named) for e, r in zip(examples, results, strict=True)]
        if method.kind == "instruction":
            return self._instructed(cell, examples)
        return [
            _row(cell, example, self._labels(cell)[: len(scores)], scores)
            for example, scores in zip(examples, self._control(cell, examples), strict=True)
        ]

    def ensemble(self, cell: PlanCell) -> Ensemble:
        """What runs a cell of prompts."""
        if self._last is None or self._last[0] != cell:
            self._last = cell, self._ensemble(cell)
        return self._last[1]

    def _ensemble(self, cell: PlanCell) -> Ensemble:
        world, method, task = self.world, self.world.methods[cell.method], self.world.tasks[cell.task]
        from_train = method.demos == "train" and method.retrieval.k > 0
        seed = 0 if cell.seed is None else cell.seed
        index = world.training_index(cell.task) if from_train else world.corpus(method, seed)
        gold = None
        if method.labels == "gold":
            words = {label.name: (label.words,) for label in task.labels}
            gold = GoldLabels(words, tuple(example.label for example in world.training[cell.task]))
        settings = self._settings(cell)
        # Synonyms that have to be found are found once a task.
        synonyms = settings.labelling.words == "synonyms" and method.retrieval.k > 0
        ensemble = build_ensemble(
            self._with_synonyms.get(cell.task, task.labels) if synonyms else task.labels,
            world.lm,
            index,
            settings,
            seed=seed,
            offline=world.offline,
            labeler=gold,
            clusters=world.clusters(cell.task, method.retrieval.share, seed),
            encoder_expert=EncoderExpert(world.embed, world.encoder.identity) if method.encoder else None,
        )
        if synonyms:
            self._with_synonyms[cell.task] = ensemble.labels
        return ensemble

    def _settings(self, cell: PlanCell) -> Settings:
        """Return the settings in force for a cell: the method's, with the experiment's over them."""
        experiment, method, task = self.world.experiment, self.world.methods[cell.method], self.world.tasks[cell.task]
        template = task.template if cell.template == "task" else cell.template
        overrides: dict[str, Any] = {
            "prompt": experiment.prompt.model_copy(update={"template": template}),
            "scoring": experiment.scoring.model_copy(update={"inference": cell.inference, "encoder": method.encoder}),
        }
        if cell.method not in EXPERIMENT_METHODS and "labelling" in method.model_fields_set:
            overrides["labelling"] = method.labelling
        preset = Settings(method.retrieval, method.labelling, calibration=method.calibration)
        return resolve(preset, overrides, counted=task.labels.counted)

    def _labels(self, cell: PlanCell) -> tuple[str, ...]:
        return self.world.tasks[cell.task].labels.names

    def _control(self, cell: PlanCell, examples: Sequence[Example]) -> Any:
        world, labels = self.world, self.world.tasks[cell.task].labels
        kind, texts = world.methods[cell.method].kind, [example.text for example in examples]
        if kind == "majority":
            return [controls.majority(world.counts[cell.task], labels)] * len(examples)
        if kind == "cosine-words" and labels.counted:
            return [controls.cosine([example.text], example.options, world.embed)[0] for example in examples]
        if kind == "cosine-words":
            return controls.cosine(texts, labels.words, world.embed)
        if kind == "cosine-descriptions":
            return controls.cosine(texts, controls.descriptions(cell.task, labels), world.embed)
        index, k = world.training_index(cell.task), world.experiment.k
        return controls.logistic(texts, index, labels, k, cell.seed or 0, world.embed)

    def prompts(self, cell: PlanCell, examples: Sequence[Example]) -> list[list[Prompt]]:
        """The prompts of some examples, for each way to ask; none for a cell without a language model."""
        kind, labels = self.world.methods[cell.method].kind, self.world.tasks[cell.task].labels
        if kind == "prompt":
            ways = self.ensemble(cell).pipelines
            chosen = [labels.among(example.options) if example.options else None for example in examples]
            identical: Sequence[AssignedLabel | None] = self._identical(cell, examples) or [None] * len(examples)
            asked = list(zip(examples, chosen, identical, strict=True))
            return [[way.prepare(example.text, own, same).prompt for example, own, same in asked] for way in ways]
        if kind == "instruction":
            limit = self.world.experiment.prompt.tokens_input
            return [[controls.instruction(example.text, labels, self.world.lm, limit) for example in examples]]
        return []

    def _identical(self, cell: PlanCell, examples: Sequence[Example]) -> list[AssignedLabel] | None:
        """The label under which each example stands among its own demonstrations."""
        wanted, labels = self.world.methods[cell.method].identical, self.world.tasks[cell.task].labels
        if wanted is None:
            return None
        seed, correct = cell.seed or 0, wanted == "correct"
        return [identical_label(example.label, labels, seed, example.text, correct=correct) for example in examples]

    def _instructed(self, cell: PlanCell, examples: Sequence[Example]) -> list[Row]:
        labels, reduce = self.world.tasks[cell.task].labels, self.world.experiment.scoring.reduce
        prompts = self.prompts(cell, examples)[0]
        found = zip(examples, prompts, self.world.lm.score(prompts), strict=True)
        return [
            _prompted(
                cell,
                e,
                Prediction(PreparedInput(e.text, (), prompt, labels, "direct"), label_scores(labels, scores, reduce)),
            )
            for e, prompt, scores in found
        ]


def _options(examples: Sequence[Example]) -> list[tuple[str, ...]] | None:
    return [example.options for example in examples] if any(example.options for example in examples) else None


def _row(cell: PlanCell, example: Example, labels: Sequence[str], scores: Any) -> Row:
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


def _prompted(cell: PlanCell, example: Example, result: Prediction, *, named: bool = False) -> Row:
    """A row of a prompt; demonstrations go by their row in the corpus, or are ``named`` by training example."""
    shown, prompt = result.prepared.demos, result.prepared.prompt
    found = [demo.similarity for demo in shown]
    return {
        **_row(cell, example, [score.label for score in result.scores], [s.log_likelihood for s in result.scores]),
        "predicted": result.label,
        "tokens": [score.tokens for score in result.scores],
        "demos": [demo.sentence.source if named else str(demo.sentence.row) for demo in shown],
        # Sentences that stand for options go by their row, too: results hold no text.
        "demo_words": [demo.label if result.prepared.labels.counted else demo.words for demo in shown],
        "demo_labels": [demo.label for demo in shown],
        "similarities": [value for value in found if value is not None],
        "kept": prompt.kept,
        "input_cut": prompt.input_cut,
        "identical": next((demo.label for demo in shown if demo.sentence.source == INPUT_ITSELF), None),
        "prompt_hash": prompt_hash(*(part.prepared.prompt for part in result.parts or (result,))),
        **_joined(result),
    }


def _joined(result: Prediction) -> Row:
    """What an answer was joined from: the terms, and every log-likelihood, way by way, each with its probes."""
    if not (result.terms or result.probes):
        return {}
    raw: list[list[float]] = []
    for part in result.parts or (result,):
        raw += [[score.log_likelihood for score in part.scores], *map(list, part.probes)]
    return {
        "values": [score.value for score in result.scores],
        "terms": [list(values) for values in result.terms.values()] or None,
        "raw": raw,
    }


def prompt_hash(*prompts: Prompt) -> str:
    """A hash of all tokens of prompts, branch by branch."""
    digest = hashlib.blake2b(digest_size=8)
    for prompt in prompts:
        for branch in range(len(prompt.branches)):
            digest.update(np.asarray((*prompt.tokens(branch), -1), dtype="<i4").tobytes())
    return digest.hexdigest()
