"""The page in a browser, opened from disk: figures, and a prediction found and read with the keyboard alone."""

import re

import pytest

from tests.browser import console_errors, requests
from tests.lab.report.html.conftest import HOSTILE
from zicl.lab.report.html.page import PageSection, page_html, resource

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(evaluated, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(evaluated.page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """The open page. What it asks for besides itself, and what the console says, is an error."""
    browser.get(address)
    yield browser
    assert console_errors(browser) == []
    assert [url for url in requests(browser) if not url.startswith("data:image/")] == [address]
    assert browser.title == "Evaluation report"


def press(page, *keys, times=1):
    from selenium.webdriver import ActionChains

    chain = ActionChains(page)
    for _ in range(times):
        for key in keys:
            chain.send_keys(key)
    chain.perform()


def tab_to(page, wanted, most=80):
    """Press Tab until the script says that the focus is where it should be."""
    for _ in range(most):
        press(page, "\ue004")
        if page.execute_script(f"const e = document.activeElement; return Boolean({wanted})"):
            return
    pytest.fail(f"the keyboard does not reach {wanted}")


def text(page, selector):
    return page.find_element("css selector", selector).text


def texts(page, selector):
    return [element.text for element in page.find_elements("css selector", selector)]


def test_each_figure_is_drawn(page):
    figures = page.find_elements("css selector", "figure")
    assert [figure.find_element("css selector", "figcaption").text for figure in figures] == [
        "Reliability: Channel tiny-llama, the task's template",
        "Risk and coverage: Channel tiny-llama, the task's template",
        "The gap",
    ]
    sizes = page.execute_script("return [...document.querySelectorAll('figure img')].map(e => e.naturalWidth)")
    assert all(size > 30 for size in sizes)


def test_a_prediction_is_opened_and_read_with_the_keyboard(page, evaluated):
    tab_to(page, "e.name === 'title'")
    press(page, "Z")
    assert page.execute_script("return document.activeElement.value") == "Z-ICL"
    assert len(texts(page, "#list button")) == 10
    tab_to(page, "e.closest('#list') && e.closest('li').previousElementSibling")
    chosen = page.execute_script("return document.activeElement.querySelector('.snippet').textContent")
    press(page, "\ue007")
    assert page.execute_script("return document.activeElement.id") == "prediction"
    assert text(page, "#prediction blockquote") == chosen
    assert "Prediction 2 of 22" in text(page, "#count")
    assert page.find_element("css selector", "#list [aria-current]").text.endswith(chosen)
    demos = texts(page, "#prediction .demos li")
    assert len(demos) == 4
    found = evaluated.index
    for demo in demos:
        line = next(part for part in demo.splitlines() if "#" in part)
        sentence = found.sentence(int(line.split("#")[1].split(" ")[0]))
        assert sentence.text in demo
        assert sentence.source in line
        # It is the nearest sentence's, not that of the one shown.
        assert "similarity" not in line
        nearest = re.search(r"^Nearest(?:, one of)? \(similarity -?\d\.\d{3}\): (.*)$", demo, re.MULTILINE)[1]
        assert nearest in {found.sentence(row).text for row in found.around(sentence.row, 1)}
    shares = [float(value.split()[0]) for value in texts(page, ".scores .value:not(.raw)")]
    assert sum(shares) == pytest.approx(100, abs=0.2)


def test_the_arrow_keys_go_through_predictions(page):
    tab_to(page, "e.closest('#list')")
    first = text(page, "#prediction blockquote")
    press(page, "\ue014", times=11)
    assert "Prediction 12 of" in text(page, "#count")
    assert page.execute_script("return document.activeElement.getAttribute('aria-current')") == "true"
    press(page, "\ue012", times=30)
    assert "Prediction 1 of" in text(page, "#count")
    assert text(page, "#prediction blockquote") == first
    assert page.find_element("id", "previous").get_attribute("aria-disabled") == "true"


def test_a_button_at_its_end_keeps_the_keyboard(page):
    tab_to(page, "e.id === 'previous'")
    press(page, "\ue014")
    assert "Prediction 2 of" in text(page, "#count")
    press(page, "\ue007", times=2)
    assert page.execute_script("return document.activeElement.id") == "previous"
    press(page, "\ue014")
    assert "Prediction 2 of" in text(page, "#count")


def test_an_option_that_a_text_does_not_have_is_left_out(browser, tmp_path):
    cell = dict.fromkeys(["from", "model", "task", "title", "template", "inference", "seed"], "x")
    data = {
        "cells": [{**cell, "labels": ["1", "2", "3"], "probabilities": True, "total": 1, "right": 1}],
        "examples": [{"id": "a", "text": ["Which?"], "options": ["tea", "soup"]}],
        "sentences": [],
        "words": [],
        "predictions": [
            {"cell": 0, "example": 0, "gold": 0, "predicted": 0, "scores": [-1.0, -2.0, None], "demos": [], "cut": 0}
        ],
    }
    path = tmp_path / "page.html"
    path.write_text(page_html("Options", "", [PageSection("p", "P", resource("browser.html"))], data), encoding="utf-8")
    browser.get(path.as_uri())
    assert [row.split()[-2:] for row in texts(browser, ".scores tbody tr")] == [["%", "-1.00"], ["%", "-2.00"]]
    assert console_errors(browser) == []


def test_filters(page):
    from selenium.webdriver.support.select import Select

    def count():
        return int(text(page, "#count").split(" of ")[1].split(":")[0])

    assert count() == 132
    Select(page.find_element("name", "from")).select_by_value("copying")
    assert count() == 66
    Select(page.find_element("name", "outcome")).select_by_value("wrong")
    wrong = count()
    assert 0 < wrong < 66
    assert "wrong" in text(page, "#prediction .badge")
    Select(page.find_element("name", "order")).select_by_value("-1")
    surest = float(text(page, ".meta").split("margin ")[1])
    Select(page.find_element("name", "order")).select_by_value("1")
    least = float(text(page, ".meta").split("margin ")[1])
    assert least < surest
    high = page.find_element("name", "high")
    high.clear()
    high.send_keys(str(least))
    assert 1 <= count() < wrong
    high.clear()
    high.send_keys("-1")
    assert "No prediction is like that" in text(page, "#count")
    assert page.find_elements("css selector", "#prediction > *") == []
    page.find_element("css selector", "button[type=reset]").click()
    page.execute_async_script("setTimeout(arguments[0], 50)")
    assert count() == 132


def test_a_hostile_sentence_is_shown_as_it_is(page):
    script = "return [...document.querySelectorAll('#list .snippet')].map(e => e.textContent)"
    tab_to(page, "e.closest('#list')")
    for _ in range(14):
        if HOSTILE in page.execute_script(script):
            break
        press(page, "\ue014", times=10)
    assert HOSTILE in page.execute_script(script)
    assert HOSTILE in text(page, ".finding")
    assert page.find_elements("css selector", "img:not(figure img)") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_down_only_and_letters_are_readable(page, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert page.execute_script("return document.documentElement.scrollWidth") == 360
    assert page.execute_script("return document.querySelector('#prediction').getBoundingClientRect().right") <= 360
    colours = "return ['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])"
    ink, paper = (sum(map(int, c[4:-1].split(","))) for c in page.execute_script(colours))
    assert (ink > paper + 400) if scheme == "dark" else (paper > ink + 400)


def test_every_control_has_a_name(page):
    unnamed = page.execute_script(
        "return [...document.querySelectorAll('button, select, input, summary, a')]"
        ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label'))).map(e => e.outerHTML)"
    )
    assert unnamed == []
    for select in page.find_elements("css selector", "select"):
        if select.is_displayed():
            assert select.accessible_name
