"""The page end to end: ``zicl serve`` as a user starts it, with the real default models, in headless Chromium."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("selenium")

from tests.apps.serve.page.conftest import HOSTILE
from tests.apps.serve.page.visitor import Visitor
from tests.browser import console_errors
from tests.waiting import WAIT_SECONDS, wait_until

pytestmark = [pytest.mark.real, pytest.mark.browser]

# Raw text written for this project, the same as on the pictures of the page.
TEXTS = Path(__file__).parents[4] / "docs" / "page_corpus"
GOOD = "The choir was so good that the rain outside simply stopped mattering."


def build(folder):
    """A corpus of three domains, with a paragraph that is HTML and script."""
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.shards import BuildOptions
    from zicl.corpus.sources import find_sources
    from zicl.retrieve.builder import build_index
    from zicl.retrieve.encoder import load_encoder

    (folder / "hostile.txt").write_text(HOSTILE + "\n", encoding="utf-8")
    paths = {path.stem: [path] for path in sorted(TEXTS.glob("*.txt"))} | {"hostile": [folder / "hostile.txt"]}
    corpus = build_corpus(find_sources([], paths), folder / "raw.zicl", BuildOptions())
    build_index(corpus, load_encoder(offline=True))
    return folder / "raw.zicl"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """One server for all tests here; at the end it stops as it should."""
    corpus = build(tmp_path_factory.mktemp("served"))
    given = [str(corpus), "--labels", "terrible,great", "--method", "z-icl", "--k", "8"]
    with served(corpus.parent / "log.txt", *given) as found:
        yield found


@contextmanager
def served(log, *given):
    command = [sys.executable, "-m", "zicl", "serve", *given, "--port", "0", "--offline"]
    with log.open("wb") as stream:
        server = subprocess.Popen(command, stderr=stream, env={**os.environ})
    try:
        found = wait_until(lambda: re.search(r"http://127\.0\.0\.1:\d+/", log.read_text()) or server.poll())
        assert isinstance(found, re.Match), log.read_text()
        yield found[0]
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(WAIT_SECONDS) == 0, log.read_text()


@pytest.fixture
def visitor(browser, address):
    # The page is there before the models are, and waits for them.
    visitor = Visitor(browser, address).open(ready=False)
    wait_until(lambda: visitor.texts("#facts span"))
    console_errors(browser)
    return visitor


def test_one_text_and_what_the_demonstrations_change(visitor):
    assert visitor.classify(GOOD) == "great"
    assert visitor.texts(".way .says") == ["terrible", "great", "great"]
    assert re.fullmatch(r"Alone the model says terrible.*it says great, .* ahead\.", visitor.texts(".change")[0])
    assert set(visitor.texts(".demo .tag")) <= {"stage", "table", "road", "hostile"}
    assert set(visitor.texts(".demo .given .chip")) <= {"good", "bad"}
    assert visitor.texts(".prompt .p-given")[0].endswith("Sentiment: great")
    assert visitor.texts(".prompt .p-scored") == [f"\nReview: {GOOD}"]
    assert console_errors(visitor.browser) == []


def test_what_the_encoder_says_without_a_prompt(visitor):
    visitor.choose("method", "z-icl+")
    assert visitor.classify(GOOD) == "great"
    wait_until(lambda: visitor.texts(".expert h3") == ["The encoder"])
    assert len(visitor.texts(".expert .bar")) == 2
    assert visitor.texts(".prompt") == []
    assert visitor.texts(".demo") == []
    assert console_errors(visitor.browser) == []


def test_the_example_is_learned_from_and_labelled_with_no_corpus(browser, tmp_path):
    with served(tmp_path / "log.txt") as address:
        visitor = Visitor(browser, address).open(ready=False)
        wait_until(lambda: visitor.texts("#facts span"))
        console_errors(browser)
        visitor.click("#example-too")
        visitor.wait()
        assert visitor.texts(".pile-words")[0].startswith("Learned from these 60 texts: ")
        said = [row[2] for row in visitor.rows()]
        # The first twenty are about the play, then twenty about food; a few are about both.
        assert said[:20].count("stage") >= 17
        assert said[20:40].count("table") >= 17
        visitor.choose("mode", "one")
        assert visitor.classify("The cook burnt the pie and gave us bread instead.") == "table"
        wait_until(lambda: visitor.texts("#single .expert h3") == ["The encoder", "The pile", "Together"])
        assert visitor.texts("#single .near-words dt") == ["stage", "table", "road"]
        assert console_errors(browser) == []


def test_a_csv_file(visitor, tmp_path):
    # More than the server computes together, so that results come in several pieces.
    good, bad = "A tender, funny film, and the whole row cried and smiled.", "A cold, greasy soup, and a rude waiter."
    table = tmp_path / "notes.csv"
    table.write_text("number,what was said\n" + "".join(f'{n},"{(good, bad)[n % 2]} {n}"\n' for n in range(36)))
    visitor.choose("mode", "many")
    visitor.js("document.getElementById('file').classList.remove('unseen')")
    visitor.browser.find_element("id", "file").send_keys(str(table))
    wait_until(lambda: visitor.texts("#file-count") == ["36 texts"])
    visitor.choose("method", "no-demos")
    visitor.run()
    assert len(visitor.rows()) == 36
    assert [row[1] for row in visitor.rows()] == [f"{(good, bad)[n % 2]} {n}" for n in range(36)]
    visitor.click_first(".why")
    wait_until(lambda: visitor.texts("#why .prompt"))
    assert visitor.texts("#why .winner") == [visitor.rows()[0][2]]


def test_other_labels_with_suggested_synonyms(visitor):
    visitor.name_labels("music", "food", "travel")
    visitor.click("#suggest")
    wait_until(lambda: len(visitor.texts("#labels .chip:not(.offer)")) >= 2)
    for row in visitor.all("#labels .label"):
        if not row.find_elements("css selector", ".chip:not(.offer)"):
            row.find_element("css selector", ".chips input").send_keys("journey,")
    given = {word.removesuffix("×") for word in visitor.texts("#labels .chip:not(.offer)")}
    assert len(given) == 3
    visitor.js("document.getElementById('template').value = 'text'")
    assert visitor.classify("We ate warm bread with butter and a bowl of soup.") in ("music", "food", "travel")
    assert set(visitor.texts(".demo .given .chip")) <= given
    assert len(visitor.texts("#single .verdict .bar")) == 3
    assert "Category: " in visitor.texts(".prompt")[0]


def test_a_hostile_sentence_is_shown_as_text(visitor):
    visitor.classify("The usher hung a picture in the foyer of the old theatre, and printed it on every ticket.")
    shown = " ".join(visitor.texts(".demo p"))
    assert "<img src=x onerror=window.hacked=1>" in shown
    card = next(card for card in visitor.all(".demo") if "<img" in card.text)
    card.find_element("css selector", ".given button").click()
    wait_until(lambda: visitor.texts(".around mark"))
    assert "<script>window.hacked=1</script>" in visitor.texts(".around")[0]
    assert visitor.js("return document.querySelectorAll('main img, main script, .around b').length") == 0
    assert visitor.js("return window.hacked === undefined")
    assert console_errors(visitor.browser) == []


def test_an_error_appears_where_it_belongs(visitor):
    visitor.name_labels("zyxwq", "qwxyz")
    visitor.paste("#text", GOOD)
    visitor.run()
    [told] = visitor.texts("#labels-problem")
    assert "no synonym good enough was found for: zyxwq, qwxyz" in told.lower()
    assert visitor.texts(".way .says")[:2] != []  # the methods that need no synonyms answer
    assert "marked in the form" in visitor.texts("#single .verdict")[0]
