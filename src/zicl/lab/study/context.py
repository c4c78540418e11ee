"""The context of a run of studies: settings, results folders, and models that all studies share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from zicl._util.progress import ProgressReport, silent
from zicl.exceptions import ConfigError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.experiment import Experiment
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.store import MANIFEST, NO_INFERENCE
from zicl.lab.heads.find import find_on_task, finder_methods
from zicl.lab.heads.scores import SCORES_FILE, FoundOn, HeadScores
from zicl.lab.study.base import UNLIMITED, Study, StudyPart
from zicl.lab.study.settings import StudySettings
from zicl.lm.base import LanguageModel
from zicl.lm.heads import head_layout
from zicl.retrieve.index import Index, subset

# An experiment for its tasks, sizes and models alone.
PLAIN = StudyPart("plain", {"no-demos": EXPERIMENT_METHODS["no-demos"]})


def _finding_part(found_on: FoundOn) -> StudyPart:
    # Cutting drops the farthest demonstrations, whatever their labels, and would leave the prompts unbalanced.
    return StudyPart("find", finder_methods(found_on), UNLIMITED)


def _unchanged(experiment: Experiment) -> Experiment:
    return experiment


def _no_remote_lm(_: str) -> LanguageModel | None:
    return None


@dataclass(eq=False)
class StudyContext:
    """The settings and folder of studies, and models that are loaded once for all of them.

    ``locate`` adds an experiment's data files, ``remote_lm`` returns the client of a model that runs on a server. With
    ``dry_run``, heads are not searched for and nothing is written. ``lm`` and ``index`` replace those of the settings.
    """

    settings: StudySettings
    folder: Path
    locate: Callable[[Experiment], Experiment] = _unchanged
    remote_lm: Callable[[str], LanguageModel | None] = _no_remote_lm
    offline: bool = False
    dry_run: bool = False
    report: ProgressReport = silent
    lm: LanguageModel | None = None
    index: Index | None = None
    _lms: dict[Any, LanguageModel] = field(default_factory=dict)
    _indexes: dict[Any, Index] = field(default_factory=dict)

    def check(self, studies: Sequence[Study], *, finding: bool = False) -> None:
        """Check all settings before anything is loaded; with ``finding``, only those for finding heads."""
        for study in studies:
            options = self.settings.options(study)
            # The options alone decide which parts there are; corpus and model decide only their methods.
            parts = study.parts(options, DryRunSetup())
            self.settings.check_parts(study, [part.name for part in parts])
            for part in [_finding_part("corpus" if options.finds_in_corpus else "training")] if finding else parts:
                self.experiment(study, part)

    def parts(self, study: Study) -> list[StudyPart]:
        """Return the experiments of a study; corpus and model are loaded if these depend on them."""
        parts = list(study.parts(self.settings.options(study), LoadedSetup(self, study)))
        self.settings.check_parts(study, [part.name for part in parts])
        return parts

    def experiment(self, study: Study, part: StudyPart) -> Experiment:
        """Return the experiment of a part, with its files."""
        return self.locate(self.settings.experiment(study, part))

    def experiment_context(self, experiment: Experiment) -> ExperimentContext:
        """Return an experiment's context, with loaded models; its examples are read and checked before these."""
        scoring = experiment.scoring
        lm_key = (experiment.lm, scoring.device, scoring.dtype, scoring.batch_size)
        recipe = None if experiment.corpus is None else experiment.corpus.model_dump_json()
        corpus_key = recipe, experiment.encoder
        lm = self.lm or self._lms.get(lm_key) or self.remote_lm(experiment.lm)
        index = self.index or self._indexes.get(corpus_key)
        context = ExperimentContext(experiment, lm=lm, index=index, offline=self.offline, report=self.report)
        if per_example := [name for name, task in context.tasks.items() if task.labels.counted]:
            raise ConfigError(
                f"each example of {', '.join(per_example)} has its options, and studies need labels that all examples "
                "share",
                hint="leave the task out of --tasks",
            )
        if context.index is not None:
            self._indexes[corpus_key] = context.index
        self._lms[lm_key] = context.lm
        return context

    def results_folder(self, study: Study, part: StudyPart) -> Path:
        """Return the results folder of a part."""
        return self.folder / study.name / part.name

    def other_results(self, folder: Path) -> list[Path]:
        """Return the results folders of all parts of all studies, except this one."""
        folders = sorted(path.parent for path in self.folder.glob(f"*/*/{MANIFEST}"))
        return [path for path in folders if path != folder]


@dataclass(frozen=True, eq=False)
class LoadedSetup:
    """The setup of a study with its corpus and model, each loaded when it is first needed."""

    context: StudyContext
    study: Study

    @cached_property
    def _plain(self) -> Experiment:
        return self.context.experiment(self.study, PLAIN)

    @property
    def k(self) -> int:
        """Return the number of demonstrations."""
        return self._plain.k

    @cached_property
    def _index(self) -> Index:
        index = self.context.experiment_context(self._plain).index
        if index is None:
            raise ConfigError(f"the study {self.study.name} needs a corpus", hint="--corpus reviews.zicl")
        return index

    def count_with_neighbour(self, share: float) -> tuple[int, ...]:
        """Return, for each seed, how many sentences of a share of the corpus have a physical neighbour."""
        seeds = self._plain.seeds_of(NO_INFERENCE)
        return tuple(subset(self._index, share=share, seed=seed).corpus.accompanied for seed in seeds)

    def heads(self, task: str | None, examples: int, found_on: FoundOn) -> HeadScores:
        """Return the stored scores of the model's heads, or find the heads and store their scores."""
        path = self.context.folder / self.study.name / SCORES_FILE
        lm = self.context.experiment_context(self._plain).lm
        # A model whose heads are not accessible fails here, before prompts are written.
        layout = head_layout(lm)
        if path.is_file():
            scores = HeadScores.read(path)
            scores.check(lm)
            self._check_stored(scores, task, examples, found_on, path)
            return scores
        if self.context.dry_run:
            return _zero_scores(lm.name, lm.identity, layout.layers, layout.heads)
        task = task or self._plain.tasks[0]
        scores = find_on_task(self._finding_context(task, found_on), task, examples, found_on, self.context.report)
        scores.write(path)
        return scores

    def _check_stored(self, scores: HeadScores, task: str | None, examples: int, found_on: FoundOn, path: Path) -> None:
        """Check that stored heads were found as the options say; otherwise the options would be ignored silently."""
        task = task or scores.task
        same = (task, found_on) == (scores.task, scores.found_on)
        if same and scores.prompts != examples:
            # Of a task with fewer training examples than requested, all were used.
            available = len(self._finding_context(task, found_on).training[task])
            same = scores.prompts == min(examples, available)
        if not same:
            raise ConfigError(
                f"{path} has heads that were found on {scores.prompts} examples of {scores.task} (found_on: "
                f"{scores.found_on}), not on {examples} of {task} (found_on: {found_on})",
                hint="remove it to find them again, or set the same in the options of the study of heads",
            )

    def _finding_context(self, task: str, found_on: FoundOn) -> ExperimentContext:
        experiment = self.context.settings.experiment(self.study, _finding_part(found_on))
        experiment = experiment.model_copy(update={"tasks": (task,)})
        return self.context.experiment_context(self.context.locate(experiment))


@dataclass(frozen=True)
class DryRunSetup:
    """A setup without corpus and model, larger than any real one: for checks before these are loaded."""

    k: int = 1

    def count_with_neighbour(self, share: float) -> tuple[int, ...]:
        """Return a number that is enough for any number of demonstrations."""
        return (int(share * 2**40),)

    def heads(self, task: str | None, examples: int, found_on: FoundOn) -> HeadScores:
        """Return scores of more heads than models have."""
        return _zero_scores("", "", 128, 128)


def _zero_scores(model: str, identity: str, layers: int, heads: int) -> HeadScores:
    """Return scores for counting tokens: a prompt has the same length whichever heads are silenced."""
    rows = ((0.0,) * heads,) * layers
    return HeadScores(model=model, identity=identity, task="", prompts=1, scores=rows)
