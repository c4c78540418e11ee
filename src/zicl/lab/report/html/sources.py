"""What a page is made from: results and studies in folders, and the texts behind the ids of stored rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zicl._util.html import slug
from zicl.corpus.store import Sentence
from zicl.exceptions import ConfigError, StorageError
from zicl.lab.evaluate.examples import Example, data_hash, read_examples, read_test
from zicl.lab.evaluate.experiment import Experiment
from zicl.lab.evaluate.released import ReleasedData
from zicl.lab.evaluate.store import TABLE_HINT, is_results
from zicl.lab.evaluate.tasks import get_task, read_tasks
from zicl.lab.report.study_summary import FILE as STUDY
from zicl.lab.report.study_summary import StudySummary
from zicl.retrieve.index import Index

IMAGE_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}

# -- results and studies -------------------------------------------------------------------------


@dataclass(frozen=True)
class PageFigure:
    """An image with its title, and its content in words for those who cannot see it."""

    title: str
    alt: str
    type: str
    data: bytes


@dataclass(frozen=True)
class PageStudy:
    """The summary of a study, its figures, and the results folders in it."""

    summary: StudySummary
    figures: tuple[PageFigure, ...]
    results: tuple[Path, ...]
    # The folder, if another study on the page has the same name.
    parent: str = ""

    @property
    def name(self) -> str:
        """The unique name on the page."""
        return f"{self.summary.name} ({self.parent})" if self.parent else self.summary.name

    @property
    def title(self) -> str:
        """The unique title on the page."""
        return f"{self.summary.title} ({self.parent})" if self.parent else self.summary.title

    @property
    def id(self) -> str:
        """The id of its element."""
        return slug(f"study-{self.name}")


@dataclass(frozen=True)
class PageFolders:
    """Results folders that belong to no study, and studies."""

    results: tuple[Path, ...]
    studies: tuple[PageStudy, ...]


def find_folders(paths: Sequence[Path]) -> PageFolders:
    """Find results and studies in these folders and below them, each once, sorted by name."""
    results: dict[Path, Path] = {}
    studies: dict[Path, PageStudy] = {}
    for path in paths:
        folders = list(_walk(path))
        for folder in folders:
            if (folder / STUDY).is_file():
                studies[folder.resolve()] = _read_study(folder)
            else:
                results.setdefault(folder.resolve(), folder)
        if path.is_file():
            raise StorageError(f"{path} is a file, not a results folder", hint=TABLE_HINT)
        if not folders:
            raise StorageError(
                f"{path} holds no results and no study" if path.is_dir() else f"there is no {path}",
                hint="give a folder that zicl evaluate or zicl study wrote, or one that holds such folders",
            )
    return PageFolders(tuple(results.values()), tuple(_with_unique_names(studies)))


def _walk(path: Path, *, studies: bool = True) -> Iterator[Path]:
    """Yield the folders that are results or (``studies``) a study, but none inside them."""
    if is_results(path) or (studies and (path / STUDY).is_file()):
        yield path
    elif path.is_dir():
        for folder in sorted(path.iterdir()):
            if folder.is_dir() and not folder.name.startswith("."):
                yield from _walk(folder, studies=studies)


def _read_study(folder: Path) -> PageStudy:
    summary = StudySummary.read(folder)
    figures = []
    for each in summary.figures:
        path = folder / each.file
        inside = path.resolve().is_relative_to(folder.resolve())
        if path.suffix not in IMAGE_TYPES or not inside or not path.is_file():
            raise StorageError(
                f"{folder} names the figure {each.file!r}, and there is no such SVG or PNG file in it",
                hint="run the study again",
            )
        figures.append(PageFigure(each.title, each.alt or each.title, IMAGE_TYPES[path.suffix], path.read_bytes()))
    return PageStudy(summary, tuple(figures), tuple(_walk(folder, studies=False)))


def _with_unique_names(studies: Mapping[Path, PageStudy]) -> Iterator[PageStudy]:
    """Add the folder to studies with the same name, such as those of two models."""
    for folder, study in studies.items():
        namesakes = [path for path, other in studies.items() if other.summary.name == study.summary.name]
        top = os.path.commonpath([path.parent for path in namesakes])
        yield replace(study, parent=os.path.relpath(folder.parent, top)) if len(namesakes) > 1 else study


# -- texts ---------------------------------------------------------------------------------------

Examples = dict[str, Example]


@dataclass(frozen=True)
class SourceTexts:
    """Test and training examples, by task and the hash of the data, and the corpus."""

    tests: Mapping[tuple[str, str], Examples] = field(default_factory=dict)
    training: Mapping[tuple[str, str], Examples] = field(default_factory=dict)
    index: Index | None = None

    def test(self, manifest: Mapping[str, Any], task: str) -> Examples:
        """Return the test examples that a folder's rows of a task were computed on, by id; empty if not known."""
        return self.tests.get((task, str(manifest["tasks"][task].get("hash"))), {})

    def corpus(self, manifest: Mapping[str, Any]) -> Index | None:
        """Return the corpus, if the folder's rows were computed with it."""
        identity = (manifest["fingerprint"].get("corpus") or {}).get("identity")
        return self.index if self.index is not None and self.index.identity == identity else None

    def sentence(self, manifest: Mapping[str, Any], task: str, id_: str, *, train: bool) -> Sentence | None:
        """Return a demonstration with its text and source, if known."""
        if train:
            examples = self.training.get((task, str(manifest["tasks"][task].get("train_hash"))), {})
            example = examples.get(id_)
            return None if example is None else Sentence(-1, example.text, -1, 0, task, "training example")
        index = self.corpus(manifest)
        if index is None or not id_.isdecimal() or int(id_) >= len(index.corpus):
            return None
        return index.sentence(int(id_))


def read_texts(experiment: Experiment, manifests: Sequence[Mapping[str, Any]]) -> SourceTexts:
    """Read the texts of an experiment's local files. Nothing is downloaded; other texts are shown by their ids.

    Files with other examples than the rows', and another corpus, are an error: ids would get the wrong texts.
    """
    user_tasks = read_tasks(Path(experiment.task_file)) if experiment.task_file else {}
    tests, training = {}, {}
    released = ReleasedData(Path(experiment.demonstrations), experiment.k) if experiment.demonstrations else None
    for name in experiment.tasks:
        task = get_task(name, user_tasks)
        test, train = experiment.data.get(name) or task.test, experiment.train.get(name) or task.train
        local = str(test) if test and test != "hub" else None
        if local or (released is not None and released.has_test(task)):
            examples = read_test(task, local) if released is None else released.test(task, local)
            tests[name, _checked_hash(name, "hash", examples, manifests)] = {each.id: each for each in examples}
        if train and train != "hub" and any(_task_entry(m, name).get("train_hash") for m in manifests):
            examples = read_examples(task, train, "train")
            training[name, _checked_hash(name, "train_hash", examples, manifests)] = {e.id: e for e in examples}
    # Published sentences come from no corpus: they go by the line and place in their file.
    path = None if released is not None or experiment.corpus is None else experiment.corpus.path
    index = None if path is None else Index.open(path, offline=True)
    texts = SourceTexts(tests, training, index)
    if index is not None and not any(texts.corpus(manifest) for manifest in manifests):
        raise ConfigError(
            f"the results were computed with another corpus than {index.corpus.path}",
            hint="name the corpus of the evaluation, or leave --corpus out: demonstrations then go by their ids",
        )
    return texts


def _task_entry(manifest: Mapping[str, Any], task: str) -> Mapping[str, Any]:
    return manifest["tasks"].get(task) or {}


def _checked_hash(task: str, kind: str, examples: Sequence[Example], manifests: Sequence[Mapping[str, Any]]) -> str:
    """Return the hash of the examples, if the rows of some folder were computed on them."""
    value = data_hash(examples)
    if not any(_task_entry(manifest, task).get(kind) == value for manifest in manifests):
        raise ConfigError(
            f"the results of {task} were computed on other {'test' if kind == 'hash' else 'training'} examples "
            "than those of the file",
            hint="name the files of the evaluation, or leave them out: texts then go by their ids",
        )
    return value
