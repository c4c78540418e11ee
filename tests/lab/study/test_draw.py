"""Figures of studies: written as SVG and PNG, the same bytes each time, told apart without colours."""

from __future__ import annotations

import pytest

from zicl.lab.report.statistics import Interval
from zicl.lab.study.figures import Panel, Point, Series, StudyFigure, draw_figure, make_canvas
from zicl.lab.study.method_grid import RETRIEVALS, WORDS, method_style, style_of


def series(title, style, values):
    return Series(title, style, tuple(Point(at, Interval(v, v - 2, v + 3, 0.1)) for at, v in values.items()))


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
    return StudyFigure("lines", "Some lines", "k", "accuracy", (Panel("channel", shown),), "lines", logarithmic=True)


def test_a_figure_is_written_twice_over_and_always_the_same(bars, tmp_path):
    written = draw_figure(bars, tmp_path)
    assert [path.name for path in written] == ["bars.svg", "bars.png"]
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in draw_figure(bars, tmp_path)] == before
    assert b"<dc:date>" not in before[0]
    assert b"Software" not in before[1]


def test_every_number_has_its_interval(bars, lines):
    canvas = make_canvas(bars)
    assert len(canvas.axes) == 2
    heights = sorted(patch.get_height() for patch in canvas.axes[0].patches)
    assert heights == [40, 50, 52]
    assert intervals(canvas.axes[0]) == [(38, 43), (48, 53), (50, 55)]
    assert canvas.axes[0].get_ylim()[0] == 0
    drawn = make_canvas(lines).axes[0]
    assert [text.get_text() for text in drawn.get_xticklabels()] == ["1", "4"]
    assert intervals(drawn) == [(38, 43), (43, 48), (48, 53), (58, 63)]


def intervals(axes):
    """The ends of all vertical error bars."""
    from matplotlib.collections import LineCollection

    bars = [each for each in axes.collections if isinstance(each, LineCollection)]
    return sorted((low[1], high[1]) for each in bars for low, high in each.get_segments())


def test_no_legend_runs_over_the_edges():
    titles = ["Physical neighbour, original labels", "Diverse nearest, the paper's share, at least 2 k", "Nearest"]
    shown = tuple(series(title, style_of("naive"), {"CR": 50}) for title in titles)
    canvas = make_canvas(StudyFigure("long", "Long names", "", "accuracy", (Panel("channel", shown),)))
    canvas.draw_without_rendering()
    legend = canvas.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= canvas.bbox.x1


def test_the_figure_in_words(bars):
    assert bars.alt.startswith(
        "channel, One: CR 50.0 (48.0 to 53.0), average 52.0 (50.0 to 55.0). channel, Two: CR 40.0"
    )


def test_nothing_to_show_is_no_figure(tmp_path):
    assert draw_figure(StudyFigure("none", "None", "", "accuracy", ()), tmp_path) == []
    assert not list(tmp_path.iterdir())


def test_arms_are_told_apart_without_colours():
    looks = {(way, words): method_style(way, words) for way in RETRIEVALS for words in WORDS}
    # In one group of bars, or as lines of one panel, there may be any of them.
    assert len({each.hatch for each in looks.values()}) == len(looks)
    assert len({each.marker for each in looks.values()}) == len(looks)
    for way in RETRIEVALS:
        assert len({looks[way, words].colour for words in WORDS}) == 1
    for way, words, name in (("physical", "synonyms", "z-icl"), ("nearest", "original", "naive")):
        assert looks[way, words] == style_of(name)
