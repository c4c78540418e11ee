"""The command line. Heavy modules are imported inside the commands, so that help answers at once."""

from __future__ import annotations

import sys

from zicl.exceptions import ZICLError

# What typer ends with after Ctrl-C.
_INTERRUPTED = 130


def main() -> None:
    """Run ``zicl``: exit code 0 when done, 1 when something failed, 2 when the call was wrong."""
    from zicl.cli.app import app

    try:
        app(prog_name="zicl")
    except ZICLError as error:
        sys.stderr.write(f"zicl: {error}\n")
        sys.exit(error.exit_code)
    except SystemExit as ending:
        if ending.code != _INTERRUPTED:
            raise
        sys.stderr.write("\nzicl: stopped; run the same command again: builds and -o files go on where they were\n")
        sys.exit(1)
