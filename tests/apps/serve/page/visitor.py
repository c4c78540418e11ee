"""What a visitor of the page does and sees, by the names things have on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.keys import Keys

from tests.apps.serve.page.server import until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement


class Visitor:
    """One visitor with one browser."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser, self.address = browser, address

    def open(self, fragment: str = "", *, ready: bool = True) -> Visitor:
        """Open the page anew, and wait until it knows its server."""
        self.browser.get("about:blank")
        self.browser.get(self.address + fragment)
        if ready:
            until(lambda: self.js("return document.querySelectorAll('#facts span').length"))
        return self

    def js(self, code: str, *given: Any) -> Any:
        """Run a line of JavaScript."""
        return self.browser.execute_script(code, *given)

    def all(self, selector: str) -> list[WebElement]:
        """What can be seen of a kind, in one question: a table may be drawn again between two."""
        return self.js(
            "return [...document.querySelectorAll(arguments[0])].filter(e => e.getClientRects().length)", selector
        )

    def one(self, selector: str) -> WebElement:
        """The only one that can be seen."""
        found = self.all(selector)
        assert len(found) == 1, f"{len(found)} of {selector}"
        return found[0]

    def texts(self, selector: str) -> list[str]:
        """The words of all that can be seen of a kind."""
        return self.js(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter(e => e.getClientRects().length).map(e => e.textContent)",
            selector,
        )

    def click(self, selector: str) -> None:
        """Click on the only one."""
        element = self.one(selector)
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def click_first(self, selector: str) -> None:
        """Click on the first that can be seen; one that is just being drawn again is waited for."""

        def clicked() -> bool:
            try:
                self.all(selector)[0].click()
            except (IndexError, StaleElementReferenceException):
                return False
            return True

        until(clicked)

    def choose(self, name: str, value: str) -> None:
        """Choose one of several, by a click on its words."""
        self.js("document.querySelector(`input[name=${arguments[0]}][value='${arguments[1]}']`).click()", name, value)

    def fill(self, selector: str, words: str) -> None:
        """Write words where others were."""
        field = self.one(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(Keys.DELETE)
        field.send_keys(words)

    def paste(self, selector: str, words: str) -> None:
        """Put words in at once, line breaks included."""
        self.js(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
            self.one(selector),
            words,
        )

    def name_labels(self, *names: str) -> None:
        """Take the labels away and name others, by keyboard."""
        while found := self.all("#labels .label > .icon"):
            found[0].click()
        self.click("#add-label")
        for number, name in enumerate(names):
            field = self.browser.switch_to.active_element
            field.send_keys(name)
            if number < len(names) - 1:
                field.send_keys(Keys.ENTER)

    def run(self, seconds: float = 20) -> None:
        """Press the button and wait for all answers."""
        self.click("#run")
        self.wait(seconds)

    def wait(self, seconds: float = 20) -> None:
        """Wait until nothing is under way."""
        until(
            lambda: self.js("return document.getElementById('run').getAttribute('aria-disabled') !== 'true'"), seconds
        )

    def classify(self, text: str, seconds: float = 20) -> str:
        """The label of one text."""
        self.choose("mode", "one")
        self.paste("#text", text)
        self.run(seconds)
        return self.texts("#single .winner")[0]

    def rows(self) -> list[list[str]]:
        """The cells of the table of a batch: number, text, label, probability, margin."""
        return self.js(
            "return [...document.querySelectorAll('#batch tbody tr.opens')]"
            ".map(r => [...r.cells].slice(0, 5).map(c => c.textContent))"
        )
