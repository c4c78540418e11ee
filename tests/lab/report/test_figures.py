"""Figures: which are drawn, what is in them, and that a method looks the same everywhere."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.report.folder import LABELS, row, write_folder
from zicl.lab.report.build import make_report
from zicl.lab.report.figures import PLOTS, _drawn, _figure, draw_figures
from zicl.lab.report.plotting import styles

METHODS = ("no-demos", "z-icl", "mine-batch", "majority", "cosine-words", "logistic")


@pytest.fixture
def results(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for task in ("CR", "AGNews"):
        for method in METHODS:
            inference = "none" if method in ("majority", "cosine-words", "logistic") else "channel"
            for number in range(60):
                gold = number % len(LABELS[task])
                scores = rng.normal(0, 1, len(LABELS[task])) + np.eye(len(LABELS[task]))[gold]
                said = LABELS[task][int(scores.argmax())]
                rows.append(row(task, method, LABELS[task][gold], said, f"{number}", inference=inference,
                                log_likelihoods=scores.tolist()))  # fmt: skip
    return make_report([write_folder(tmp_path / "r", rows)]).results


def test_both_figures_in_both_formats_and_the_same_to_the_byte(results, tmp_path):
    written = list(draw_figures(results, tmp_path / "new" / "folder"))
    assert [path.name for path in written] == [
        "reliability-channel-tiny-task.svg", "reliability-channel-tiny-task.png",
        "risk-coverage-channel-tiny-task.svg", "risk-coverage-channel-tiny-task.png",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(p.name for p in written)
    again = draw_figures(results, tmp_path / "again")
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert written[1].read_bytes().startswith(b"\x89PNG")
    assert ET.parse(written[0]).getroot().tag.endswith("svg")


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_panel_a_task_and_a_line_a_method(results, plot):
    (block,) = [block for block in results.blocks if block.inference == "channel"]
    cells = _drawn(results, block)
    # Cosines claim nothing, and the majority is no line.
    assert list(cells) == ["no-demos", "z-icl", "mine-batch", "logistic"]
    looks = styles(METHODS)
    figure = _figure(results, block, cells, plot, looks)
    assert [panel.get_title() for panel in figure.axes] == ["CR", "AGNews"]
    for panel in figure.axes:
        lines = [line for line in panel.lines if line.get_marker() != "None"]
        assert [line.get_color() for line in lines] == [looks[name].colour for name in cells]
        assert [line.get_marker() for line in lines] == [looks[name].marker for name in cells]
        assert all(len(line.get_xdata()) for line in lines)
    (legend,) = figure.legends
    titles = [text.get_text() for text in legend.get_texts()]
    assert titles == ["No-demos", "Z-icl", "Mine-batch (batch-calibrated)", "Logistic (control, oracle)"]


def test_rows_that_are_few_or_none(tmp_path):
    folder = write_folder(tmp_path / "r", [row("CR", "naive", "good", "good", "a")])
    assert len(draw_figures(make_report([folder]).results, tmp_path / "few")) == 4
    for file in (folder / "rows").iterdir():
        file.unlink()
    assert draw_figures(make_report([folder]).results, tmp_path / "none") == {}


names = st.sets(st.text("abcdef-", min_size=1, max_size=6) | st.sampled_from(METHODS), max_size=20)


@given(names)
def test_every_method_has_a_style_that_is_not_only_a_colour(methods):
    found = styles(methods)
    assert set(found) == methods
    assert len({(style.marker, style.line) for style in found.values()}) == len(methods)


@given(names, names)
def test_the_tables_own_methods_look_the_same_in_every_report(one, other):
    first, second = styles(one), styles(other)
    for name in set(METHODS) & one & other - {"majority", "cosine-words", "mine-batch"}:
        assert first[name] == second[name]
