"""Read what the authors published: test sets, training examples, and the sentences found for every test input.

With these no corpus and no encoder is needed. A folder holds the two downloads, each possibly in a folder of its own:

    retrieved/NAME_WAY/NAME_WAY_K_SEED.jsonl             a list of k sentences per test input, the farthest first
    k-shot/NAME/K-SEED/{train,test}.csv or .tsv          examples: the data of Channel LM Prompting
    NAME/NAME_K_SEED_{train,test}.jsonl                  examples: what the authors' scripts make
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zicl._util.cache import BoundedCache
from zicl._util.random import stable_hash
from zicl.corpus.store import Sentence
from zicl.exceptions import ConfigError, TextError
from zicl.inputs.pair import Text, text_key
from zicl.inputs.tables import read_records
from zicl.lab.evaluate.examples import Example, read_examples
from zicl.lab.evaluate.methods import ExperimentMethod
from zicl.lab.evaluate.tasks import Task
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.index import CACHED_QUERIES, Hit, NoNeighbours, Searchable
from zicl.retrieve.strategies.base import Query, Retrieved, Retriever

T = TypeVar("T")
# The authors' names of the tasks, and those of which they use 2,000 test examples.
NAMES = {
    "CR": "cr",
    "Amz": "amazon_polarity",
    "Amz5": "amazon",
    "Yelp": "yelp_polarity",
    "Yelp5": "yelp_full",
    "Tweet": "tweet_eval-sentiment",
    "MR": "mr",
    "SST2": "SST-2",
    "SST5": "sst-5",
}
DOWNSIZED = ("Amz5", "Yelp", "Yelp5", "SST5")
TEST_EXAMPLES, SAMPLE_SEED = 2000, 100
# The authors' names of the ways to find sentences.
WAYS = {"nearest": "nearest", "diverse": "dn", "physical": "pn", "random": "ri"}
_LONGEST_CELL = 1 << 30
# Where the downloads may have been unpacked.
_FOLDERS = ("", "datasets", "data", "data-for-public")


@dataclass(frozen=True)
class ReleasedData:
    """The published files below a folder, for prompts of ``k`` demonstrations."""

    folder: Path
    k: int

    def test(self, task: Task, source: str | None) -> list[Example]:
        """Return a task's test examples in the authors' order: from the folder, else from where the task has them."""
        if path := self._made_test(task):
            return _read_made(path, task)
        path = self._k_shot(NAMES.get(task.name, task.name), SAMPLE_SEED, "test")
        examples = _read_k_shot(path, task) if path else read_examples(task, source, "test")
        return downsize(examples) if task.name in DOWNSIZED and len(examples) > TEST_EXAMPLES else examples

    def has_test(self, task: Task) -> bool:
        """Return whether the folder itself has a task's test examples."""
        return bool(self._made_test(task) or self._k_shot(NAMES.get(task.name, task.name), SAMPLE_SEED, "test"))

    def _made_test(self, task: Task) -> Path | None:
        name = NAMES.get(task.name, task.name)
        made = f"{name}-n={TEST_EXAMPLES}" if task.name in DOWNSIZED else name
        return self._find(f"{made}/{made}_{self.k}_{SAMPLE_SEED}_test.jsonl")

    def train(self, task: Task, seed: int) -> list[Example] | None:
        """Return the k training examples of a seed, or None if the folder has none."""
        name = NAMES.get(task.name, task.name)
        if path := self._find(f"{name}/{name}_{self.k}_{seed}_train.jsonl"):
            found = _read_made(path, task)
        elif path := self._k_shot(name, seed, "train"):
            found = _read_k_shot(path, task)
        else:
            return None
        if len(found) != self.k:
            raise TextError(f"{path} has {len(found)} examples, and k = {self.k}", hint=f"--k {len(found)}")
        return [Example(f"{seed}.{example.id}", example.text, example.label) for example in found]

    def demonstrations(
        self,
        task: Task,
        method: ExperimentMethod,
        seed: int,
        examples: Sequence[Example],
        encoder: Callable[[], Encoder],
    ) -> tuple[GivenSentences, GivenRetriever]:
        """Return the sentences published for a task, a way to find them and a seed, and what finds them again."""
        way = WAYS[method.retrieval.method]
        names = [NAMES.get(task.name, task.name)]
        names += [f"{names[0]}-n={TEST_EXAMPLES}"]
        wanted = [f"{name}_{way}/{name}_{way}_{self.k}_{seed}.jsonl" for name in names[::-1]]
        path = next((path for each in wanted if (path := self._find(f"retrieved/{each}"))), None)
        if path is None:
            raise ConfigError(
                f"{self.folder} has no sentences for {task.name}, retrieval {method.retrieval.method!r}, seed {seed}",
                hint=f"expected retrieved/{wanted[0]}; or leave out the task, the method or the seed",
            )
        return _given(path, self.k, examples, encoder)

    def check(self, name: str, method: ExperimentMethod) -> None:
        """Check that a method can take its demonstrations from files, of which there is one per seed."""
        if (method.needs_corpus or method.labelled) and not method.seeded:
            raise ConfigError(
                f"the method {name} draws nothing and so has no seed, and published files belong to a seed",
                hint="leave it out, or --demonstrations",
            )
        if not method.needs_corpus:
            return
        differs = {
            f"retrieval.k = {method.retrieval.k}": method.retrieval.k != self.k,
            "labelling.shared": method.labelling.shared,
            f"retrieval.method = {method.retrieval.method!r}": method.retrieval.method not in WAYS,
            "retrieval.share": method.retrieval.share > 1,
            "corpus_share": method.corpus_share < 1,
            "without": bool(method.without),
            "planted": method.planted,
            "labelling.source = 'self'": method.labelling.source == "self",
        }
        if wrong := [setting for setting, is_set in differs.items() if is_set]:
            raise ConfigError(
                f"the method {name} has {wrong[0]}, which does not go with demonstrations from files",
                hint=f"the files have the retrievals {', '.join(WAYS)}, with k = {self.k}; leave out the setting, or "
                "--demonstrations",
            )

    def _k_shot(self, name: str, seed: int, split: str) -> Path | None:
        places = (f"k-shot/{name}/{self.k}-{seed}/{split}.{kind}" for kind in ("csv", "tsv"))
        return next((path for each in places if (path := self._find(each))), None)

    def _find(self, relative: str) -> Path | None:
        return next((path for each in _FOLDERS if (path := self.folder / each / relative).is_file()), None)


# -- examples ---------------------------------------------------------------------------------------------


def _read_made(path: Path, task: Task) -> list[Example]:
    """Read examples as the authors' scripts write them: objects with ``input`` and ``output``, the label's word."""
    examples = []
    for number, value in _json_lines(path):
        if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("input", "output")):
            raise TextError(f"{path}, line {number}: expected an object with input and output")
        examples.append(_example(path, number, value["input"], value["output"], task))
    return _not_empty(examples, path)


def _read_k_shot(path: Path, task: Task) -> list[Example]:
    """Read the data of Channel LM Prompting: labels are numbers; a .csv has them first and no header, a .tsv last."""
    examples = []
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"{path} is not UTF-8", hint="download it again") from error
    if path.suffix == ".csv":
        csv.field_size_limit(_LONGEST_CELL)
        try:
            rows = [row for row in csv.reader(io.StringIO(content, newline=""), strict=True) if row]
        except csv.Error as error:
            raise TextError(f"{path}: {error}", hint="download it again") from error
    else:
        # Below a header; quotes are part of the text.
        rows = [line.rstrip("\r").split("\t") for line in content.split("\n")[1:] if line.strip()]
    names = task.labels.names
    for number, row in enumerate(rows, start=1):
        label, text = (row[0], row[-1]) if path.suffix == ".csv" else (row[-1], row[0])
        if len(row) != 2 or not label.isdecimal() or int(label) >= len(names):
            raise TextError(
                f"{path}, row {number}: expected a text and a label from 0 to {len(names) - 1}, found {row!s:.80}"
            )
        examples.append(_example(path, number, text, names[int(label)], task))
    return _not_empty(examples, path)


def _example(path: Path, number: int, text: str, label: str, task: Task) -> Example:
    if label not in task.labels.names or not text.strip():
        raise TextError(
            f"{path}, line {number}: the text is empty, or the label {label!r} is not one of {task.name}",
            hint=f"expected one of: {', '.join(task.labels.names)}",
        )
    return Example(str(number), text.strip(), label)


def _not_empty(examples: list[Example], path: Path) -> list[Example]:
    if not examples:
        raise TextError(f"{path} holds no examples", hint="download it again")
    return examples


def downsize(examples: Sequence[Example], count: int = TEST_EXAMPLES) -> list[Example]:
    """Return the authors' sample of a test set in their order: stratified, with NumPy's generator of that time.

    Shares of labels are rounded down, and the labels that appear first get what is left.

    >>> rows = [Example(str(n), f"text {n}", "ab"[n % 3 == 0]) for n in range(9)]
    >>> [example.id for example in downsize(rows, 4)]
    ['7', '2', '3', '6']
    """
    generator = np.random.RandomState(SAMPLE_SEED)
    places: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        places.setdefault(example.label, []).append(place)
    sizes = {label: int(count / len(examples) * len(members)) for label, members in places.items()}
    for label in list(sizes)[: count - sum(sizes.values())]:
        sizes[label] += 1
    chosen = {
        int(n) for label, members in places.items() for n in generator.choice(members, sizes[label], replace=False)
    }
    order = sorted(chosen)
    generator.shuffle(order)
    return [examples[place] for place in order]


# -- demonstrations ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GivenSentences(NoNeighbours):
    """Sentences from a file as an index that is not searched: the rows of its lists, one after the other."""

    sentences: tuple[str, ...]
    # A hash of the sentences and of the texts that they belong to.
    identity: str
    k: int
    name: str
    load_encoder: Callable[[], Encoder]
    _computed: BoundedCache[Hashable, Any] = field(default_factory=lambda: BoundedCache(CACHED_QUERIES))

    @property
    def encoder(self) -> Encoder:
        """The encoder, for synonyms that no table has."""
        return self.load_encoder()

    def embed(self, text: Text) -> NDArray[np.float32]:
        """Return the vector of one text."""
        vector: NDArray[np.float32] = self.encoder.encode([str(text)])[0]
        return vector

    def nearest(self, text: Text) -> Iterator[Hit]:
        """Raise an error: what is near was found by somebody else."""
        raise ConfigError("demonstrations from files are not searched", hint="use a corpus: --corpus reviews.zicl")

    def sentence(self, row: int) -> Sentence:
        """Return a sentence, named by the line of its list and its place in it, both from 1."""
        line, place = divmod(row, self.k)
        return Sentence(row, self.sentences[row].strip(), row, 0, self.name, f"{line + 1}.{place + 1}")

    def documents_like(self, text: str) -> set[int]:
        """Return nothing: there are no documents."""
        return set()

    def indexed(self, domain: str | None = None) -> NDArray[np.int64]:
        """Return the rows of all sentences."""
        return np.arange(len(self.sentences))

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value of ``key``, computing it on first use."""
        value: T = self._computed.get_or_compute(key, compute)
        return value


@dataclass(frozen=True, eq=False)
class GivenRetriever(Retriever):
    """Finds the sentences that a file lists for a text; equal texts get the first one's."""

    lines: Mapping[str, int]
    name: str

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return the rows of the text's list, nearest first: the file has the nearest last."""
        line = self.lines.get(text_key(query.text))
        if line is None:
            raise ConfigError(f"{self.name} has no sentences for the text {str(query.text)[:60]!r}")
        return [Retrieved(row) for row in range((line + 1) * k - 1, line * k - 1, -1)]


@dataclass(frozen=True)
class AllExamples(Retriever):
    """Shows all examples of a file, the first one first."""

    def retrieve(self, index: Searchable, query: Query, k: int) -> list[Retrieved]:
        """Return all rows, the last one as the nearest."""
        return [Retrieved(int(row)) for row in index.indexed()[::-1]]


def _given(
    path: Path, k: int, examples: Sequence[Example], encoder: Callable[[], Encoder]
) -> tuple[GivenSentences, GivenRetriever]:
    sentences = list[str]()
    for number, value in _json_lines(path):
        if not isinstance(value, list) or len(value) != k or not all(isinstance(each, str) for each in value):
            raise TextError(f"{path}, line {number}: expected a list of {k} sentences")
        sentences += value
    if len(sentences) != k * len(examples):
        raise TextError(
            f"{path} has sentences for {len(sentences) // k:,} test inputs, and there are {len(examples):,}",
            hint="line by line they belong to the authors' test examples: put these into the same folder (k-shot/ or "
            "datasets/), or name them with --data",
        )
    texts = [text_key(example.text) for example in examples]
    lines: dict[str, int] = {}
    for line, text in enumerate(texts):
        lines.setdefault(text, line)
    identity = f"{stable_hash(k, *texts, *sentences):032x}"
    return GivenSentences(tuple(sentences), identity, k, path.stem, encoder), GivenRetriever(lines, path.name)


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    return enumerate(read_records(str(path)), start=1)
