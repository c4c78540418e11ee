"""The command line's fixtures, here too."""

from tests.cli.conftest import corpus, options

__all__ = ["corpus", "options"]
