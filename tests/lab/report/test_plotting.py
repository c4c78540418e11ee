"""Plotting: one style per method, and one error without matplotlib."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import MissingExtraError
from zicl.lab.report.plotting import check_plotting, new_figure, plot_style, styles

METHODS = ("no-demos", "z-icl", "logistic")
names = st.sets(st.text("abcdef-", min_size=1, max_size=6) | st.sampled_from(METHODS), max_size=20)


@given(names)
def test_every_method_has_a_style_that_differs_in_black_and_white(methods):
    found = styles(methods)
    assert set(found) == methods
    assert len({(style.marker, style.line) for style in found.values()}) == len(methods)


@given(names, names)
def test_known_methods_look_the_same_in_every_report(one, other):
    first, second = styles(one), styles(other)
    for name in set(METHODS) & one & other:
        assert first[name] == second[name]


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    check_plotting()
    monkeypatch.setattr("zicl._util.process.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "zicl\[plot\]"'):
        check_plotting()
    with pytest.raises(MissingExtraError), plot_style():
        pass
    with pytest.raises(MissingExtraError):
        new_figure(1, 1)
