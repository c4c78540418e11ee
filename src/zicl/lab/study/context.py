"""What studies run on: their settings, the folder of their results, and models that are loaded once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from zicl._util.progress import ProgressReport, silent
from zicl.exceptions import ConfigError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.examples import subsample
from zicl.lab.evaluate.experiment import Experiment
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS
from zicl.lab.evaluate.plan import PlanCell
from zicl.lab.evaluate.run import Runner
from zicl.lab.evaluate.store import MANIFEST, NO_INFERENCE
from zicl.lab.heads.scores import FILE, FoundOn, HeadScores
from zicl.lab.study.base import UNLIMITED, Study, StudyPart
from zicl.lab.study.settings import StudySettings
from zicl.lm.base import LanguageModel
from zicl.lm.heads import head_layout
from zicl.retrieve.index import Index, subset

# An experiment that needs nothing but tasks and a model.
PLAIN = StudyPart("plain", {"no-demos": EXPERIMENT_METHODS["no-demos"]})
# One that needs a corpus too.
READING = StudyPart("reading", {"z-icl": EXPERIMENT_METHODS["z-icl"]})


# The method whose prompts heads are found on, by what these show; those of training examples are then balanced.
_FINDERS: Mapping[FoundOn, str] = {"training": "nearest-icl-gold", "corpus": "naive"}


def _as_it_is(experiment: Experiment) -> Experiment:
    return experiment


def _nobody(_: str) -> LanguageModel | None:
    return None


@dataclass(eq=False)
class StudyContext:
    """``placed`` says where an experiment's files are, ``asked`` gives a model that is not loaded but asked elsewhere.

    A ``dry`` bench only counts: it writes and finds nothing.
    """

    settings: StudySettings
    folder: Path
    placed: Callable[[Experiment], Experiment] = _as_it_is
    asked: Callable[[str], LanguageModel | None] = _nobody
    offline: bool = False
    dry: bool = False
    report: ProgressReport = silent
    lm: LanguageModel | None = None
    index: Index | None = None
    _lms: dict[Any, LanguageModel] = field(default_factory=dict)
    _indexes: dict[Any, Index] = field(default_factory=dict)

    def check(self, studies: Sequence[Study], *, finding: bool = False) -> None:
        """What can be known to be wrong before anything is loaded; ``finding`` heads needs no corpus."""
        for study in studies:
            options = self.settings.options(study)
            reads = options.finds_in_corpus if finding else study.needs_corpus
            self.experiment(study, READING if reads else PLAIN)
            # Which parts there are depends on the options alone; only their methods on corpus and model.
            parts = study.parts(options, DryRunSetup())
            self.settings.check_parts(study, [part.name for part in parts])
            for part in () if finding else parts:
                self.experiment(study, part)

    def parts(self, study: Study) -> list[StudyPart]:
        """The experiments of a study, checked."""
        parts = list(study.parts(self.settings.options(study), LoadedSetup(self, study)))
        self.settings.check_parts(study, [part.name for part in parts])
        return parts

    def experiment(self, study: Study, part: StudyPart) -> Experiment:
        """One experiment, with its files."""
        return self.placed(self.settings.experiment(study, part))

    def world(self, experiment: Experiment) -> ExperimentContext:
        """All it runs on. The examples are read first: a bad row is found before a model is loaded."""
        scoring = experiment.scoring
        loaded = (experiment.lm, scoring.device, scoring.dtype, scoring.batch_size)
        corpus = None if experiment.corpus is None else experiment.corpus.model_dump_json()
        lm, index = self.lm or self._lms.get(loaded), self.index or self._indexes.get(corpus)
        lm = lm or self.asked(experiment.lm)
        world = ExperimentContext(experiment, lm=lm, index=index, offline=self.offline, report=self.report)
        if counted := [name for name, task in world.tasks.items() if task.labels.counted]:
            raise ConfigError(
                f"examples of {', '.join(counted)} have options of their own, and studies are of labels that all share",
                hint="leave the task out of --tasks",
            )
        if world.index is not None:
            self._indexes[corpus] = world.index
        self._lms[loaded] = world.lm
        return world

    def results(self, study: Study, part: StudyPart) -> Path:
        """The results folder of a part."""
        return self.folder / study.name / part.name

    def others(self, own: Path) -> Iterator[Path]:
        """The results folders of all other parts that were begun."""
        found = sorted(path.parent for path in self.folder.glob(f"*/*/{MANIFEST}"))
        return (path for path in found if path != own)


@dataclass(frozen=True, eq=False)
class LoadedSetup:
    """What the experiments of a study may depend on; nothing is loaded before it is asked for."""

    bench: StudyContext
    study: Study

    @cached_property
    def plain(self) -> Experiment:
        """The tasks and sizes of a run."""
        return self.bench.experiment(self.study, PLAIN)

    @property
    def k(self) -> int:
        """How many demonstrations there are."""
        return self.plain.k

    @cached_property
    def _index(self) -> Index:
        index = self.bench.world(self.plain).index
        if index is None:
            raise ConfigError(f"the study {self.study.name} needs a corpus", hint="--corpus reviews.zicl")
        return index

    def accompanied(self, share: float) -> tuple[int, ...]:
        """For each seed, how many sentences of a share of the corpus have a neighbour."""
        seeds = self.plain.seeds_of(NO_INFERENCE)
        return tuple(subset(self._index, share=share, seed=seed).corpus.accompanied for seed in seeds)

    def heads(self, task: str | None, examples: int, found_on: FoundOn) -> HeadScores:
        """The scores of the model's heads: those found before, else found on direct prompts of nearest texts."""
        path = self.bench.folder / self.study.name / FILE
        lm = self.bench.world(self.plain).lm
        # Before prompts are written: a model whose heads cannot be reached needs none.
        places = head_layout(lm)
        if path.is_file():
            scores = HeadScores.read(path)
            scores.check(lm)
            self._check_found(scores, task, examples, found_on, path)
            return scores
        if self.bench.dry:
            return _nothing(lm.name, lm.identity, places.layers, places.heads)
        scores = self._find(task or self.plain.tasks[0], examples, found_on)
        scores.write(path)
        return scores

    def _check_found(self, scores: HeadScores, task: str | None, examples: int, found_on: FoundOn, path: Path) -> None:
        """These heads were found on what the options say: else the options would be left unused without a word."""
        asked, found = task or scores.task, scores.prompts
        # A task with fewer training examples than were asked for has given all it has.
        other = found > examples or (
            found < examples and found < len(self._finding(scores.task, found_on).training[scores.task])
        )
        if asked != scores.task or found_on != scores.found_on or other:
            raise ConfigError(
                f"{path} has heads that were found on {found} examples of {scores.task} (found_on: {scores.found_on}), "
                f"not on {examples} of {asked} (found_on: {found_on})",
                hint="remove it to find them anew, or say the same in the options of the study of heads",
            )

    def _finding(self, task: str, found_on: FoundOn) -> ExperimentContext:
        """What heads are found on: always training examples, since their answers are known."""
        # What is cut is the farthest, whatever its label, and the prompts would no longer show as many of each.
        part = StudyPart(
            "find", {name: EXPERIMENT_METHODS[name] for name in (_FINDERS["training"], _FINDERS[found_on])}, UNLIMITED
        )
        made = self.bench.settings.experiment(self.study, part)
        return self.bench.world(self.bench.placed(made.model_copy(update={"tasks": (task,)})))

    def _find(self, task: str, count: int, found_on: FoundOn) -> HeadScores:
        """Find them now."""
        from zicl.lab.heads.find import balanced_pipeline, find_heads, mark_labels

        world, report = self._finding(task, found_on), self.bench.report
        # Labels of the corpus' sentences are drawn, under a seed.
        seed = self.plain.seeds_of("direct")[0] if found_on == "corpus" else None
        pipeline = Runner(world).ensemble(PlanCell(task, _FINDERS[found_on], "task", "direct", seed)).main
        if found_on == "training":
            pipeline = balanced_pipeline(pipeline, [example.label for example in world.training[task]])
        chosen = subsample(world.training[task], count, world.tasks[task].sample_seed)
        prepared = [pipeline.prepare(example.text) for example in chosen]
        if found_on == "training" and any(each.prompt.dropped for each in prepared):
            raise ConfigError(
                f"{pipeline.k} training examples of {task} do not fit into the model's context, and with some of them "
                "left out there would not be as many of each label",
                hint="find the heads on a task with shorter texts (option task of this study), or with a smaller --k",
            )
        prompts = [mark_labels(each, pipeline.builder, one.label) for each, one in zip(prepared, chosen, strict=True)]
        done = 0

        def advance(more: int) -> None:
            nonlocal done
            done += more
            report("finding heads", done, len(prompts))

        return find_heads(world.lm, prompts, task=task, found_on=found_on, progress=advance)


@dataclass(frozen=True)
class DryRunSetup:
    """A setup larger than any: what of a study can be checked before its corpus and its model are there."""

    k: int = 1

    def accompanied(self, share: float) -> tuple[int, ...]:
        """Enough for any number of demonstrations."""
        return (int(share * 2**40),)

    def heads(self, task: str | None, examples: int, found_on: FoundOn) -> HeadScores:
        """Scores of more heads than models have."""
        return _nothing("", "", 128, 128)


def _nothing(model: str, identity: str, layers: int, heads: int) -> HeadScores:
    """Scores for counting tokens: whichever heads are silenced, a prompt is as long."""
    rows = ((0.0,) * heads,) * layers
    return HeadScores(model=model, identity=identity, task="", prompts=1, scores=rows)
