"""Write the pictures of the site in docs/pictures, light, dark and on a phone: ``python docs/make_docs_pictures.py``.

Builds the site, as ``make docs`` does, and serves it on this machine; needs chromium and chromedriver.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DOCS = Path(__file__).parent
# Name, width, height, light or dark.
PICTURES = (("home-light", 1280, 900, "light"), ("home-dark", 1280, 900, "dark"), ("home-phone", 390, 844, "light"))


def build(folder: Path) -> Path:
    """Return the folder with the site."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder / "site")]
    subprocess.run(command, cwd=DOCS.parent, env=environment, check=True)
    return folder / "site"


class Quiet(SimpleHTTPRequestHandler):
    """Serve files without a line for each."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Give the address of the site."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def take_all(address: str, folder: Path, pages: tuple[tuple[str, str, int, int, str], ...], target: Path) -> None:
    """Take a picture of each page: its name, file, width, height and colours."""
    os.environ["SE_OFFLINE"], os.environ["SE_AVOID_STATS"] = "true", "true"
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    )
    try:
        for name, file, width, height, scheme in pages:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            colours = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": colours})
            # Forget the colours of the visit before.
            browser.get("about:blank")
            origin = {"origin": address, "storageTypes": "local_storage"}
            browser.execute_cdp_cmd("Storage.clearDataForOrigin", origin)
            browser.get(f"{address}/{file}")
            picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
            (target / f"{name}.png").write_bytes(base64.b64decode(picture["data"]))
    finally:
        browser.quit()


def main() -> None:
    """Build the site and take the pictures of its home."""
    (DOCS / "pictures").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pages = tuple((name, "index.html", width, height, scheme) for name, width, height, scheme in PICTURES)
        with served(build(folder)) as address:
            take_all(address, folder / "browser", pages, DOCS / "pictures")


if __name__ == "__main__":
    main()
