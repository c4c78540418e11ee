"""The page as text: one file, nothing from outside, everything escaped, every section in the contents."""

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest

from tests.lab.report.html.conftest import HOSTILE
from zicl.lab.report.html.page import resource

_EMPTY = {"meta", "img", "input", "br", "link"}


class Page(HTMLParser):
    """Elements, ids and what references them; a tag that is not closed is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.scripts, self.texts = [], [], {}, []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.setdefault(self.open[-1], []).append(data)
        else:
            self.texts.append(data)

    def values(self, name):
        return [attributes[name] for _, attributes in self.elements if attributes.get(name)]


@pytest.fixture(scope="module")
def text(evaluated):
    return evaluated.page()


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_nothing_comes_from_outside(page):
    assert {tag for tag, _ in page.elements} & {"link", "iframe", "object", "embed", "base"} == set()
    assert all(value.startswith("data:image/") for value in page.values("src"))
    assert all(value.startswith("#") for value in page.values("href"))
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    # The policy would refuse it.
    assert not page.values("style")


def test_the_policy_allows_only_this_style_and_script(page, text):
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    data, script = page.scripts["script"]
    for content in (script, *page.scripts["style"]):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert policy.startswith("default-src 'none';")
    assert json.loads(data)["predictions"]


def test_a_hostile_sentence_stays_text(page, text):
    assert "<img src=x" not in text
    assert any(HOSTILE in part for part in page.texts)
    assert HOSTILE in json.dumps(json.loads(page.scripts["script"][0])).replace('\\"', '"')


def test_references_and_ids_hold(page):
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    for value in (*page.values("href"), *page.values("aria-labelledby")):
        # The prediction's title is written by the script.
        assert value.lstrip("#") in {*ids, "prediction-title"}


def test_every_image_has_words_and_every_table_a_caption(page):
    images = [attributes for tag, attributes in page.elements if tag == "img"]
    assert len(images) == 3
    assert all(image["alt"] for image in images)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("table") == tags.count("caption") > 4
    assert {"header", "nav", "main", "footer", "h1"} <= set(tags)


def test_tables_studies_configuration_versions_and_time(page):
    content = " ".join(page.texts)
    for words in (
        "Accuracy in per cent",
        "Difference in accuracy to no-demos",
        "How much is copied?",
        "+3.1 points [-1.0, +7.2]",
        "tiny-llama",
        "transformers",
        "66 predictions",
        '"tokens_all_demos"',
    ):
        assert words in content


def test_the_same_results_give_the_same_page(evaluated, text):
    assert evaluated.page() == text


def test_studies_alone_make_a_page(evaluated):
    page = Page(evaluated.page(evaluated.study))
    assert "Studies" in page.texts
    # A part by its study: two of these may have parts of one name.
    assert "copying: near" in page.texts
    assert any("for 66 predictions" in part for part in page.texts)
    assert not any("Difference in accuracy" in part for part in page.texts)
    assert len(json.loads(page.scripts["script"][0])["predictions"]) == 66


def test_the_limit_is_for_all_of_the_page(evaluated, monkeypatch):
    monkeypatch.setattr("zicl.lab.report.html.predictions.PER_PAGE", 24)
    data = json.loads(Page(evaluated.page()).scripts["script"][0])
    assert len(data["cells"]) == 12
    assert len(data["predictions"]) == 24


def test_predictions_and_texts_can_be_left_out(evaluated):
    empty = json.loads(Page(evaluated.page(predictions=0)).scripts["script"][0])
    assert empty["predictions"] == []
    assert "soup" not in json.dumps(json.loads(Page(evaluated.page(show_texts=False)).scripts["script"][0]))


def test_the_page_s_files_ship_with_the_package():
    for name in ("page.html", "page.css", "page.js", "browser.html"):
        assert resource(name)
