"""The command line's fixtures, here too."""

from tests.cli.conftest import corpus, options, run

__all__ = ["corpus", "options", "run"]
