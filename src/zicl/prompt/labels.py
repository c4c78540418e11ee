"""Labels: their names, the words shown to the model, their synonyms and descriptions."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from zicl._util.counts import counted
from zicl._util.files import nearest_file, read_toml
from zicl._util.printable import has_half_character, visible
from zicl.exceptions import LabelError

# What separates several labels of one text, and what says that it has none of them.
SEPARATOR, NO_LABEL = "|", "-"
_MOST_COUNTED = 10_000


def split_labels(text: str, *, multi: bool) -> tuple[str, ...]:
    """Return the labels that a cell names.

    >>> split_labels("sports|world", multi=True), split_labels("-", multi=True), split_labels("a|b", multi=False)
    (('sports', 'world'), (), ('a|b',))
    """
    if not multi:
        return (text,)
    return tuple(part.strip() for part in text.split(SEPARATOR) if part.strip() not in ("", NO_LABEL))


@dataclass(frozen=True)
class Label:
    """One class. ``words`` is what the model reads for it; the default is the name."""

    name: str
    words: str = ""
    synonyms: tuple[str, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "synonyms", _to_tuple(self.synonyms))
        for value in (self.name, self.words, self.description, *self.synonyms):
            if not isinstance(value, str):
                raise LabelError(f"a label holds {value!r}, not text", hint='labels are text: "0" and "1", not 0 and 1')
        object.__setattr__(self, "words", " ".join((self.words or self.name).split()))
        object.__setattr__(self, "synonyms", tuple(" ".join(s.split()) for s in self.synonyms))
        if not all(map(visible, (self.name, self.words, *self.synonyms))):
            raise LabelError(
                f"the label {self.name!r} has an empty name, words or synonym",
                hint="give each at least one character that can be seen",
            )
        everything = "".join((self.name, self.words, self.description, *self.synonyms))
        if "\0" in everything:
            raise LabelError(f"the label {self.name!r} holds a NUL byte", hint="remove it")
        if has_half_character(everything):
            raise LabelError(
                f"the label {self.name!r} holds a broken character (a lone surrogate)", hint="write labels as UTF-8"
            )
        if self.name != self.name.strip() or len(self.name.splitlines()) > 1:
            raise LabelError(
                f"the label {self.name!r} has a line break in it, or white space around it",
                hint="leave that out: names are columns of files, and compared with gold labels",
            )


@dataclass(frozen=True)
class Labels:
    """Two or more distinct labels in the order given.

    ``counted`` labels only number the options of a text; the words of the options differ from text to text.

    >>> labels = Labels.of(["terrible", "great"])
    >>> labels.names, labels.with_synonyms({"great": ["good"]})["great"].synonyms
    (('terrible', 'great'), ('good',))
    """

    items: tuple[Label, ...]
    counted: bool = False

    def __post_init__(self) -> None:
        listed = isinstance(self.items, Iterable) and not isinstance(self.items, str | Mapping)
        # A list would be no key of a cache.
        object.__setattr__(self, "items", tuple(self.items) if listed else (self.items,))
        if wrong := [item for item in self.items if not isinstance(item, Label)]:
            raise LabelError(
                f"Labels holds {wrong[0]!r:.60}, not a Label",
                hint='names and mappings are for Labels.of: Labels.of(["terrible", "great"])',
            )
        if len(self.items) < 2:
            raise LabelError(
                f"{counted(len(self.items), 'label')} given; at least two are needed",
                hint="name them all, with commas between them: --labels terrible,great",
            )
        for kind, values in (
            ("name", list(map(visible, self.names))),
            ("words", [_plain(label.words) for label in self.items]),
        ):
            twice = sorted(value for value, count in Counter(values).items() if count > 1)
            if twice:
                raise LabelError(
                    f"two labels have the same {kind}: {', '.join(map(repr, twice))}",
                    hint="give every label a different name and different words; what cannot be seen does not count",
                )

    @classmethod
    def of(cls, value: object) -> Labels:
        """Return labels from a list of names, a mapping name → synonyms, or the path of a labels.toml.

        A number N makes N counted labels, "1", "2" and so on, for options that differ from text to text.
        """
        if isinstance(value, Labels):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            if value > _MOST_COUNTED:
                raise LabelError(f"{value:,} labels", hint=f"a text has at most {_MOST_COUNTED:,} options")
            return cls(tuple(Label(str(number)) for number in range(1, value + 1)), counted=True)
        if isinstance(value, Path) or (isinstance(value, str) and value.endswith(".toml")):
            return read_labels(Path(value))
        if isinstance(value, str):
            raise LabelError(
                f"labels is the text {value!r}",
                hint='give a list, e.g. ["terrible", "great"], or a labels.toml',
            )
        if isinstance(value, Mapping):
            return cls(tuple(Label(name, synonyms=synonyms) for name, synonyms in value.items()))
        if hasattr(value, "tolist"):  # an array or a column
            value = value.tolist()
        if isinstance(value, Sequence):
            return cls(tuple(item if isinstance(item, Label) else Label(item) for item in value))
        raise LabelError(f"labels is {type(value).__name__}", hint='give a list, e.g. ["terrible", "great"]')

    def __hash__(self) -> int:
        # Labels are the keys of caches that are asked for every text, and there may be hundreds of them.
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.items, self.counted))

    def __getstate__(self) -> dict[str, Any]:
        # Hashes of texts differ from process to process.
        return {"items": self.items, "counted": self.counted}

    def __iter__(self) -> Iterator[Label]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, name: str) -> Label:
        for label in self.items:
            if label.name == name:
                return label
        raise LabelError(f"there is no label {name!r}", hint=f"there are: {', '.join(self.names)}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names, in order."""
        return tuple(label.name for label in self.items)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words shown to the model, in order."""
        return tuple(label.words for label in self.items)

    def among(self, options: Sequence[str], where: str = "a text") -> Labels:
        """Return the labels that one text can get: a subset of these, or counted labels with the options' words.

        >>> Labels.of(3).among(["a cat", "a dog"]).words
        ('a cat', 'a dog')
        """
        if not self.counted:
            unknown = [name for name in options if name not in self.names]
            if unknown:
                raise LabelError(
                    f"{where} has the option {unknown[0]!r}, which is no label",
                    hint=f"the labels are: {', '.join(self.names)}",
                )
        if self.counted and len(options) > len(self):
            raise LabelError(
                f"{where} has {counted(len(options), 'option')}, the labels count {len(self)}",
                hint="raise their number: `labels=…`",
            )
        if len(options) < 2:
            raise LabelError(f"{where} has {counted(len(options), 'option')}", hint="give it at least two")
        words = [_plain(each) if self.counted else each for each in options]
        if twice := [option for option, word in zip(options, words, strict=True) if words.count(word) > 1]:
            raise LabelError(f"{where} has the option {twice[0]!r} twice", hint="give each option once")
        if not self.counted:
            # In the order of the labels, not of the options.
            return Labels(tuple(label for label in self.items if label.name in options))
        items = (Label(str(number), words) for number, words in enumerate(options, start=1))
        return Labels(tuple(items), counted=True)

    def with_synonyms(self, synonyms: Mapping[str, str | Sequence[str]]) -> Labels:
        """Return the same labels with other synonyms for some of them."""
        for name in synonyms:
            self[name]
        items = (replace(x, synonyms=_to_tuple(synonyms.get(x.name, x.synonyms))) for x in self.items)
        return replace(self, items=tuple(items))

    def to_toml(self) -> str:
        """Return the text of a labels.toml."""
        if self.counted:
            return f"count = {len(self)}\n"
        parts = []
        for label in self.items:
            parts.append("[[label]]")
            parts.append(f"name = {_quoted(label.name)}")
            parts.append(f"words = {_quoted(label.words)}")
            parts.append(f"synonyms = [{', '.join(_quoted(word) for word in label.synonyms)}]")
            parts.append(f"description = {_quoted(label.description)}\n")
        return "\n".join(parts)


def read_labels(path: Path) -> Labels:
    """Read labels from a labels.toml."""
    table = read_toml(
        path,
        LabelError,
        missing=nearest_file(path, ".toml") + "draft one: zicl labels suggest terrible,great -o labels.toml",
        form="see the output of zicl labels suggest for its form",
    )
    if set(table) == {"count"} and isinstance(table["count"], int):
        return Labels.of(table["count"])
    entries = table.get("label")
    if set(table) != {"label"} or not isinstance(entries, list):
        raise LabelError(f"{path}: expected [[label]] entries and nothing else, found {', '.join(table) or 'nothing'}")
    return Labels(tuple(make_label(entry, f"{path}, label {n}") for n, entry in enumerate(entries, start=1)))


def make_label(entry: Mapping[str, Any], where: str) -> Label:
    """Return a label from a TOML table; ``where`` names it in an error."""
    if not isinstance(entry, Mapping):
        raise LabelError(f"{where}: expected a [[label]] entry, found {entry!r:.60}", hint='[[label]]\nname = "great"')
    unknown = set(entry) - {"name", "words", "synonyms", "description"}
    if unknown or "name" not in entry:
        what = f"unknown keys {', '.join(sorted(unknown))}" if unknown else "no name"
        raise LabelError(f"{where}: {what}", hint="keys are name, words, synonyms, description")
    return Label(**entry)


def _plain(words: str) -> str:
    r"""Return words without what a reader does not see: case, white space, how accents are encoded, what is not drawn.

    >>> _plain("Caf\u00e9  noir") == _plain("cafe\u0301 Noir")
    True
    """
    return unicodedata.normalize("NFC", " ".join(visible(words).split()).casefold())


def _to_tuple(value: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable):
        raise LabelError(f"synonyms are {value!r}", hint="expected a word or a list of words, which may be empty")
    return tuple(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
