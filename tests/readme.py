"""The README as data: its code blocks, and a folder as these assume it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import DOCUMENTS
from zicl._util.catalog import get_asset

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def make_place(folder: Path) -> Path:
    """Fill a folder as the README assumes it: reviews/*.txt and tickets.csv; and a cache with the fetched models."""
    (folder / "reviews").mkdir()
    # Enough different texts to learn from: each document, and its parts.
    texts = [*DOCUMENTS, *(sentence for text in DOCUMENTS for sentence in text.split(". "))]
    for number, text in enumerate(texts):
        (folder / "reviews" / f"{number}.txt").write_text(text)
    # Written for this project: enough different texts to learn from.
    rows = [f"{n},The soup of day {n} was cold and thin." for n in range(12)]
    rows += [f"{n},She sang well on evening {n} and we were happy." for n in range(12, 24)]
    (folder / "tickets.csv").write_text("\n".join(["id,text", *rows]) + "\n")
    (folder / "home").mkdir()
    (folder / "home" / "assets").symlink_to(get_asset("wordnet").folder.parent)
    return folder


def run_in(place: Path, command: list[str], python: str = sys.executable) -> str:
    """Run a command in the folder, with the programs of an interpreter's environment first; return what it prints."""
    programs = str(Path(python).parent)
    # PYTHONPATH would show the sources of this checkout to another environment.
    kept = {name: value for name, value in os.environ.items() if python == sys.executable or name != "PYTHONPATH"}
    environment = {**kept, "ZICL_HOME": str(place / "home"), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
