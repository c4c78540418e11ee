"""Write the pictures of the page, from ``zicl serve`` with nothing else: python docs/make_page_pictures.py.

Needs chromium and chromedriver, and shows only the page's own example, whose texts were written for it.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

DOCS = Path(__file__).parent
TEXT = "We reached the foyer late and hungry, and the soup there was better than the whole second act."
# Name, what is shown, width, height, pixels per point, light or dark.
PICTURES = (
    ("page-light", "one", 1360, 1330, 1, "light"),
    ("page-dark", "table", 1360, 1000, 1, "dark"),
    ("page-map", "map", 1360, 1000, 1, "light"),
    ("page-phone", "one", 390, 1080, 1.5, "light"),
)


def wait(condition: Callable[[], object], seconds: float = 300) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not happen within {seconds:g} seconds")
        time.sleep(0.1)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Give the address of a server without labels and without a corpus."""
    command = [sys.executable, "-m", "zicl", "serve", "--port", "0"]
    log = folder / "log.txt"
    with log.open("wb") as stream:
        server = subprocess.Popen(command, stderr=stream)
    try:
        wait(lambda: "ready" in log.read_text())
        yield re.findall(r"http://\S+/", log.read_text())[0]
    finally:
        server.terminate()
        server.wait()


@contextmanager
def chromium(folder: Path) -> Iterator[Chrome]:
    """Give a browser without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder / 'browser'}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        yield browser
    finally:
        browser.quit()


def take(browser: Chrome, address: str, name: str, shown: str, size: tuple[int, int, float], scheme: str) -> None:
    """Take one picture: the page after it has learned from its example, labelled it, and answered."""
    width, height, scale = size
    run = browser.execute_script
    screen = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    colours = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": colours})
    browser.get("about:blank")
    browser.get(address)
    wait(lambda: run("return document.querySelectorAll('#facts span').length"))
    run("document.getElementById('example-too').click()")
    wait(lambda: "classified" in (run("return document.querySelector('#batch h2')?.textContent") or ""))
    if shown == "map":
        run("document.querySelectorAll('.tab')[1].click()")
        wait(lambda: run("return document.querySelectorAll('.point').length"))
        run(
            "(document.querySelector('.point.unsure') ?? document.querySelector('.point'))"
            ".dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))"
        )
    if shown == "one":
        run("document.querySelector('input[name=mode][value=one]').click()")
        run("document.getElementById('text').value = arguments[0]", TEXT)
        run("document.getElementById('run').click()")
        wait(lambda: run("return document.querySelectorAll('#single .way .says, #single .expert').length") == 5)
    run("document.activeElement.blur()")
    time.sleep(1.5)  # the bars grow, and a phone scrolls to the results
    top = "document.getElementById('results').getBoundingClientRect().top + scrollY - 12" if width < 600 else "0"
    run(f"scrollTo(0, {top})")
    time.sleep(0.3)
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    (DOCS / f"{name}.png").write_bytes(base64.b64decode(picture))


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with served(folder) as address, chromium(folder) as browser:
            for name, shown, width, height, scale, scheme in PICTURES:
                take(browser, address, name, shown, (width, height, scale), scheme)


if __name__ == "__main__":
    main()
