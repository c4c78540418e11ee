"""``python -m zicl`` is ``zicl``."""

from zicl.cli import main

main()
