"""One text on the page, and what its answer rests on."""

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

from tests.apps.serve.page.server import ask
from tests.browser import console_errors, requests
from tests.waiting import wait_until

pytestmark = pytest.mark.browser


def test_one_text_and_its_reasons(visitor, address):
    text = "The actors moved closer, and the film went dark."
    label = visitor.classify(text)
    [answer] = ask(address, text=text, explain=True)
    told = answer["explanation"]
    assert label == answer["label"]
    assert visitor.texts("#single .verdict .share") == [
        f"{100 * share:.1f} %" for share in sorted(answer["probabilities"].values(), reverse=True)
    ]
    assert visitor.texts(".way .head b") == ["No demos", "Naive", "Z-ICL"]
    said = [ask(address, text=text, method=method)[0]["label"] for method in ("no-demos", "naive", "z-icl")]
    assert visitor.texts(".way .says") == said
    visitor.click("#single .below .button")
    nearest_first = told["demonstrations"][::-1]
    assert visitor.texts(".demo .used p") == [demo["text"] for demo in nearest_first]
    assert visitor.texts(".demo .found p") == [demo["nearest"]["text"] for demo in nearest_first]
    assert visitor.texts(".demo .given .chip") == [demo["words"] for demo in nearest_first]
    assert visitor.texts(".demo .near") == [f"similarity {demo['similarity']:.2f}" for demo in nearest_first]
    for branch in told["prompt"]["branches"]:
        visitor.js(
            "[...document.querySelectorAll('.branch label')].find(e => e.textContent === arguments[0]).click()",
            branch["label"],
        )
        given = told["prompt"]["stem"] + branch["given"]
        shades = [told["prompt"]["prefix"], given, branch["scored"]]
        assert visitor.texts(".prompt span") == shades
    assert console_errors(visitor.browser) == []
    assert {url.split("/")[2] for url in requests(visitor.browser) if url.startswith("http")} == {address.split("/")[2]}


def test_another_method_shows_what_it_rests_on(visitor):
    visitor.classify("The bread is worth the walk.")
    visitor.all(".way")[1].click()
    assert visitor.texts(".over-line") == ["Prediction · Naive"]
    assert not visitor.all(".demo .found")
    assert set(visitor.texts(".demo .given .chip")) <= {"terrible", "great"}
    visitor.all(".way")[0].click()
    assert visitor.texts("#single .stack h2") == ["No demonstrations", "The prompt"]
    assert visitor.js("return [...document.querySelectorAll('.way')].map(e => e.ariaPressed)") == [
        "true",
        "false",
        "false",
    ]


def test_the_paragraph_on_click_and_escape(visitor):
    visitor.classify("The second act drags.")
    card = visitor.all(".demo")[0]
    used, nearest = (card.find_element("css selector", f".{kind} p").text for kind in ("used", "found"))
    button = card.find_element("css selector", ".given button")
    button.send_keys(Keys.ENTER)
    wait_until(lambda: visitor.texts(".around mark"))
    assert visitor.texts(".around mark.used") == [used]
    assert visitor.texts(".around mark.nearest") == [nearest]
    button.send_keys(Keys.ESCAPE)
    assert not visitor.all(".around")
    assert visitor.browser.switch_to.active_element == button


def test_everything_is_shown_as_text(visitor):
    text = "<img src=x onerror=window.hacked=1> hung in the foyer"
    visitor.name_labels("<i>good</i>", "<script>window.hacked=1</script>")
    visitor.click("#labels .label:last-child .chips input")
    for number, row in enumerate(visitor.all("#labels .label .chips input")):
        row.send_keys(f"<u>word{number}</u>", Keys.ENTER)
    label = visitor.classify(text)
    assert label in ("<i>good</i>", "<script>window.hacked=1</script>")
    assert text in visitor.texts(".asked")[0]
    shown = " ".join(visitor.texts(".demo"))
    assert "<img src=x" in shown or "<script>" in shown or "<b>" in shown
    assert (
        visitor.js(
            "return document.querySelectorAll('img, main script, main i[class=\"\"], main u, #single .demo b').length"
        )
        == 0
    )
    assert visitor.js("return window.hacked === undefined")
    assert console_errors(visitor.browser) == []
