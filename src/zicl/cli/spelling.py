"""Spell settings as options: errors of the library name them in backticks, as a Python caller writes them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any

_SETTING = re.compile(r"`(?P<name>[a-z_.]+)(?:=(?P<value>[^`]*))?`")
# Parameters and settings that have options of their own.
_OPTIONS = {
    "method": "--method",
    "lm": "--lm",
    "encoder": "--encoder",
    "index": "--corpus",
    "labels": "--labels",
    "none": "--none",
    "multi": "--multi",
    "threshold": "--threshold",
    "calibrate": "--calibrate",
    "budget": "--budget",
    "options": "--options-column",
    "overwrite": "--overwrite",
    "calibration.method": "--calibrate",
    "pile.shares": "--shares",
    "pile.lm_rows": "--lm-rows",
    "prompt.template": "--template",
    "retrieval.k": "--k",
    "scoring.experts": "--experts",
    "scoring.inference": "--inference",
    # What is called in Python is a file here; a command has the one or the other option, or both.
    "fit": "--file, or --fit FILE",
}
_GROUPS = ("retrieval", "labelling", "prompt", "scoring", "calibration", "pile", "decision")


def options_of(command: Any, arguments: Sequence[str]) -> frozenset[str]:
    """Return the options of the command that the arguments name, of a tree of commands."""
    for argument in arguments:
        command = getattr(command, "commands", {}).get(argument, command)
    return frozenset(name for parameter in command.params for name in parameter.opts)


def as_options(text: str, known: Collection[str] | None = None) -> str:
    """Return a message with the settings in it spelled as options, those that the command at hand has if ``known``.

    >>> as_options("use `method='no-demos'`, or leave out `retrieval.share`")
    'use --method no-demos, or leave out --set retrieval.share'
    >>> as_options("`scoring.experts=('encoder', 'direct')`")
    '--experts encoder,direct'
    >>> as_options("`pile.lm_rows=300`", {"--set"}), as_options("`method='encoder'`", {"--offline"})
    ('--set pile.lm_rows=300', 'method=encoder')
    """
    return _SETTING.sub(lambda found: _spell(found["name"], found["value"], known) or found[0], text)


def _spell(name: str, value: str | None, known: Collection[str] | None) -> str | None:
    """Return an option with its value, or the setting's name where there is none; None for what is no setting."""
    plain = None if value is None else _plain(value)
    is_setting = name.partition(".")[0] in _GROUPS and "." in name
    options = _OPTIONS[name].split(", or ") if name in _OPTIONS else []
    if there := [option for option in options if known is None or option.split()[0] in known]:
        # A switch has no value.
        return ", or ".join(there) if plain in (None, "True") else f"{there[0]} {plain}"
    if not (options or is_setting):
        return None
    spelled = name if plain is None else f"{name}={plain}"
    return f"--set {spelled}" if is_setting and (known is None or "--set" in known) else spelled


def _plain(value: str) -> str:
    """Return a Python value as the command line takes it.

    >>> _plain("('encoder', 'direct')"), _plain("…"), _plain("'a film'")
    ('encoder,direct', '…', "'a film'")
    """
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    return shlex.quote(",".join(map(str, read)) if isinstance(read, tuple) else str(read))
