"""What is written in one option: labels, a template, a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.prompt.labels import Labels


def parse_labels(text: str, synonyms: list[str] | None = None) -> Labels:
    """Labels from 'terrible,great' or a labels.toml, with --synonyms applied."""
    from zicl.prompt.labels import Labels

    labels = Labels.of(text if text.endswith(".toml") else [part.strip() for part in text.split(",")])
    given: dict[str, list[str]] = {}
    for entry in synonyms or []:
        name, equals, word = entry.partition("=")
        if not equals or not word.strip():
            raise UsageError(f"--synonyms {entry!r}: expected LABEL=SYNONYM", hint="for example --synonyms great=good")
        given.setdefault(name.strip(), []).append(word)
    return labels.with_synonyms(given)


def parse_names(text: str | None) -> tuple[str, ...] | None:
    """Names separated by commas, if there are any."""
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def parse_template(text: str) -> str | tuple[str, str]:
    r"""A template's name, or its two lines; a line break inside one is written as \n."""
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


def parse_table(value: str) -> Any:
    """A setting that is a table, written as JSON."""
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise UsageError(f"--set {value!r}: not JSON ({error.msg})", hint='write a table as {"great": 0.5}') from error
