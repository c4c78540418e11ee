"""Write the tables of the stored rows into docs/results/paper-tables.md: ``python docs/make_results.py``."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parent / "results" / "paper-tables.md"
ROWS = Path(__file__).parent.parent / "benchmarks" / "results" / "evaluation"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def page(text: str) -> str:
    """Return the page with its tables made anew; the text around them is kept."""
    from zicl.lab.report.build import make_report

    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = make_report([ROWS], compare="paper").render("markdown")
    return f"{before}{BEGIN}\n{tables.strip()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
