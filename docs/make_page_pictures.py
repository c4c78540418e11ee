"""Write the pictures of the page, from ``zicl serve`` with the default models: python docs/make_page_pictures.py.

Needs chromium and chromedriver, and shows only text written for this project (docs/page_corpus).
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
TEXT = "The choir was so good that the rain outside simply stopped mattering."
# Name, width, height, pixels per point, light or dark.
PICTURES = (
    ("page-light", 1360, 1180, 1, "light"),
    ("page-dark", 1360, 1180, 1, "dark"),
    ("page-phone", 390, 1080, 1.5, "light"),
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
    """Give the address of a server on the corpus of the pictures."""
    zicl = [sys.executable, "-m", "zicl"]
    domains = [f"--domain={path.stem}={path}" for path in sorted((DOCS / "page_corpus").glob("*.txt"))]
    subprocess.run([*zicl, "corpus", "build", "-o", str(folder / "notes.zicl"), *domains], check=True)
    command = [*zicl, "serve", str(folder / "notes.zicl"), "--labels", "terrible,great", "--port", "0"]
    # The method that has most to show.
    command += ["--method", "z-icl"]
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


def take(browser: Chrome, address: str, name: str, width: int, height: int, scale: float, scheme: str) -> None:
    """Take one picture: the page after it has answered."""
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    colours = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": colours})
    browser.get("about:blank")
    browser.get(address)
    wait(lambda: browser.execute_script("return document.querySelectorAll('#facts span').length"))
    browser.execute_script("document.getElementById('text').value = arguments[0]", TEXT)
    browser.execute_script("document.getElementById('run').click()")
    done = (
        "return document.querySelectorAll('.way .says').length === 3 && document.querySelectorAll('.demo').length > 0"
    )
    wait(lambda: browser.execute_script(done))
    browser.execute_script("document.activeElement.blur()")
    time.sleep(1.5)  # the bars grow, and a phone scrolls to the results
    top = "document.getElementById('results').getBoundingClientRect().top + scrollY - 12" if width < 600 else "0"
    browser.execute_script(f"scrollTo(0, {top})")
    time.sleep(0.3)
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    (DOCS / f"{name}.png").write_bytes(base64.b64decode(picture))


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with served(folder) as address, chromium(folder) as browser:
            for picture in PICTURES:
                take(browser, address, *picture)


if __name__ == "__main__":
    main()
