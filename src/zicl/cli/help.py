"""Help in groups, and errors that name the successor of an option that changed its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

from zicl.exceptions import UsageError

# Groups of options, in the order of the help.
INPUT, CLASSIFIER, METHOD, MODEL, OTHER = "Input and output", "Classifier", "Method", "Model and machine", "Options"
_ORDER = ("Arguments", INPUT, CLASSIFIER, METHOD, MODEL, OTHER)

_CLASSIFYING = ("classify", "explain", "prompt", "suggest", "distill", "serve")
_RUNNING = (*_CLASSIFYING, "evaluate", "verify", "study")
_SPREADING = ("classify", "evaluate", "corpus")
# Options by their old names: the commands that had them, and what to write instead.
_RENAMED: dict[str, tuple[tuple[str, ...], str]] = {
    "--retrieval": (_CLASSIFYING, "--set retrieval.method={}"),
    "--share": (_CLASSIFYING, "--set retrieval.share={}"),
    "--device": (_RUNNING, "--set scoring.device={}"),
    "--dtype": (_RUNNING, "--set scoring.dtype={}"),
    "--tokenizer": (_RUNNING, "--server tokenizer={}"),
    "--context": (_RUNNING, "--server context={}"),
    "--requests": (_RUNNING, "--server requests={}"),
    "--price-in": (_RUNNING, "--server price_in={}"),
    "--price-out": (_RUNNING, "--server price_out={}"),
    "--max-cost": (_RUNNING, "--server max_cost={}"),
    "--workers": (_SPREADING, "--on ray,workers={}"),
    "--searchers": (_SPREADING, "--on ray,searchers={}"),
}


class GroupedCommand(TyperCommand):
    """A command whose help shows its options under the groups they declare (``rich_help_panel``)."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                group = "Arguments" if param.param_type_name == "argument" else getattr(param, "rich_help_panel", None)
                groups.setdefault(group or OTHER, []).append(record)
        for title in sorted(groups, key=lambda title: _ORDER.index(title) if title in _ORDER else len(_ORDER)):
            with formatter.section(title):
                formatter.write_dl(groups[title])


def check_renamed(arguments: Sequence[str]) -> None:
    """Raise an error for an option that changed its name, which says the new one.

    >>> check_renamed(["classify", "a text", "--share", "8"])
    Traceback (most recent call last):
    zicl.exceptions.UsageError: --share is now --set retrieval.share=8
      → zicl classify --help lists all options
    """
    command = next((argument for argument in arguments if not argument.startswith("-")), "")
    for place, argument in enumerate(arguments):
        if argument == "--":
            return
        name, equals, value = argument.partition("=")
        commands, successor = _RENAMED.get(name, ((), ""))
        if command in commands:
            following = arguments[place + 1] if place + 1 < len(arguments) else "VALUE"
            raise UsageError(
                f"{name} is now {successor.format(value if equals else following)}",
                hint=f"zicl {command} --help lists all options",
            )
