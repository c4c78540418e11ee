"""The command line: ``zicl``. Heavy modules are imported inside the commands, so that help answers at once.

app (the tree of commands) · options, model_options, cluster_options, experiment_options (what commands share) ·
preflight (what is checked first) · console, help · then one file per group of commands.

To add a command, write a function with typer annotations in the file of its group and one line in app.py; an option
that several commands share goes to options.py. Then run ``python docs/make_cli.py``.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Any

from zicl._util.failures import explain
from zicl.exceptions import InputWarning, ZICLError

# The exit code of typer, and of a shell, after Ctrl-C.
_INTERRUPTED = 130


def main() -> None:
    """Run ``zicl``: exit code 0 when done, 1 when something failed, 2 when the call was wrong, 130 after Ctrl-C."""
    _open_streams()
    try:
        _run()
    except KeyboardInterrupt:
        # Before typer is loaded, or after it has ended.
        _say_stopped()
        sys.exit(_INTERRUPTED)


def _open_streams() -> None:
    """Open standard streams that are closed, and print what their encoding has no character for as escapes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # In this order the system gives them the numbers of the streams.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run() -> None:
    from typer.main import get_command

    from zicl._util.printable import printable
    from zicl.cli.app import app
    from zicl.cli.help import check_renamed
    from zicl.cli.spelling import as_options, options_of

    # Before anything can fail: an error for want of memory leaves none to make it again.
    command = get_command(app)
    try:
        check_renamed(sys.argv[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("always", InputWarning)
            warnings.showwarning = _show_warning
            command(prog_name="zicl")
    except Exception as error:
        shown = error if isinstance(error, ZICLError) else explain(error)
        if shown is None:
            raise
        known = options_of(command, sys.argv[1:])
        sys.stderr.write(f"zicl: {printable(as_options(str(shown), known))}\n")
        sys.exit(shown.exit_code)
    except SystemExit as ending:
        if ending.code == _INTERRUPTED:
            _say_stopped()
        raise


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Print what is said of a file as a status line, and other warnings as Python does."""
    from zicl.cli.console import print_status

    if issubclass(category, InputWarning):
        print_status(str(message))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def _say_stopped() -> None:
    sys.stderr.write("\nzicl: stopped; run the same command again to resume builds and -o files\n")
