"""A hook of mkdocs: what pages link to in the repository is put into the site, so that no link leads out of it."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
# [text](../benchmarks/x.json) and ![text](…), from a page of any depth.
_OUTSIDE = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)")
_PLACE = "files"


def _target(page: str, link: str) -> Path | None:
    """Return the file of the repository that a link of a page leads to, if that is outside of docs."""
    path = (ROOT / "docs" / PurePosixPath(page).parent / link).resolve()
    return path if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "docs") else None


def on_files(files: Files, config: Any) -> Files:
    """Add every linked file; of a linked folder, a list of its files."""
    for page in list(files.documentation_pages()):
        for _, link in _OUTSIDE.findall(page.content_string):
            path = _target(page.src_uri, link)
            if path is None or not path.exists():
                continue
            name = f"{_PLACE}/{path.relative_to(ROOT).as_posix()}"
            if path.is_dir():
                listed = "\n".join(sorted(p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()))
                added = File.generated(config, f"{name}/files.txt", content=listed)
            else:
                added = File.generated(config, name, content=path.read_bytes())
            if added.src_uri not in files.src_uris:
                files.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Point links to the copies."""

    def moved(match: re.Match[str]) -> str:
        path = _target(page.file.src_uri, match[2])
        if path is None:
            return match[0]
        up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)
        name = f"{_PLACE}/{path.relative_to(ROOT).as_posix()}"
        return f"{match[1]}{up}{name}{'/files.txt' if path.is_dir() else ''}"

    return _OUTSIDE.sub(moved, markdown)
