"""The formats of a table: Markdown, CSV and LaTeX."""

import csv
import io
import re

from tests.lab.report.folder import row, write_folder
from zicl.lab.report.build import make_report


def test_markdown_tables_are_rectangular(folder):
    text = make_report([folder], compare="paper").render("markdown")
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    titles = re.findall(r"^\*\*(.*)\*\*$", text, re.MULTILINE)
    assert [title.split()[0] for title in titles] == ["Accuracy", "Difference", "Difference", "Share", "What"]


def test_csv_is_the_main_table(folder):
    rows = list(csv.DictReader(io.StringIO(make_report([folder]).render("csv"))))
    assert len(rows) == 8
    ours = next(r for r in rows if r["method"] == "z-icl")
    assert float(ours["CR"]) > 60
    assert float(ours["CR deviation"]) >= 0
    assert next(r for r in rows if r["method"] == "majority")["CR deviation"] == ""
    assert {r["method"] for r in rows if r["oracle"] == "yes"} == {"icl-gold", "logistic"}


def test_latex_is_balanced_and_escaped(tmp_path):
    rows = [row("CR", "my_own & method", "good", "good", "a"), row("CR", "no-demos", "good", "bad", "a")]
    text = make_report([write_folder(tmp_path / "r", rows, model="a_b%c")], compare="paper").render("latex")
    assert r"My\_own \& method" in text
    assert r"a\_b\%c" in text
    assert r"$\mathbf{100.0}$" in text
    assert r"$\mathbf{80.1}_{0.1}$" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == text.count(r"\toprule")
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    for line in text.splitlines():
        if line.startswith(("No-demos", "My")):
            assert line.endswith(r" \\")
