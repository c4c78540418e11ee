"""The form of the page: errors in their place, the link, and the token."""

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

from tests.apps.serve.page.server import running
from tests.apps.serve.page.visitor import Visitor
from tests.waiting import wait_until

pytestmark = pytest.mark.browser


def test_errors_appear_where_they_belong(visitor):
    visitor.run()
    assert "There is no text yet" in visitor.texts("#text-problem")[0]
    assert visitor.one("#text").get_attribute("aria-invalid") == "true"
    visitor.paste("#text", "The soup was cold.")
    visitor.fill("#k", "9999")
    visitor.run()
    [told] = visitor.texts("#method-problem")
    assert "9,999 demonstrations were given" in told
    assert "Expected: at most" in told
    assert "Use a smaller k." in told
    assert not visitor.texts("#text-problem")
    visitor.fill("#k", "x2")
    visitor.fill("#k", "4")
    visitor.name_labels("great", "great")
    visitor.run()
    assert "Two labels are called great" in visitor.texts("#labels-problem")[0]
    visitor.name_labels("great")
    visitor.run()
    assert "At least two labels" in visitor.texts("#labels-problem")[0]
    visitor.name_labels("great", "terrible")
    assert visitor.classify("The soup was cold.") in ("great", "terrible")
    assert not visitor.all(".problem")


BODIES = """
const fetched = window.fetch;
window.bodies = [];
window.fetch = (path, asked) => {
  if (asked.body) window.bodies.push(JSON.parse(asked.body));
  return fetched(path, asked);
};
"""


def test_a_label_with_another_name_loses_what_belonged_to_the_old_one(visitor):
    visitor.js(BODIES)
    assert visitor.texts("#labels .chip") == ["bad×", "good×"]
    first, second = visitor.all("#labels .name")
    for field, name in ((first, "sports"), (second, "business")):
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(name)
    assert visitor.texts("#labels .chip") == []
    visitor.choose("method", "no-demos")
    visitor.classify("The soup was cold.")
    assert visitor.js("return window.bodies[0].labels") == [{"name": "sports"}, {"name": "business"}]
    # The template is picked by the labels again.
    assert "Category: " in visitor.texts(".prompt")[0]
    visitor.click("#suggest")
    wait_until(lambda: visitor.js("return window.bodies.at(-1).text === undefined"))
    assert "already" not in "".join(visitor.texts("#labels-problem"))


def test_a_name_that_comes_back_has_what_belonged_to_it(visitor):
    name = visitor.all("#labels .name")[0]
    name.send_keys("x")
    assert visitor.texts("#labels .chip") == ["good×"]
    name.send_keys(Keys.BACKSPACE)
    assert visitor.texts("#labels .chip") == ["bad×", "good×"]


def test_a_label_is_described(visitor):
    visitor.js(BODIES)
    visitor.all("#labels .meaning")[1].send_keys("The review is positive.")
    visitor.classify("The soup was cold.")
    described = visitor.js("return window.bodies[0].labels[1]")
    assert (described["name"], described["description"]) == ("great", "The review is positive.")
    visitor.click("#share")
    link = visitor.one("#share-link").get_attribute("value")
    visitor.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    visitor.open("#" + link.split("#")[1])
    assert [field.get_attribute("value") for field in visitor.all("#labels .meaning")] == [
        "",
        "The review is positive.",
    ]


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (1366, 900), (1920, 1080)])
def test_the_form_is_seen_at_once(visitor, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    visitor.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    bottoms = "return [...document.querySelectorAll('.ask > section')].map(e => e.getBoundingClientRect().bottom)"
    bar = visitor.js("return document.querySelector('.go').getBoundingClientRect().top")
    assert max(visitor.js(bottoms)) <= bar + 1


def test_a_text_that_was_cut_says_so(visitor):
    visitor.choose("method", "no-demos")
    visitor.classify("The soup was cold. " * 100)
    assert visitor.texts(".cut") == ["The text is too long: only a part of it was read."]
    visitor.choose("mode", "many")
    visitor.paste("#texts", "The soup was cold.\n" + "The soup was warm. " * 100)
    visitor.run()
    assert "1 was too long" in visitor.texts("#batch caption")[0]


def test_a_server_that_is_gone(browser, load):
    with running(load) as address:
        visitor = Visitor(browser, address).open()
    visitor.paste("#text", "The soup was cold.")
    visitor.run()
    assert "The server does not answer" in visitor.texts("#single .verdict .problem")[0]
    assert "zicl serve" in visitor.texts("#single .verdict .problem")[0]


def test_the_link_keeps_settings_and_no_text(visitor):
    visitor.choose("method", "naive")
    visitor.fill("#k", "3")
    visitor.fill("#seed", "11")
    visitor.name_labels("cold", "warm")
    for field, word in zip(visitor.all("#labels .chips input"), ("icy", "hot"), strict=True):
        field.send_keys(word, Keys.ENTER)
    visitor.paste("#text", "A secret text.")
    visitor.click("#share")
    link = visitor.one("#share-link").get_attribute("value")
    assert "secret" not in link
    visitor.click("#share-texts")
    assert "secret" in visitor.one("#share-link").get_attribute("value")
    visitor.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert "secret" not in visitor.browser.current_url

    visitor.open("#" + link.split("#")[1])
    assert visitor.js("return document.querySelector('input[name=method]:checked').value") == "naive"
    assert visitor.js("return ['k', 'seed'].map(id => document.getElementById(id).value)") == ["3", "11"]
    assert visitor.js("return [...document.querySelectorAll('.label .name')].map(e => e.value)") == ["cold", "warm"]
    assert visitor.texts("#labels .chip") == ["icy×", "hot×"]
    assert visitor.one("#text").get_attribute("value") == ""
    assert visitor.classify("The soup was cold.") in ("cold", "warm")
    assert len(visitor.all(".demo")) == 3


def test_a_link_that_was_cut(visitor):
    visitor.open("#method=z-ic&labels=%5B%7B%22na")
    assert "cannot be read" in visitor.texts("#labels-problem")[0]
    assert "does not know: z-ic" in visitor.texts("#method-problem")[0]


def test_a_token_is_asked_for_and_kept_in_the_tab(browser, load):
    with running(load, token="open sesame") as address:
        visitor = Visitor(browser, address).open(ready=False)
        wait_until(lambda: visitor.all("#token-box"))
        visitor.one("#token").send_keys("wrong", Keys.ENTER)
        wait_until(lambda: "refused" in "".join(visitor.texts("#token-problem")))
        visitor.one("#token").send_keys("open sesame", Keys.ENTER)
        wait_until(lambda: visitor.texts("#facts span"))
        assert visitor.classify("The soup was cold.") in ("great", "terrible")
        assert visitor.js("return [sessionStorage.length, Object.values(localStorage).join()]") == [1, ""]
        assert "sesame" not in browser.current_url
