"""Figures of studies: written as SVG and PNG, reproducible to the byte, readable without colours."""

from __future__ import annotations

import pytest

from zicl.lab.report.statistics import Interval
from zicl.lab.study.figures import Panel, Point, Series, StudyFigure, draw_figure, plot_figure
from zicl.lab.study.method_grid import RETRIEVALS, WORDS, method_style, style_of


def series(title, style, values):
    return Series(title, style, tuple(Point(x, Interval(v, v - 2, v + 3, 0.1)) for x, v in values.items()))


@pytest.fixture
def bars():
    shown = (
        series("One", style_of("z-icl"), {"CR": 50, "average": 52}),
        series("Two", style_of("naive"), {"CR": 40}),
    )
    return StudyFigure("bars", "Some bars", "", "accuracy", (Panel("channel", shown), Panel("direct", shown[:1])))


@pytest.fixture
def lines():
    shown = (series("One", style_of("z-icl"), {1.0: 50, 4.0: 60}), series("Two", style_of("naive"), {1.0: 40, 4.0: 45}))
    return StudyFigure("lines", "Some lines", "k", "accuracy", (Panel("channel", shown),), "lines", log_x=True)


def test_figures_are_written_as_svg_and_png_with_the_same_bytes_each_time(bars, tmp_path):
    written = draw_figure(bars, tmp_path)
    assert [path.name for path in written] == ["bars.svg", "bars.png"]
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in draw_figure(bars, tmp_path)] == before
    assert b"<dc:date>" not in before[0]
    assert b"Software" not in before[1]


def test_every_number_has_an_interval(bars, lines):
    figure = plot_figure(bars)
    assert len(figure.axes) == 2
    heights = sorted(patch.get_height() for patch in figure.axes[0].patches)
    assert heights == [40, 50, 52]
    assert intervals(figure.axes[0]) == [(38, 43), (48, 53), (50, 55)]
    assert figure.axes[0].get_ylim()[0] == 0
    axes = plot_figure(lines).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "4"]
    assert intervals(axes) == [(38, 43), (43, 48), (48, 53), (58, 63)]


def intervals(axes):
    """Return the ends of all vertical error bars."""
    from matplotlib.collections import LineCollection

    bars = [each for each in axes.collections if isinstance(each, LineCollection)]
    return sorted((low[1], high[1]) for each in bars for low, high in each.get_segments())


def test_the_legend_fits_into_the_figure():
    titles = ["Physical neighbour, original labels", "Diverse nearest, the paper's share, at least 2 k", "Nearest"]
    shown = tuple(series(title, style_of("naive"), {"CR": 50}) for title in titles)
    figure = plot_figure(StudyFigure("long", "Long names", "", "accuracy", (Panel("channel", shown),)))
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


def test_the_alternative_text_has_every_number(bars):
    assert bars.alt.startswith(
        "channel, One: CR 50.0 (48.0 to 53.0), average 52.0 (50.0 to 55.0). channel, Two: CR 40.0"
    )


def test_a_figure_without_panels_is_not_written(tmp_path):
    assert draw_figure(StudyFigure("none", "None", "", "accuracy", ()), tmp_path) == []
    assert not list(tmp_path.iterdir())


def test_methods_differ_without_colours():
    grid = {(name, words): method_style(name, words) for name in RETRIEVALS for words in WORDS}
    # In one group of bars, or as lines of one panel, there may be any of them.
    assert len({style.hatch for style in grid.values()}) == len(grid)
    assert len({style.marker for style in grid.values()}) == len(grid)
    for name in RETRIEVALS:
        assert len({grid[name, words].colour for words in WORDS}) == 1
    for name, words, method in (("physical", "synonyms", "z-icl"), ("nearest", "original", "naive")):
        assert grid[name, words] == style_of(method)
