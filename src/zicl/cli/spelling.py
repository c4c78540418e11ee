"""Spell settings as options: errors of the library name them in backticks, as a Python caller writes them."""

from __future__ import annotations

import ast
import re
import shlex

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
    # What is called in Python is a file here.
    "fit": "--file, or --fit FILE",
}
_GROUPS = ("retrieval", "labelling", "prompt", "scoring", "calibration", "pile", "decision")


def as_options(text: str) -> str:
    """Return a message with the settings in it spelled as options.

    >>> as_options("use `method='no-demos'`, or leave out `retrieval.share`")
    'use --method no-demos, or leave out --set retrieval.share'
    >>> as_options("`scoring.experts=('encoder', 'direct')`")
    '--experts encoder,direct'
    """
    return _SETTING.sub(lambda found: _spell(found["name"], found["value"]) or found[0], text)


def _spell(name: str, value: str | None) -> str | None:
    """Return an option with its value; None for what is no setting."""
    plain = None if value is None else _plain(value)
    if name in _OPTIONS:
        # A switch has no value.
        return _OPTIONS[name] if plain in (None, "True") else f"{_OPTIONS[name]} {plain}"
    if name.partition(".")[0] in _GROUPS and "." in name:
        return f"--set {name}" if plain is None else f"--set {name}={plain}"
    return None


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
