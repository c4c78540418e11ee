"""The page as it is served: one style, one script, nothing from outside, and nothing that reads words as HTML."""

import re
from html.parser import HTMLParser

import pytest

from zicl.apps.serve.page import load_page


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def html():
    return load_page().html.decode()


@pytest.fixture(scope="module")
def tags(html):
    reader = Tags()
    reader.feed(html)
    return reader.found


def test_one_style_one_script_and_no_inline_ones(tags):
    assert [tag for tag, _ in tags].count("style") == 1
    assert [attrs for tag, attrs in tags if tag == "script"] == [{"type": "module"}]
    for tag, attrs in tags:
        assert "style" not in attrs, tag
        assert not [name for name in attrs if name.startswith("on")], tag


def test_nothing_comes_from_outside(html, tags):
    for _, attrs in tags:
        for name in ("src", "href", "action", "srcset", "poster", "data"):
            assert (attrs.get(name) or "#").startswith(("#", "data:image/svg+xml,")), attrs
    # The only address in it is the name of SVG.
    assert set(re.findall(r"https?://[^\s'\"]+", html)) <= {
        "http://www.w3.org/2000/svg%27",
        "http://www.w3.org/2000/svg",
    }
    assert "@import" not in html
    assert "url(" not in html


def test_words_are_never_read_as_html(html):
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"):
        assert way not in html


def test_every_label_and_description_names_something(tags):
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in tags:
        for name in ("for", "aria-labelledby", "aria-describedby", "aria-controls"):
            assert set((attrs.get(name) or "").split()) <= set(ids), attrs
