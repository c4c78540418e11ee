"""Write the tables of the stored rows into docs/results/decision.md: ``python docs/make_labels.py``."""

from __future__ import annotations

from pathlib import Path

from make_beyond import filled

PAGE = Path(__file__).parent / "results" / "decision.md"


def page(text: str) -> str:
    """Return the page with its tables made anew; the text around them is kept."""
    return filled(text, "decision.py")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
