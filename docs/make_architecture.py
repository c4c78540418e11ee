"""Write the tree of docs/explanation/architecture.md from docstrings: ``python docs/make_architecture.py``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parent / "explanation" / "architecture.md"
SOURCE = Path(__file__).parent.parent / "src" / "zicl"
# In the order in which data flows.
FOLDERS = [
    "", "_util", "inputs", "corpus", "retrieve", "retrieve/strategies", "prompt", "lm", "lm/remote",
    "lm/remote/backends", "score", "lab", "lab/evaluate", "lab/report", "lab/report/html", "lab/heads", "lab/study",
    "apps", "apps/serve", "apps/cluster", "apps/distill", "apps/export", "apps/map",
    "apps/suggest", "apps/check", "cli",
]  # fmt: skip
_TREE = re.compile(r"(<!-- tree: begin -->\n).*?(<!-- tree: end -->)", re.DOTALL)


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0].replace("``", "`")


def tree() -> str:
    """Return one list per folder: what it does, then what each file does."""
    parts = []
    for folder in FOLDERS:
        place = SOURCE / folder
        name, about = (f"`{folder}/`", first_line(place / "__init__.py")) if folder else ("`zicl`", "The top level.")
        lines = [f"**{name}** {about}\n"]
        for path in sorted(place.glob("*.py")):
            if path.name not in ("__init__.py", "__main__.py"):
                lines.append(f"- `{path.stem}` {first_line(path)}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def page(text: str) -> str:
    """Return the page with the tree as it is now."""
    return _TREE.sub(lambda match: f"{match[1]}\n{tree()}\n{match[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
