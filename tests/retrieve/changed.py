"""Corpora to change, and what to compare of them."""

import json
from pathlib import Path

from tests.conftest import DOCUMENTS, BagEncoder

DOMAINS = {"film": DOCUMENTS[:4], "food": [*DOCUMENTS[4:7], DOCUMENTS[1]], "train": [DOCUMENTS[0], *DOCUMENTS[7:]]}


class Counting(BagEncoder):
    """Counts the sentences it embeds."""

    def __init__(self):
        self.texts = []

    def encode(self, texts):
        self.texts += texts
        return super().encode(texts)


def write(folder, domains):
    """A file a list of documents; a domain of plain documents is one file."""
    paths = {}
    for name, content in domains.items():
        files = [content] if isinstance(content[0], str) else content
        paths[name] = [folder / f"{name}{number}.jsonl" for number in range(len(files))]
        for path, texts in zip(paths[name], files, strict=True):
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return paths


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the note of which build it was, which depends on the times of files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "build.key"
    }


def killed_at(stop_after):
    """A report that ends the work at its so manyth call."""
    calls = 0

    def killed(*_):
        nonlocal calls
        calls += 1
        if calls == stop_after:
            raise KeyboardInterrupt

    return killed
