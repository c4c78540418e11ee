"""The methods that studies compare: a way to find sentences and the words their labels are shown as.

The same configuration has the same name in every study, so that one study can use the rows of another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zicl.config import Labelling, Retrieval
from zicl.lab.evaluate.methods import EXPERIMENT_METHODS, ExperimentMethod
from zicl.lab.report.plotting import Style, styles

RETRIEVALS = {
    "nearest": "Nearest",
    "diverse": "Diverse nearest",
    "physical": "Physical neighbour",
    "domain-random": "Domain random",
}
WORDS = {"original": "original labels", "random-words": "random words", "synonyms": "synonyms"}
# Two of these have names in the table of methods already.
_TABLE = {("nearest", "original"): "naive", ("physical", "synonyms"): "z-icl"}
# Which method of the table each has its colour from.
_LIKE = {"nearest": "naive", "diverse": "diverse", "physical": "z-icl", "domain-random": "domain-random"}
# Hatch and marker of each with each kind of words, in the order of WORDS. Without colours too, circles are nearest
# sentences, upright lines diverse and slanted ones physical neighbours; two of them look as in the table of methods.
_HATCHES = {
    "nearest": ("..", "oo", "OO"),
    "diverse": ("--", "||", "++"),
    "physical": ("\\\\", "xx", "//"),
    "domain-random": ("", "*", "**"),
}
_MARKERS = {
    "nearest": ("^", "v", "<"),
    "diverse": ("s", "D", "P"),
    "physical": ("h", "X", "o"),
    "domain-random": (">", "*", "d"),
}


def method_name(retrieval: str, words: str) -> str:
    """The name of a way to find sentences with labels shown as ``words``.

    >>> method_name("physical", "synonyms"), method_name("diverse", "synonyms")
    ('z-icl', 'diverse-synonyms')
    """
    return _TABLE.get((retrieval, words), f"{retrieval}-{words}")


def grid_method(retrieval: str, words: str) -> ExperimentMethod:
    """The method itself."""
    name = method_name(retrieval, words)
    if name in EXPERIMENT_METHODS:
        return EXPERIMENT_METHODS[name]
    return ExperimentMethod(
        title=method_title(retrieval, words),
        retrieval=Retrieval(method=retrieval),
        labelling=Labelling.model_validate({"words": words}),
    )


def method_title(retrieval: str, words: str) -> str:
    """What it is called where all are told apart by these two.

    >>> method_title("physical", "synonyms")
    'Physical neighbour, synonyms'
    """
    return f"{RETRIEVALS[retrieval]}, {WORDS[words]}"


def method_style(retrieval: str, words: str) -> Style:
    """The colour of the way to find sentences; hatch and marker of it and the words together."""
    number = list(WORDS).index(words)
    return replace(style_of(_LIKE[retrieval]), hatch=_HATCHES[retrieval][number], marker=_MARKERS[retrieval][number])


def style_of(method: str) -> Style:
    """How a method of the table looks, here as everywhere."""
    return styles([method])[method]


def changed(method: ExperimentMethod, title: str, **changes: Any) -> ExperimentMethod:
    """A method with some of its settings changed; those of a group are given as a dictionary."""
    groups = {name: value for name, value in changes.items() if isinstance(value, dict)}
    update: dict[str, Any] = {**changes, "title": f"{method.title}, {title}"}
    for name, values in groups.items():
        # A copy and not a new one: what was set is told from what is a default, such as the experiment's k.
        update[name] = getattr(method, name).model_copy(update=values)
    made = method.model_copy(update=update)
    # A copy is not checked: the same settings, made anew, are.
    ExperimentMethod.model_validate(made.model_dump())
    return made


def suffix(number: float) -> str:
    """A number as a part of a method's name.

    >>> suffix(0.03), suffix(4096)
    ('0_03', '4096')
    """
    return f"{number:g}".replace(".", "_")
