"""The command line. Heavy modules are imported inside the commands, so that help answers at once."""

from __future__ import annotations

import sys

from zicl.exceptions import ZICLError


def main() -> None:
    """Run ``zicl``: exit code 0 when done, 1 when something failed, 2 when the call was wrong."""
    from zicl.cli.app import app

    try:
        app(prog_name="zicl")
    except ZICLError as error:
        sys.stderr.write(f"zicl: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("\nzicl: stopped; run the same command again to go on where it was\n")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output (head, less) went away; there is nobody left to tell.
        sys.stderr.close()
        sys.exit(0)
