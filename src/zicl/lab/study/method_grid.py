"""The methods that studies compare: a retrieval strategy combined with the words that labels are shown as.

The same configuration has the same name in every study, so that one study can reuse the rows of another.
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
# Combinations that already have a name in the table of methods.
_KNOWN = {("nearest", "original"): "naive", ("physical", "synonyms"): "z-icl"}
# The method that gives each strategy its colour.
_COLOUR_OF = {"nearest": "naive", "diverse": "diverse", "physical": "z-icl", "domain-random": "domain-random"}
# Hatch and marker of each strategy, one per kind of words in the order of WORDS, so that all differ without colours:
# dots and circles are nearest, horizontal and vertical lines diverse, slanted lines physical.
# Those in _KNOWN look as in reports.
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
    """Return the name of a retrieval strategy with labels shown as ``words``.

    >>> method_name("physical", "synonyms"), method_name("diverse", "synonyms")
    ('z-icl', 'diverse-synonyms')
    """
    return _KNOWN.get((retrieval, words), f"{retrieval}-{words}")


def grid_method(retrieval: str, words: str) -> ExperimentMethod:
    """Return the method of a retrieval strategy with labels shown as ``words``."""
    name = method_name(retrieval, words)
    if name in EXPERIMENT_METHODS:
        return EXPERIMENT_METHODS[name]
    return ExperimentMethod(
        title=method_title(retrieval, words),
        retrieval=Retrieval(method=retrieval),
        labelling=Labelling.model_validate({"words": words}),
    )


def method_title(retrieval: str, words: str) -> str:
    """Return the title of a method in figures of the grid.

    >>> method_title("physical", "synonyms")
    'Physical neighbour, synonyms'
    """
    return f"{RETRIEVALS[retrieval]}, {WORDS[words]}"


def method_style(retrieval: str, words: str) -> Style:
    """Return a style with the colour of the strategy, and a hatch and marker of the combination."""
    number = list(WORDS).index(words)
    base = style_of(_COLOUR_OF[retrieval])
    return replace(base, hatch=_HATCHES[retrieval][number], marker=_MARKERS[retrieval][number])


def style_of(method: str) -> Style:
    """Return the style of a method in the table of methods, the same as in reports."""
    return styles([method])[method]


def variant(method: ExperimentMethod, title: str, **changes: Any) -> ExperimentMethod:
    """Return a method with some settings changed; those of a group are given as a dictionary."""
    update: dict[str, Any] = {**changes, "title": f"{method.title}, {title}"}
    for name, value in changes.items():
        if isinstance(value, dict):
            # A copy keeps apart what was set and what is a default, such as the experiment's k.
            update[name] = getattr(method, name).model_copy(update=value)
    changed = method.model_copy(update=update)
    # Copies are not validated, so validate the same settings once more.
    ExperimentMethod.model_validate(changed.model_dump())
    return changed


def suffix(number: float) -> str:
    """Format a number as part of a method's name.

    >>> suffix(0.03), suffix(4096)
    ('0_03', '4096')
    """
    return f"{number:g}".replace(".", "_")
