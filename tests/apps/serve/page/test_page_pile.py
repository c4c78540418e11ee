"""Many texts without a corpus: they are learned from, then labelled, drawn as a map, and explained."""

import csv
import json
import threading
import urllib.request

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("selenium")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.apps.serve.page.server import ask, running
from tests.apps.serve.page.test_page_form import BODIES
from tests.apps.serve.page.visitor import Visitor
from tests.apps.serve.test_long_jobs import PILE
from tests.browser import console_errors, requests
from tests.conftest import BagEncoder
from tests.waiting import WAIT_SECONDS, wait_until
from zicl import ZICLClassifier
from zicl.apps.serve.configurations import NO_LABELS
from zicl.apps.serve.limits import RequestLimits

pytestmark = pytest.mark.browser
NAMES = ("food", "film", "train")


class SteppedEncoder(BagEncoder):
    """An encoder that takes a step per group, while it is held."""

    def __init__(self):
        self.encoded, self.held, self.steps, self.waits = [], False, threading.Semaphore(0), threading.Event()

    def encode(self, texts):
        if self.held:
            self.waits.set()
            assert self.steps.acquire(timeout=WAIT_SECONDS)
        self.encoded += texts
        return super().encode(texts)


def plain(encoder=None):
    return ZICLClassifier(None, NO_LABELS, encoder=encoder or BagEncoder()).fit()


@pytest.fixture(scope="module")
def address():
    with running(plain) as found:
        yield found


@pytest.fixture
def library():
    return ZICLClassifier(None, list(NAMES), encoder=BagEncoder()).fit(PILE)


def fill_in(visitor):
    visitor.paste("#texts", "\n".join(PILE))
    visitor.name_labels(*NAMES)


def test_a_csv_is_learned_from_labelled_drawn_and_explained(visitor, address, library, tmp_path):
    assert visitor.texts("#empty h2") == ["Drop a CSV or paste your texts, name the labels, press Classify."]
    assert visitor.js("return document.querySelector('input[name=mode]:checked').value") == "many"
    table = tmp_path / "notes.csv"
    with table.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["id", "what was said"], *enumerate(PILE)])
    visitor.js("document.getElementById('file').classList.remove('unseen')")
    visitor.browser.find_element("id", "file").send_keys(str(table))
    wait_until(lambda: visitor.texts("#file-count") == [f"{len(PILE)} texts"])
    visitor.name_labels(*NAMES)
    visitor.run()
    assert visitor.texts(".pile-words")[0].startswith(f"Learned from {len(set(PILE))} texts of notes.csv: ")
    wanted = library.classify(PILE)
    visitor.js("document.querySelector('#batch .pages button:last-child').click()")
    rows = visitor.rows()
    visitor.js("document.querySelector('#batch .pages button').click()")
    rows = visitor.rows() + rows
    assert [(row[1], row[2]) for row in rows] == [(text, each.label) for text, each in zip(PILE, wanted, strict=True)]
    assert [float(row[4]) for row in rows] == pytest.approx([each.margin for each in wanted], abs=6e-4)

    table_tab, map_tab = visitor.all(".tab")
    table_tab.send_keys(Keys.ARROW_RIGHT)
    assert visitor.browser.switch_to.active_element == map_tab
    wait_until(lambda: len(visitor.all(".point")) == len(PILE))
    colours = visitor.js("return [...document.querySelectorAll('.point')].map(e => e.getAttribute('fill'))")
    by_label = {each.label: colour for each, colour in zip(wanted, colours, strict=True)}
    assert len(set(by_label.values())) == len(by_label)
    assert colours == [by_label[each.label] for each in wanted]
    ringed = visitor.js("return [...document.querySelectorAll('.point.unsure')].map(e => Number(e.dataset.at))")
    assert ringed == [at for at, each in enumerate(wanted) if each.margin < 0.1]
    # Points of other labels fade when one label is chosen.
    visitor.all(".count")[0].click()
    assert len(visitor.all(".point:not(.dim)")) == sum(each.label == NAMES[0] for each in wanted)
    visitor.all(".count")[0].click()
    top = visitor.js(
        "return [...document.querySelectorAll('.point')].find(e => { const b = e.getBoundingClientRect();"
        " e.scrollIntoView({block: 'center'}); const c = e.getBoundingClientRect();"
        " return document.elementFromPoint(c.x + c.width / 2, c.y + c.height / 2) === e })"
    )
    at = int(top.get_attribute("data-at"))
    ActionChains(visitor.browser).move_to_element(top).perform()
    wait_until(lambda: PILE[at] in "".join(visitor.texts(".tip")))
    ActionChains(visitor.browser).click().perform()
    wait_until(lambda: visitor.texts("#why .expert h3") == ["The encoder", "The pile", "Together"])
    assert visitor.texts("#why .asked") == [PILE[at]]
    assert visitor.texts("#why .winner") == [wanted[at].label]
    visitor.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait_until(lambda: not visitor.all("#why-box"))

    visitor.choose("mode", "one")
    assert f"learned from {len(set(PILE))} texts of notes.csv" in visitor.texts("#method-words")[0]
    text = "The waiter sang about the old film."
    [own] = library.classify([text])
    assert visitor.classify(text) == own.label
    wait_until(lambda: visitor.texts("#single .expert h3") == ["The encoder", "The pile", "Together"])
    assert visitor.texts("#single .verdict .share") == [
        f"{100 * share:.1f} %" for share in sorted(own.probabilities.values(), reverse=True)
    ]
    assert visitor.texts(".way .head b") == ["Encoder", "Z-ICL+"]
    assert f"learned from {len(set(PILE))} texts" in visitor.texts(".change")[0]
    assert visitor.texts("#single .near-words dt") == list(NAMES)
    assert console_errors(visitor.browser) == []
    assert {url.split("/")[2] for url in requests(visitor.browser) if url.startswith("http")} == {address.split("/")[2]}


def test_what_was_learned_is_for_its_labels_and_can_be_forgotten(visitor):
    fill_in(visitor)
    visitor.run()
    visitor.js(BODIES)
    visitor.choose("mode", "one")
    visitor.classify("The waiter sang.")
    assert {"fit"} <= visitor.js("return window.bodies[0]").keys()
    visitor.all("#labels .name")[0].send_keys("s")
    assert "for other labels" in visitor.texts("#method-words")[0]
    visitor.classify("The waiter sang.")
    assert "fit" not in visitor.js("return window.bodies.at(-1)")
    assert "Nothing was learned from texts yet" in visitor.texts(".change")[0]
    visitor.all("#labels .name")[0].send_keys(Keys.BACKSPACE)
    visitor.click("#forget")
    assert "classify many texts first" in visitor.texts("#method-words")[0]
    # Nothing is learned where that is not wanted.
    visitor.choose("mode", "many")
    visitor.click("#learn")
    visitor.run()
    assert visitor.texts(".pile-words") == []
    assert all("fit" not in body for body in visitor.js("return window.bodies.slice(-2)"))


def test_what_the_server_has_forgotten_is_learned_again(browser, monkeypatch):
    monkeypatch.setattr("zicl.apps.serve.configurations._FITS", 1)
    with running(plain) as address:
        visitor = Visitor(browser, address).open()
        fill_in(visitor)
        visitor.run()
        post(address, "fit", texts=PILE[:30], labels=list(NAMES))
        visitor.classify("The waiter sang.")
        assert visitor.texts(".problem") == []
        assert "learned from" in visitor.texts(".change")[0]
        post(address, "fit", texts=PILE[:30], labels=list(NAMES))
        visitor.choose("mode", "many")
        visitor.js("document.querySelector('.why').click()")
        wait_until(lambda: len(visitor.texts("#why .way .says")) == 2)


def post(address, path, **body):
    request = urllib.request.Request(
        f"{address}v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_few_texts_teach_nothing_and_the_page_says_so(visitor):
    visitor.paste("#texts", "\n".join(PILE[:5]))
    visitor.name_labels(*NAMES)
    visitor.run()
    assert "Too few different texts" in visitor.texts(".pile-words")[0]
    assert len(visitor.rows()) == 5


def test_a_text_that_cannot_be_used_is_left_out(visitor):
    visitor.paste("#texts", "\n".join([*PILE[:20], "one\u001eother", *PILE[20:]]))
    visitor.name_labels(*NAMES)
    visitor.run()
    assert visitor.texts(".pile-words")[0].startswith(
        f"Learned from these {len(set(PILE))} of {len(set(PILE)) + 1} texts"
    )
    assert visitor.texts("#batch h2")[0] == f"{len(PILE)} of {len(PILE) + 1} texts classified"
    assert "1 text was passed over" in visitor.texts("#batch .problem")[0]


def test_a_pile_over_the_limit_is_sampled(browser):
    with running(plain, limits=RequestLimits(pile=25)) as address:
        visitor = Visitor(browser, address).open()
        fill_in(visitor)
        visitor.run()
        assert visitor.texts(".pile-words")[0].startswith(f"Learned from these 25 of {len(set(PILE))} texts: ")
        assert visitor.texts("#batch h2")[0] == f"{len(PILE)} texts classified"
        visitor.all(".tab")[1].click()
        wait_until(lambda: len(visitor.all(".point")) == 25)
        assert visitor.texts(".map-box p")[0].startswith(f"A sample of 25 of {len(PILE)} texts; ")


def test_learning_shows_its_progress_and_stops(browser):
    encoder = SteppedEncoder()
    with running(lambda: plain(encoder)) as address:
        visitor = Visitor(browser, address).open()
        fill_in(visitor)
        encoder.held = True
        visitor.click("#run")
        assert encoder.waits.wait(WAIT_SECONDS)
        encoder.steps.release()
        total = len(set(PILE))
        wait_until(lambda: visitor.texts("#batch .meter .small")[0].startswith(f"16 of {total} read"))
        assert visitor.one("#batch progress").get_attribute("value") == "16"
        assert visitor.texts("#batch h2")[0] == f"Learning from {total} texts …"
        visitor.click("#stop")
        visitor.wait()
        assert read_after_the_end(address, encoder, "fit") == 2 * 16
        assert visitor.texts("#batch h2")[0] == f"0 of {len(PILE)} texts classified"
        visitor.click("#batch .below button")
        visitor.wait()
        assert visitor.texts("#batch h2")[0] == f"{len(PILE)} texts classified"


def read_after_the_end(address, encoder, route):
    """Let the encoder go on after a request has ended, and return how many texts of the pile were encoded in all."""

    def ended():
        with urllib.request.urlopen(f"{address}metrics") as answer:
            return f'zicl_requests_total{{route="/v1/{route}"' in answer.read().decode()

    wait_until(ended)
    encoder.held = False
    encoder.steps.release(1000)
    # The group under way is finished; were there another, it would come before the last of these.
    for number in range(9):
        ask(address, text=f"Question {number}.", labels=list(NAMES))
    return len([text for text in encoder.encoded if text in PILE])


def test_a_map_can_be_cancelled(browser):
    encoder = SteppedEncoder()
    with running(lambda: plain(encoder)) as address:
        visitor = Visitor(browser, address).open()
        fill_in(visitor)
        visitor.click("#learn")
        visitor.run()
        encoder.encoded.clear()
        encoder.held = True
        visitor.all(".tab")[1].click()
        assert encoder.waits.wait(WAIT_SECONDS)
        encoder.steps.release()
        wait_until(lambda: visitor.texts(".map-box p")[0].startswith(f"Reading the texts: 16 of {len(set(PILE))}"))
        visitor.click(".map-box .button")
        wait_until(lambda: visitor.texts(".map-box p")[0].startswith("Cancelled"))
        assert read_after_the_end(address, encoder, "map") == 2 * 16
        for tab in visitor.all(".tab"):
            tab.click()
        wait_until(lambda: len(visitor.all(".point")) == len(PILE))


def test_texts_that_repeat_are_sent_once_for_a_map(browser):
    with running(plain, limits=RequestLimits(body=4000)) as address:
        visitor = Visitor(browser, address).open()
        visitor.paste("#texts", "\n".join(PILE * 2))
        visitor.name_labels(*NAMES)
        visitor.click("#learn")
        visitor.run()
        visitor.all(".tab")[1].click()
        wait_until(lambda: len(visitor.all(".point")) == 2 * len(PILE))
        places = visitor.js(
            "return [...document.querySelectorAll('.point')]"
            ".map(e => `${e.getAttribute('cx')} ${e.getAttribute('cy')}`)"
        )
        assert places == places[: len(PILE)] * 2
        assert len(set(places)) > 1


def test_what_a_file_says_it_was_learned_from(browser, tmp_path):
    def fitted():
        return ZICLClassifier(None, ["food", "film"], encoder=BagEncoder()).fit(PILE)

    with running(fitted) as address:
        visitor = Visitor(browser, address).open()
        visitor.choose("mode", "many")
        visitor.paste("#texts", "\n".join(PILE[:5]))
        visitor.run()
        assert saved_json(visitor, tmp_path / "own")["learned_from"] == len(set(PILE))
        visitor.name_labels(*NAMES)
        visitor.run()
        assert saved_json(visitor, tmp_path / "other")["learned_from"] == 0


def saved_json(visitor, folder):
    visitor.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    visitor.click("#batch [aria-label='Download as JSON']")
    return json.loads(wait_until(lambda: [p for p in folder.glob("*.json") if p.stat().st_size])[0].read_text())


def test_a_map_is_drawn_anew_when_a_batch_goes_on(browser):
    encoder = SteppedEncoder()
    with running(lambda: plain(encoder)) as address:
        visitor = Visitor(browser, address).open()
        fill_in(visitor)
        visitor.click("#learn")
        encoder.held = True
        visitor.click("#run")

        def some_are_labelled():
            encoder.steps.release()
            return len(visitor.rows()) >= 5

        wait_until(some_are_labelled)
        visitor.click("#stop")
        encoder.held = False
        encoder.steps.release(1000)
        visitor.wait()
        visitor.all(".tab")[1].click()
        wait_until(lambda: 5 <= len(visitor.all(".point")) < len(PILE))
        visitor.click("#batch .below button")
        wait_until(lambda: len(visitor.all(".point")) == len(PILE))


def test_another_run_ends_the_map_of_the_last(browser):
    encoder = SteppedEncoder()
    with running(lambda: plain(encoder)) as address:
        visitor = Visitor(browser, address).open()
        fill_in(visitor)
        visitor.click("#learn")
        visitor.run()
        encoder.encoded.clear()
        encoder.held = True
        visitor.all(".tab")[1].click()
        assert encoder.waits.wait(WAIT_SECONDS)
        visitor.click("#run")
        assert read_after_the_end(address, encoder, "map") == 16


def test_sets_of_labels_are_kept_across_reloads(visitor, tmp_path):
    visitor.name_labels("cold", "warm")
    visitor.all("#labels .chips input")[0].send_keys("icy", Keys.ENTER)
    visitor.all("#labels .meaning")[1].send_keys("It is warm.")
    save(visitor, "weather")
    visitor.name_labels("question", "complaint", "praise")
    save(visitor, "tickets")
    assert visitor.texts("#sets") == ["Set: tickets"]
    visitor.open()
    visitor.open("#")
    assert visitor.texts("#sets") == ["Sets"]
    visitor.click("#sets")
    assert visitor.texts("#set-list .button:not(.plain)") == ["Use weather", "Use tickets"]
    visitor.all("#set-list .button")[0].click()
    assert visitor.js("return [...document.querySelectorAll('.label .name')].map(e => e.value)") == ["cold", "warm"]
    assert visitor.texts("#labels .chip") == ["icy×"]
    assert visitor.all("#labels .meaning")[1].get_attribute("value") == "It is warm."

    # A file takes them to another browser.
    visitor.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    visitor.click("#sets")
    visitor.click("#set-export")
    exported = wait_until(lambda: [path for path in tmp_path.glob("*.json") if path.stat().st_size])[0]
    visitor.click("#set-clear")
    assert visitor.texts("#set-none") == ["None is kept yet."]
    assert visitor.js("return localStorage.getItem('zicl-label-sets')") is None
    visitor.js("document.getElementById('set-file').classList.remove('unseen')")
    other = tmp_path / "other.json"
    other.write_text('{"no": "sets"}')
    visitor.browser.find_element("id", "set-file").send_keys(str(other))
    wait_until(lambda: "holds no sets of labels" in "".join(visitor.texts("#sets-problem")))
    visitor.browser.find_element("id", "set-file").send_keys(str(exported))
    wait_until(lambda: visitor.texts("#set-list .button:not(.plain)") == ["Use weather", "Use tickets"])
    visitor.click("#set-clear")


def save(visitor, name):
    visitor.click("#sets")
    visitor.fill("#set-name", name)
    visitor.browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert f"Use {name}" in visitor.texts("#set-list .button")
    visitor.click("#sets-close")


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (320, 640)])
def test_everything_is_within_reach(visitor, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    visitor.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    visitor.name_labels("question", "complaint")
    for selector in ("#sets", "#add-label", "#choose", "#learn", "input[name=method][value=encoder] + b"):
        element = visitor.js("return document.querySelector(arguments[0])", selector)
        visitor.js("arguments[0].scrollIntoView({block: 'center'})", element)
        box = visitor.js("const b = arguments[0].getBoundingClientRect(); return [b.left, b.right, b.width]", element)
        assert 0 <= box[0] < box[1] <= width, selector
    assert visitor.js("return document.documentElement.scrollWidth") <= width
    visitor.click("#sets")
    box = visitor.js("const b = document.querySelector('#sets-box').getBoundingClientRect(); return [b.left, b.right]")
    assert 0 <= box[0] < box[1] <= width
