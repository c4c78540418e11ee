"""Parse the values of options: labels, shares, thresholds, templates, and any setting by its name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zicl._util.files import nearest_file
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.prompt.labels import Labels


def parse_labels(text: str, synonyms: list[str] | None = None) -> Labels:
    """Return labels from 'terrible,great' or a labels.toml, with --synonyms applied."""
    from zicl.prompt.labels import Labels

    if "," not in text and text.strip() and os.path.isdir(text):
        raise UsageError(f"{text} is a folder, and labels were expected", hint="--labels terrible,great")
    if not text.endswith(".toml") and _seems_a_file(text):
        raise UsageError(
            f"{text} is no labels.toml, and one label alone is not enough",
            hint=f"{nearest_file(Path(text), '.toml')}a file of labels ends in .toml; labels have commas between them: "
            "terrible,great",
        )
    labels = Labels.of(text if text.endswith(".toml") else [part.strip() for part in text.split(",")])
    given: dict[str, list[str]] = {}
    for entry in synonyms or []:
        name, equals, word = entry.partition("=")
        if not equals or not word.strip():
            raise UsageError(f"--synonyms {entry!r}: expected LABEL=SYNONYM", hint="for example --synonyms great=good")
        given.setdefault(name.strip(), []).append(word)
    return labels.with_synonyms(given)


def _seems_a_file(text: str) -> bool:
    """Return whether labels are one word that ends like the name of a file, or has folders before it.

    >>> _seems_a_file("labels.tml"), _seems_a_file("data/labels"), _seems_a_file("a/b,c.d"), _seems_a_file("v1.5")
    (True, True, False, False)
    """
    return "," not in text and bool(re.search(r"[/\\]|\.[a-z]{2,5}$", text.strip(), re.IGNORECASE))


def parse_names(text: str | None) -> tuple[str, ...] | None:
    """Return names separated by commas, if there are any."""
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def parse_shares(text: str) -> dict[str, float]:
    """Return the labels' shares from great=0.9,terrible=0.1.

    >>> parse_shares("great=0.9,terrible=0.1")
    {'great': 0.9, 'terrible': 0.1}
    """
    return _numbers_by_label("--shares", text, "great=0.9,terrible=0.1")


def parse_threshold(text: str) -> float | dict[str, float]:
    """Return one threshold, or one per label.

    >>> parse_threshold("0.7"), parse_threshold("sports=0.7")
    (0.7, {'sports': 0.7})
    """
    try:
        return float(text)
    except ValueError:
        return _numbers_by_label("--threshold", text, "0.7, or sports=0.7,world=0.4")


def _numbers_by_label(option: str, text: str, example: str) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for entry in text.split(","):
        name, equals, value = (part.strip() for part in entry.rpartition("="))
        if not equals or name in numbers:
            raise UsageError(f"{option} {text!r}: expected LABEL=NUMBER, each label once", hint=example)
        try:
            numbers[name] = float(value)
        except ValueError as error:
            raise UsageError(f"{option} {text!r}: {value!r} is no number", hint=example) from error
    return numbers


def parse_template(text: str) -> str | tuple[str, str]:
    r"""Return a template's name, or its two lines; a line break inside one is written as \n."""
    text = text.replace("\\n", "\n")
    if "{" not in text:
        return text
    first, bar, second = text.partition("|")
    if not bar:
        raise UsageError(
            f"--template {text!r}: expected two lines separated by |",
            hint="'Review: {input}|Sentiment: {label}'",
        )
    return first, second


def parse_settings(entries: list[str] | None, known: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the settings of ``--set``, by group; ``known`` are the groups that a command takes.

    >>> parse_settings(["retrieval.share=8", "scoring.device=cpu"])
    {'retrieval': {'share': '8'}, 'scoring': {'device': 'cpu'}}
    """
    from zicl.config import GROUPS

    names, groups = known or list(GROUPS), dict[str, dict[str, Any]]()
    for entry in entries or []:
        name, equals, value = entry.partition("=")
        group, _, key = name.partition(".")
        if not equals or group not in names or not key:
            raise UsageError(f"--set {entry!r}: expected GROUP.NAME=VALUE", hint=f"groups are: {', '.join(names)}")
        groups.setdefault(group, {})[key] = _parse_table(value) if value.startswith("{") else value
    return groups


def _parse_table(value: str) -> Any:
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise UsageError(f"--set {value!r}: not JSON ({error.msg})", hint='write a table as {"great": 0.5}') from error


def parse_duration(text: str) -> float:
    """Return seconds.

    >>> parse_duration("5m"), parse_duration("90s"), parse_duration("1.5h")
    (300.0, 90.0, 5400.0)
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        seconds = float(text[:-1]) * units[text[-1:]]
    except (ValueError, KeyError) as error:
        raise UsageError(f"--budget {text!r}: expected a number and s, m or h", hint="for example 5m") from error
    if not seconds > 0:
        raise UsageError(f"--budget {text!r}: expected more than nothing", hint="for example 5m")
    return seconds
