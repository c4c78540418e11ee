"""Templates are checked when they are made, and found by name."""

import pytest

from zicl.exceptions import ConfigError, UnknownNameError
from zicl.prompt.template import Template, get_template


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("Review:", "x {label}"), "exactly once"),
        (("Review: {input} ", "{label}"), "white space"),
        (("{input}", "{label}{label}"), "once"),
    ],
)
def test_bad_templates(lines, message):
    with pytest.raises(ConfigError, match=message):
        Template(*lines)


def test_unknown_template():
    with pytest.raises(UnknownNameError, match="did you mean 'review'"):
        get_template("reviews")
    with pytest.raises(ConfigError, match="white space"):
        Template(joint=" and ")
