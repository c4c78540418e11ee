"""What a visitor of the page does and sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.keys import Keys

from tests.waiting import wait_until

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
            wait_until(lambda: self.js("return document.querySelectorAll('#facts span').length"))
        return self

    def js(self, code: str, *given: Any) -> Any:
        """Run a line of JavaScript."""
        return self.browser.execute_script(code, *given)

    def all(self, selector: str) -> list[WebElement]:
        """Return all visible elements, in one call: a table may be redrawn between two."""
        return self.js(
            "return [...document.querySelectorAll(arguments[0])].filter(e => e.getClientRects().length)", selector
        )

    def one(self, selector: str) -> WebElement:
        """Return the only visible element."""
        found = self.all(selector)
        assert len(found) == 1, f"{len(found)} of {selector}"
        return found[0]

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all visible elements."""
        return self.js(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter(e => e.getClientRects().length).map(e => e.textContent)",
            selector,
        )

    def click(self, selector: str) -> None:
        """Click on the only visible element."""
        element = self.one(selector)
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def click_first(self, selector: str) -> None:
        """Click on the first visible element; wait for one that is being redrawn."""

        def clicked() -> bool:
            try:
                self.all(selector)[0].click()
            except (IndexError, StaleElementReferenceException):
                return False
            return True

        wait_until(clicked)

    def choose(self, name: str, value: str) -> None:
        """Choose one of several radio buttons."""
        self.js("document.querySelector(`input[name=${arguments[0]}][value='${arguments[1]}']`).click()", name, value)

    def fill(self, selector: str, words: str) -> None:
        """Replace the text of a field, by keyboard."""
        field = self.one(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(Keys.DELETE)
        field.send_keys(words)

    def paste(self, selector: str, words: str) -> None:
        """Put a text into a field at once, line breaks included."""
        self.js(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
            self.one(selector),
            words,
        )

    def name_labels(self, *names: str) -> None:
        """Replace the labels, by keyboard."""
        while found := self.all("#labels .label > .icon"):
            found[0].click()
        self.click("#add-label")
        for number, name in enumerate(names):
            field = self.browser.switch_to.active_element
            field.send_keys(name)
            if number < len(names) - 1:
                field.send_keys(Keys.ENTER)

    def run(self) -> None:
        """Press the button and wait for all answers."""
        self.click("#run")
        self.wait()

    def wait(self) -> None:
        """Wait until nothing is under way."""
        wait_until(lambda: self.js("return document.getElementById('run').getAttribute('aria-disabled') !== 'true'"))

    def classify(self, text: str) -> str:
        """Return the label of one text."""
        self.choose("mode", "one")
        self.paste("#text", text)
        self.run()
        return self.texts("#single .winner")[0]

    def rows(self) -> list[list[str]]:
        """Return the cells of the table of results: number, text, label, probability, margin."""
        return self.js(
            "return [...document.querySelectorAll('#batch tbody tr.opens')]"
            ".map(r => [...r.cells].slice(0, 5).map(c => c.textContent))"
        )
