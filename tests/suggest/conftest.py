"""The command line's fixtures, here too."""

from tests.cli.conftest import corpus, run

__all__ = ["corpus", "run"]
