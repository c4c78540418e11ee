"""What the folders on the command line hold: results, and studies with results of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zicl.corpus.store import Sentence
from zicl.exceptions import ConfigError, StorageError
from zicl.lab.evaluate.examples import Example, data_hash, read_examples, read_test
from zicl.lab.evaluate.experiment import Experiment
from zicl.lab.evaluate.store import MANIFEST, ROWS
from zicl.lab.evaluate.tasks import get_task, read_tasks
from zicl.lab.report.html.sections import PageStudy, read_study
from zicl.lab.report.study_summary import FILE as STUDY
from zicl.retrieve.index import Index


@dataclass(frozen=True)
class FoundFolders:
    """Results folders that stand for themselves, and studies."""

    results: tuple[Path, ...]
    studies: tuple[PageStudy, ...]


def find_folders(paths: Sequence[Path]) -> FoundFolders:
    """Results and studies in these folders and below them, each once, in the order of the names."""
    results: dict[Path, Path] = {}
    studies: dict[Path, PageStudy] = {}
    for path in paths:
        folders = list(_walk(path))
        for folder in folders:
            if (folder / STUDY).is_file():
                studies[folder.resolve()] = read_study(folder, tuple(_results(folder)))
            else:
                results.setdefault(folder.resolve(), folder)
        if not folders:
            raise StorageError(
                f"{path} holds no results and no study" if path.is_dir() else f"there is no {path}",
                hint="give a folder that zicl evaluate or zicl study wrote, or one that holds such folders",
            )
    return FoundFolders(tuple(results.values()), tuple(_told_apart(studies)))


def _told_apart(studies: Mapping[Path, PageStudy]) -> Iterator[PageStudy]:
    """Studies of one name, of two models perhaps, with the folders that they are in."""
    for folder, study in studies.items():
        alike = [other for other, its in studies.items() if its.told.name == study.told.name]
        top = os.path.commonpath([other.parent for other in alike])
        yield replace(study, within=os.path.relpath(folder.parent, top)) if len(alike) > 1 else study


def _walk(path: Path) -> Iterator[Path]:
    """The folders that are results or a study; nobody looks for more inside them."""
    if (path / STUDY).is_file() or _is_results(path):
        yield path
    elif path.is_dir():
        for folder in sorted(path.iterdir()):
            if folder.is_dir() and not folder.name.startswith("."):
                yield from _walk(folder)


def _results(study: Path) -> Iterator[Path]:
    """The results inside a study's folder: the folder itself, or folders below it."""
    if _is_results(study):
        yield study
        return
    for folder in sorted(study.iterdir()):
        if folder.is_dir() and not folder.name.startswith("."):
            yield from _results(folder)


def _is_results(path: Path) -> bool:
    # A corpus has a manifest as well, but no rows.
    return (path / MANIFEST).is_file() and (path / ROWS).is_dir()


# -- The texts behind the ids of stored rows, looked up in the data and the corpus they were computed on.


Examples = dict[str, Example]


@dataclass(frozen=True)
class SourceTexts:
    """Test and training examples by task and id, under the hash of the data they are of; and the corpus."""

    tests: Mapping[tuple[str, str], Examples] = field(default_factory=dict)
    training: Mapping[tuple[str, str], Examples] = field(default_factory=dict)
    index: Index | None = None

    def test(self, manifest: Mapping[str, Any], task: str) -> Examples:
        """The test examples that a folder's rows of a task are about; none if these are others."""
        return self.tests.get((task, str(manifest["tasks"][task].get("hash"))), {})

    def train(self, manifest: Mapping[str, Any], task: str) -> Examples:
        """The training examples that a folder's demonstrations of a task are."""
        return self.training.get((task, str(manifest["tasks"][task].get("train_hash"))), {})

    def corpus(self, manifest: Mapping[str, Any]) -> Index | None:
        """The corpus, if the folder's rows were computed with it."""
        known = (manifest["fingerprint"].get("corpus") or {}).get("identity")
        return self.index if self.index is not None and self.index.identity == known else None

    def sentence(self, manifest: Mapping[str, Any], task: str, id_: str, *, train: bool) -> Sentence | None:
        """A demonstration with its text and where it is from, if that is known."""
        if train:
            example = self.train(manifest, task).get(id_)
            return None if example is None else Sentence(-1, example.text, -1, 0, task, "training example")
        index = self.corpus(manifest)
        known = index is not None and id_.isdecimal() and int(id_) < len(index.corpus)
        return index.sentence(int(id_)) if index is not None and known else None


def read_texts(experiment: Experiment, manifests: Sequence[Mapping[str, Any]]) -> SourceTexts:
    """The texts of local files that an experiment names; what is in no file stays an id, and nothing is fetched.

    Files of other examples than the rows', and another corpus, are an error: ids would get the wrong texts.
    """
    own = read_tasks(Path(experiment.task_file)) if experiment.task_file else {}
    tests, training = {}, {}
    for name in experiment.tasks:
        task = get_task(name, own)
        test, train = experiment.data.get(name) or task.test, experiment.train.get(name) or task.train
        if test and test != "hub":
            found = read_test(task, test)
            tests[name, _known(name, "hash", data_hash(found), manifests)] = {each.id: each for each in found}
        if train and train != "hub" and any(_entry(m, name).get("train_hash") for m in manifests):
            found = read_examples(task, train, "train")
            training[name, _known(name, "train_hash", data_hash(found), manifests)] = {each.id: each for each in found}
    index = None if experiment.corpus is None else Index.open(experiment.corpus.path, offline=True)
    texts = SourceTexts(tests, training, index)
    if index is not None and not any(texts.corpus(manifest) for manifest in manifests):
        raise ConfigError(
            f"the results were computed with another corpus than {index.corpus.path}",
            hint="name the corpus of the evaluation, or leave --corpus out: demonstrations then go by their ids",
        )
    return texts


def _entry(manifest: Mapping[str, Any], task: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = manifest["tasks"].get(task) or {}
    return found


def _known(task: str, kind: str, value: str, manifests: Sequence[Mapping[str, Any]]) -> str:
    if not any(_entry(manifest, task).get(kind) == value for manifest in manifests):
        raise ConfigError(
            f"the results of {task} were computed on other {'test' if kind == 'hash' else 'training'} examples "
            "than those of the file",
            hint="name the files of the evaluation, or leave them out: texts then go by their ids",
        )
    return value
