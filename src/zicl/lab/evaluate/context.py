"""The context of an experiment: its tasks and examples, and its corpus, encoder and language model, loaded lazily."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zicl._util.cache import BoundedCache
from zicl._util.files import read_json
from zicl._util.progress import ProgressReport, silent
from zicl._util.registry import did_you_mean
from zicl.corpus.manifest import MANIFEST
from zicl.corpus.store import Corpus
from zicl.exceptions import ConfigError
from zicl.inputs.pair import Text
from zicl.lab.evaluate import controls
from zicl.lab.evaluate.examples import Example, data_hash, read_examples, read_test, subsample
from zicl.lab.evaluate.experiment import CorpusRecipe, Experiment
from zicl.lab.evaluate.methods import ExperimentMethod
from zicl.lab.evaluate.released import GivenRetriever, GivenSentences, ReleasedData
from zicl.lab.evaluate.tasks import Task, get_task, read_tasks
from zicl.lab.evaluate.training import TrainingIndex, check_enough
from zicl.lm.base import LanguageModel
from zicl.retrieve.clusters import Clusters, fit_clusters
from zicl.retrieve.encoder import DEFAULT_ENCODER, Encoder, load_encoder
from zicl.retrieve.index import Index, Searchable

if TYPE_CHECKING:
    from zicl.lm.layer_cache import LowerLayerCache


class ExperimentContext:
    """Everything an experiment runs on.

    Examples are read at once, so that a bad row is found before anything slow begins; the rest is loaded on first use.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        lm: LanguageModel | None = None,
        index: Index | None = None,
        offline: bool = False,
        report: ProgressReport = silent,
    ) -> None:
        self.experiment, self.offline, self.report = experiment, offline, report
        self._lm, self._index = lm, index
        defined = read_tasks(Path(experiment.task_file)) if experiment.task_file else {}
        self.tasks: dict[str, Task] = {name: get_task(name, defined) for name in experiment.tasks}
        self.methods = {name: experiment.method(name) for name in experiment.methods}
        self.released = self._released()
        self._in_order: dict[str, list[Example]] = {}
        self._taught: dict[tuple[str, int], list[Example]] = {}
        self.hashes: dict[str, str] = {}
        self.counts: dict[str, Counter[str]] = {}
        self.examples = {name: self._test(name) for name in experiment.tasks}
        self.training = {name: self._train(name) for name in experiment.tasks} if self.needs("labelled") else {}
        self._embedded: dict[Text, NDArray[np.float32]] = {}
        self._clusters: dict[tuple[str, int, int], Clusters] = {}
        self._training_indexes: dict[tuple[str, int | None], TrainingIndex] = {}
        self._parts: dict[tuple[float, tuple[str, ...], int], Index] = {}
        self._planted: dict[tuple[str, float, tuple[str, ...], int], Searchable] = {}
        # A file of two thousand lists has megabytes, and a cell reads one.
        self._given: BoundedCache[tuple[str, str, int], tuple[GivenSentences, GivenRetriever]] = BoundedCache(4)
        self._identities: dict[tuple[str, str, str, int], str | None] = {}

    def check(self) -> None:
        """Check that tasks and model have what the methods need, before the first row."""
        kinds = {method.kind for method in self.methods.values()}
        if "cosine-descriptions" in kinds:
            for name, task in self.tasks.items():
                controls.descriptions(name, task.labels)
        if "instruction" in kinds:
            controls.chat_tokens(self.lm, "x")
        for name, method in self.methods.items():
            for domain in method.without:
                if self.index is not None and domain not in self.index.corpus.domains:
                    raise did_you_mean(f"domain in without of {name}:", domain, self.index.corpus.domains)
            with self.silencing(method):
                # Raises if the model has no such head.
                pass
        counted = [name for name, task in self.tasks.items() if task.labels.counted]
        with_options = ("prompt", "majority", "cosine-words")
        without = [name for name, m in self.methods.items() if m.kind not in with_options or m.labelled]
        if counted and without:
            raise ConfigError(
                f"each example of {', '.join(counted)} has its options, which {', '.join(without)} cannot compare",
                hint="leave these methods out, or the task",
            )

    def _released(self) -> ReleasedData | None:
        """Return the folder of the authors' data, after checking that the methods can use it."""
        folder = self.experiment.demonstrations
        if folder is None:
            return None
        if not Path(folder).is_dir():
            hint = "docs/reference/experiments.md says what it holds"
            raise ConfigError(f"--demonstrations: there is no folder {folder}", hint=hint)
        released = ReleasedData(Path(folder), self.experiment.k)
        for name, method in self.methods.items():
            released.check(name, method)
        return released

    def _test(self, name: str) -> list[Example]:
        """Return the first examples in the task's stratified order, so that a larger number includes a smaller one."""
        task, source = self.tasks[name], self.experiment.data.get(name)
        if self.released is None:
            examples = read_test(task, source)
        else:
            # Published sentences belong to the examples by their order.
            examples = self._in_order[name] = self.released.test(task, source)
        self.hashes[name] = data_hash(examples)
        self.counts[name] = Counter(example.label for example in examples)
        return subsample(examples, min(self.experiment.examples, len(examples)), task.sample_seed)

    def _train(self, name: str) -> list[Example]:
        """Return a task's training examples, and check that there are enough to show."""
        if released := self._released_train(name):
            return released
        examples = read_examples(self.tasks[name], self.experiment.train.get(name), "train")
        labelled = [method for method in self.methods.values() if method.labelled]
        shown = [self.experiment.k if method.kind == "logistic" else method.retrieval.k for method in labelled]
        check_enough(name, examples, max(shown))
        return examples

    def _released_train(self, name: str) -> list[Example]:
        """Return the published training examples of all seeds, each named by its seed; none if no seed has any."""
        if self.released is None:
            return []
        seeds = dict.fromkeys(seed for each in self.experiment.inferences for seed in self.experiment.seeds_of(each))
        found = {seed: self.released.train(self.tasks[name], seed) for seed in seeds}
        if any(found.values()) and not all(found.values()):
            missing = ", ".join(str(seed) for seed, examples in found.items() if not examples)
            raise ConfigError(
                f"{self.experiment.demonstrations} has training examples of {name}, but none of seed {missing}",
                hint=f"expected a file train in k-shot/…/{self.experiment.k}-SEED; or name other --seeds",
            )
        self._taught |= {(name, seed): examples for seed, examples in found.items() if examples}
        return [example for examples in found.values() if examples for example in examples]

    def taught(self, task: str, method: ExperimentMethod, seed: int) -> list[Example] | None:
        """Return the published training examples that a method shows with a seed, if there are any."""
        return self._taught.get((task, seed)) if method.labelled else None

    def needs(self, trait: str) -> bool:
        """Return whether any method has a trait, such as ``needs_lm``."""
        return any(getattr(method, trait) for method in self.methods.values())

    @cached_property
    def lm(self) -> LanguageModel:
        """The language model."""
        if self._lm is not None:
            return self._lm
        from zicl.lm.load import load_lm

        self.report("loading the language model", 0, None, self.experiment.lm)
        scoring = self.experiment.scoring
        return load_lm(
            self.experiment.lm,
            device=scoring.device,
            dtype=scoring.dtype,
            batch_size=scoring.batch_size,
            offline=self.offline,
            report=self.report,
        )

    @cached_property
    def index(self) -> Index | None:
        """The index of the raw corpus; built first if there is a recipe and no folder."""
        recipe, name = self.experiment.corpus, self.experiment.encoder
        if self.released is not None:
            return None
        if self._index is not None:
            return self._index
        # Even if no method retrieves from it: all methods of an experiment use its encoder.
        if recipe is None:
            return None
        if recipe.domains:
            chosen = recipe if name is None else recipe.model_copy(update={"encoder": name})
            _build(chosen, self.report, offline=self.offline)
        # Opening checks that it is the one that the corpus was built with.
        encoder = None if name is None else load_encoder(name, offline=self.offline)
        return Index.open(recipe.path, encoder=encoder, offline=self.offline)

    @property
    def embeds(self) -> bool:
        """Whether any method uses the encoder: sentences from files were found by another."""
        given = self.released is not None
        return any(method.embeds and not (given and method.needs_corpus) for method in self.methods.values())

    def given(self, task: str, method: ExperimentMethod, seed: int) -> tuple[GivenSentences, GivenRetriever] | None:
        """Return the published sentences of a task, if the experiment takes its demonstrations from files."""
        if self.released is None or not method.needs_corpus:
            return None
        released, examples = self.released, self._in_order[task]

        def read() -> tuple[GivenSentences, GivenRetriever]:
            return released.demonstrations(self.tasks[task], method, seed, examples, lambda: self.encoder)

        return self._given.get_or_compute((task, method.retrieval.method, seed), read)

    def source_identity(self, task: str, method: ExperimentMethod, seed: int) -> str | None:
        """Return a hash of the published files that a method reads with a seed, if it reads any."""
        key = task, method.retrieval.method, method.demos, seed
        if key not in self._identities:
            given, taught = self.given(task, method, seed), self.taught(task, method, seed)
            self._identities[key] = given[0].identity if given else data_hash(taught) if taught else None
        return self._identities[key]

    def corpus(self, task: str, method: ExperimentMethod, seed: int) -> Searchable | None:
        """Return the raw corpus as a method reads it for a task with a seed: a part of it, or with planted texts."""
        part = self._part(method, seed)
        if part is None or not method.planted:
            return part
        key = task, method.corpus_share, method.without, seed if method.corpus_share < 1 else 0
        if key not in self._planted:
            from zicl.retrieve.planted import plant

            self._planted[key] = plant(part, [example.text for example in self.examples[task]])
        return self._planted[key]

    def _part(self, method: ExperimentMethod, seed: int) -> Index | None:
        if not method.needs_corpus or self.index is None:
            return None
        if method.corpus_share == 1 and not method.without:
            return self.index
        key = method.corpus_share, method.without, seed if method.corpus_share < 1 else 0
        if key not in self._parts:
            from zicl.retrieve.index import subset

            self._parts[key] = subset(self.index, share=key[0], without=key[1], seed=key[2])
        return self._parts[key]

    @contextmanager
    def silencing(self, method: ExperimentMethod) -> Iterator[None]:
        """Silence the attention heads of a method while the block runs."""
        if not self.needs("silenced"):
            yield
            return
        from zicl.lm.heads import Head, silence_heads, transformers_model

        heads = silence_heads(self.lm, [Head(*pair) for pair in method.silenced]) if method.silenced else nullcontext()
        cache = self._lower_layers
        cached = transformers_model(self.lm).forward.use_layer_cache(cache) if cache else nullcontext()
        with heads, cached:
            yield

    @cached_property
    def _lower_layers(self) -> LowerLayerCache | None:
        """A cache of the layers below all heads that any method silences."""
        from zicl.lm.heads import head_layout
        from zicl.lm.layer_cache import LowerLayerCache

        lowest = min(layer for method in self.methods.values() for layer, _ in method.silenced)
        return LowerLayerCache(head_layout(self.lm).blocks[:lowest]) if lowest else None

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of the corpus, else the one that was named, else the default one."""
        if self.index is not None:
            return self.index.encoder
        return load_encoder(self.experiment.encoder or DEFAULT_ENCODER, offline=self.offline)

    def embed(self, text: Text) -> NDArray[np.float32]:
        """Return the vector of a text, encoded without batch-mates and once for all methods."""
        if self.index is not None:
            return self.index.embed(text)
        if text not in self._embedded:
            self._embedded[text] = self.encoder.encode([str(text)])[0]
        return self._embedded[text]

    def clusters(self, task: str, share: int, seed: int) -> Clusters | None:
        """Return the clusters of a task's test inputs that share demonstrations, fitted without labels."""
        if share == 1:
            return None
        key = task, share, seed
        if key not in self._clusters:
            texts = [example.text for example in self.examples[task]]
            self._clusters[key] = fit_clusters(texts, self.embed, share, seed)
        return self._clusters[key]

    def training_index(self, task: str, seed: int) -> TrainingIndex:
        """Return a task's training examples as an index; the authors published other ones for every seed."""
        taught = self._taught.get((task, seed))
        key = task, seed if taught else None
        if key not in self._training_indexes:
            examples = taught or self.training[task]
            self._training_indexes[key] = TrainingIndex(task, examples, lambda: self.encoder, self.embed)
        return self._training_indexes[key]


def _build(recipe: CorpusRecipe, report: ProgressReport, *, offline: bool) -> None:
    """Build the corpus of a recipe and its index, if they are missing; a killed build resumes."""
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.shards import BuildOptions
    from zicl.corpus.sources import find_sources
    from zicl.retrieve.builder import FOLDER, build_index

    folder = Path(recipe.path)
    if not (folder / MANIFEST).is_file():
        paths = {name: domain.paths for name, domain in recipe.domains.items()}
        sources = find_sources([], paths, text_columns=recipe.text_columns)
        options = BuildOptions(
            recipe.max_paragraphs,
            recipe.seed,
            recipe.splitter,
            recipe.text_column,
            domain_paragraphs=recipe.domain_paragraphs,
        )
        build_corpus(sources, folder, options, report=report)
    _check_built(recipe, Corpus.open(folder, verify=False), folder / FOLDER / MANIFEST)
    if not (folder / FOLDER / MANIFEST).is_file():
        build_index(Corpus.open(folder), load_encoder(recipe.encoder, offline=offline), report=report)


def _check_built(recipe: CorpusRecipe, corpus: Corpus, index: Path) -> None:
    """Check that an existing corpus was built with the recipe, which would otherwise be ignored."""
    sources = corpus.manifest["sources"]
    built = {
        "domain_paragraphs": {},
        **corpus.manifest["options"],
        "domains": sorted(corpus.domains),
        "text_columns": {source["domain"]: source["text_column"] for source in sources if "text_column" in source},
    }
    names = ("max_paragraphs", "domain_paragraphs", "seed", "splitter", "text_column", "text_columns")
    expected: dict[str, Any] = {name: getattr(recipe, name) for name in names}
    expected["domains"] = sorted(recipe.domains)
    if index.is_file():
        # Only the last part of the name: an encoder in a folder may be given by another path.
        built["encoder"] = Path(read_json(index)["encoder"]["name"]).name
        expected["encoder"] = Path(recipe.encoder).name
    for name, value in expected.items():
        if built[name] != value:
            raise ConfigError(
                f"the corpus {recipe.path} was built with {name} {built[name]!r}, and its recipe says {value!r}",
                hint="give the corpus of this recipe another path, or remove the old one to have it built again",
            )
