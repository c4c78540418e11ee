"""Whatever a text holds, it stays text."""

import html
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.lab.report.html.conftest import HOSTILE
from zicl._util.html import escape, json_in_html, slug


@given(st.text())
def test_json_in_a_script_says_the_same_and_ends_nothing(text):
    written = json_in_html({"text": text + HOSTILE})
    assert json.loads(written) == {"text": text + HOSTILE}
    assert not re.search("[<>&\u2028\u2029]", written)


def test_half_a_character_does_not_stop_the_page():
    assert json.loads(json_in_html(["broken \ud83d here"]).encode("utf-8")) == ["broken ? here"]


@given(st.text())
def test_html_shows_the_text_and_no_element(text):
    assert html.unescape(escape(HOSTILE)) == HOSTILE
    assert not set('<>"') & set(escape(text))


@given(st.text())
def test_names_of_parts_need_no_quoting(text):
    assert re.fullmatch("[a-z0-9-]*", slug(text))
