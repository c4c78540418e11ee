"""Write the tables of the stored rows into docs/results/default-method.md: ``python docs/make_beyond.py``."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

PAGE = Path(__file__).parent / "results" / "default-method.md"
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
_MARKED = re.compile(r"(<!-- (?P<name>[a-z-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with its tables made anew; the text around them is kept."""
    return filled(text, "beyond.py")


def filled(text: str, benchmark: str) -> str:
    """Return a page with the tables of a benchmark in their places."""
    made = runpy.run_path(str(BENCHMARKS / benchmark))["tables"]()
    return _MARKED.sub(lambda match: f"{match[1]}\n{made[match['name']]}\n\n{match[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
