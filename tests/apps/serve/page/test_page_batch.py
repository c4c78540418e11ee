"""Many texts on the page: files, progress, the table, and what is saved of it."""

import csv
import json
import threading

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

from tests.apps.serve.conftest import GatedLM
from tests.apps.serve.page.server import ask, running
from tests.apps.serve.page.visitor import Visitor
from tests.waiting import WAIT_SECONDS, wait_until
from zicl import ZICLClassifier

pytestmark = pytest.mark.browser

LINES = [
    "The soup was thin.",
    "A bold film about a train.",
    "The lamp went dark.",
    "Even the bread sang.",
    "We heard pears.",
]


def test_a_batch_sorted_filtered_and_explained(visitor, address):
    visitor.choose("mode", "many")
    visitor.paste("#texts", "\n".join([*LINES, "", "   "]))
    assert visitor.texts("#run-words") == ["Classify 5 texts"]
    visitor.run()
    answers = ask(address, texts=LINES)
    wanted = [
        [str(n + 1), text, a["label"], f"{100 * a['probabilities'][a['label']]:.1f} %", f"{a['margin']:.3f}"]
        for n, (text, a) in enumerate(zip(LINES, answers, strict=True))
    ]
    assert visitor.rows() == wanted
    assert visitor.one("#batch progress").get_attribute("value") == "5"
    assert visitor.js("return document.getElementById('status').textContent") == "All 5 texts are classified"
    margin = visitor.all("#batch th button")[-1]
    margin.click()
    assert [row[4] for row in visitor.rows()] == sorted(row[4] for row in wanted)
    margin.click()
    assert [row[4] for row in visitor.rows()] == sorted((row[4] for row in wanted), reverse=True)
    assert visitor.js("return [...document.querySelectorAll('#batch th')].map(e => e.ariaSort)")[4] == "descending"
    middle = sorted(a["margin"] for a in answers)[2]
    visitor.fill("[aria-label='Margin at least']", str(middle))
    assert len(visitor.rows()) == 3
    visitor.fill("[aria-label='Margin at least']", "0")
    label = answers[0]["label"]
    visitor.js(
        "[...document.querySelectorAll('.count')].find(e => e.textContent.startsWith(arguments[0])).click()", label
    )
    assert {row[2] for row in visitor.rows()} == {label}
    assert visitor.one("#batch select").get_attribute("value") == f"={label}"
    visitor.all(".why")[0].send_keys(Keys.ENTER)
    wait_until(lambda: visitor.texts("#why .demo"))
    assert visitor.texts("#why .winner") == [label]
    visitor.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait_until(lambda: not visitor.all("#why-box"))
    assert visitor.js("return document.activeElement.className") == "why"


def test_a_text_that_cannot_be_used_is_passed_over(visitor):
    visitor.choose("mode", "many")
    visitor.paste("#texts", "\n".join([LINES[0], "one\u001eother", LINES[1]]))
    visitor.run()
    assert [row[:2] for row in visitor.rows()] == [["1", LINES[0]], ["3", LINES[1]]]
    assert visitor.texts("#batch h2")[0] == "2 of 3 texts classified"
    [told] = visitor.texts("#batch .problem")
    assert "1 text was passed over" in told
    assert "Text 2: it " in told


class SteppedLM(GatedLM):
    """A language model that scores one text per step."""

    def __init__(self, lm):
        super().__init__(lm)
        self.step = threading.Semaphore(0)

    def score(self, prompts, progress=None):
        assert self.step.acquire(timeout=WAIT_SECONDS)
        return self._lm.score(prompts, progress)


def test_results_appear_as_they_are_computed(browser, served_index, lm):
    model = SteppedLM(lm)
    classifier = ZICLClassifier(served_index, ["terrible", "great"], model, method="no-demos").fit()
    with running(lambda: classifier) as address:
        visitor = Visitor(browser, address).open()
        visitor.choose("mode", "many")
        visitor.paste("#texts", "\n".join(f"Soup {number} of the week." for number in range(36)))
        visitor.click("#run")
        for count in (1, 2):
            model.step.release()
            wait_until(lambda count=count: len(visitor.rows()) == count)
            assert visitor.one("#batch progress").get_attribute("value") == str(count)
        model.step.release(100)
        visitor.wait()
        assert len(visitor.rows()) == 36


def test_pages_are_turned_by_keyboard(visitor):
    visitor.choose("mode", "many")
    visitor.choose("method", "no-demos")
    visitor.paste("#texts", "\n".join(f"Soup {number} of the week." for number in range(60)))
    visitor.run()
    assert len(visitor.rows()) == 50
    focused = "return [document.activeElement.textContent, document.activeElement.ariaDisabled]"
    visitor.all("#batch .pages button")[1].send_keys(Keys.ENTER)
    assert [row[0] for row in visitor.rows()] == [str(number) for number in range(51, 61)]
    # There is no page after it, and the keyboard has not lost its place.
    assert visitor.js(focused) == ["Next", "true"]
    visitor.browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert visitor.texts("#batch .pages span") == ["2 of 2"]
    visitor.browser.switch_to.active_element.send_keys(Keys.SHIFT, Keys.TAB)
    visitor.browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert len(visitor.rows()) == 50
    assert visitor.js(focused) == ["Previous", "true"]


CUT = """
const fetched = window.fetch;
window.fetch = async (path, asked) => {
  if (!asked.body) return fetched(path, asked);
  window.fetch = fetched;
  const shares = '"probabilities":{"great":0.75,"terrible":0.25}';
  const line = `{"index":0,"label":"great","labels":["great"],"margin":0.5,${shares}}\\n`;
  let parts = 0;
  return new Response(new ReadableStream({ pull(to) {
    if (parts++) return new Promise((_, fail) => setTimeout(fail, 100, new TypeError("network error")));
    to.enqueue(new TextEncoder().encode(line));
  } }));
};
"""


def test_a_connection_that_is_lost_is_told_and_the_rest_can_be_asked_for(visitor):
    visitor.choose("mode", "many")
    visitor.paste("#texts", "\n".join(LINES))
    visitor.js(CUT)
    visitor.run()
    assert "The server does not answer" in visitor.texts("#batch .problem")[0]
    assert len(visitor.rows()) == 1
    visitor.js("window.row = document.querySelector('#batch tr.opens')")
    visitor.click("#batch .problem button")
    wait_until(lambda: len(visitor.rows()) == len(LINES))
    assert visitor.texts("#batch .problem") == []
    # A row that was there stays the same one: it can be clicked while others come.
    assert visitor.js("return window.row === document.querySelector('#batch tr.opens')")


def downloaded(visitor, folder, name):
    folder.mkdir(exist_ok=True)
    visitor.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    visitor.click(f"[aria-label='Download as {name}']")
    # The browser creates the file empty and moves the finished download over it.
    return wait_until(lambda: [path for path in folder.glob(f"*.{name.lower()}") if path.stat().st_size])[0]


def test_a_file_is_read_and_results_are_saved(visitor, tmp_path):
    table = tmp_path / "tickets.csv"
    rows = [
        ["7", "=1+1", 'The "soup", again,\nwas cold.'],
        ["8", "@home", "The train stopped at every village."],
        ["9", "", ""],
        ["10", "-2", "=cmd|' /C calc'!A0 was on the menu"],
    ]
    with table.open("w", newline="", encoding="utf-8-sig") as stream:
        csv.writer(stream).writerows([["id", "note", "text"], *rows])
    visitor.choose("mode", "many")
    visitor.js("document.getElementById('file').classList.remove('unseen')")
    visitor.browser.find_element("id", "file").send_keys(str(table))
    wait_until(lambda: visitor.texts("#file-count"))
    assert visitor.texts("#file-count") == ["3 texts; 1 empty row is left out"]
    assert visitor.texts("#column option") == []  # a closed list shows none
    assert visitor.js("return document.getElementById('column').selectedOptions[0].textContent") == "text"
    visitor.run()
    assert [row[1] for row in visitor.rows()] == [rows[0][2], rows[1][2], rows[3][2]]

    saved = downloaded(visitor, tmp_path / "saved", "CSV")
    assert saved.name == "tickets-labelled.csv"
    with saved.open(newline="", encoding="utf-8-sig") as stream:
        read = list(csv.DictReader(stream))
    assert list(read[0]) == ["id", "note", "text", "predicted", "probability", "margin", "p:terrible", "p:great"]
    assert [row["note"] for row in read] == ["'=1+1", "'@home", "'-2"]
    assert read[2]["text"] == "'" + rows[3][2]
    assert read[0]["text"] == rows[0][2]
    for row in read:
        assert float(row["p:terrible"]) + float(row["p:great"]) == pytest.approx(1, abs=1e-5)
        assert not any(cell.lstrip()[:1] in ("=", "+", "@", "-") for cell in row.values() if cell)

    plain = json.loads(downloaded(visitor, tmp_path / "saved", "JSON").read_text())
    assert [row["text"] for row in plain["results"]] == [rows[0][2], rows[1][2], rows[3][2]]
    assert plain["results"][0]["columns"] == {"id": "7", "note": "=1+1", "text": rows[0][2]}
    assert plain["results"][0]["label"] == read[0]["predicted"]


def test_a_file_with_semicolons_and_one_that_is_broken(visitor, tmp_path):
    table = tmp_path / "notes.csv"
    table.write_text("nummer;satz\n1;Die Suppe, kalt.\n2;Der Zug, leer.\n", encoding="utf-8")
    visitor.choose("mode", "many")
    visitor.js("document.getElementById('file').classList.remove('unseen')")
    visitor.browser.find_element("id", "file").send_keys(str(table))
    wait_until(lambda: visitor.texts("#file-first li"))
    assert visitor.texts("#file-first li") == ["Die Suppe, kalt.", "Der Zug, leer."]
    visitor.click("#file-away")
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b'a,b\n1,"never closed\n')
    visitor.browser.find_element("id", "file").send_keys(str(broken))
    wait_until(lambda: "ends inside a quoted cell" in "".join(visitor.texts("#text-problem")))
    other = tmp_path / "latin.txt"
    other.write_bytes("Müde.\n".encode("latin-1"))
    visitor.browser.find_element("id", "file").send_keys(str(other))
    wait_until(lambda: "not UTF-8" in "".join(visitor.texts("#text-problem")))
