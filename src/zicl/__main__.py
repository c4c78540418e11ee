"""``python -m zicl`` is ``zicl``."""

from zicl.cli import main

if __name__ == "__main__":
    main()
