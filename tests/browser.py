"""A headless Chromium for the tests of pages: one process for all tests, which reaches nothing but this machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.waiting import WAIT_SECONDS

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    # Only this machine has an address, whatever a page or Chromium itself may request.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--window-size=1200,900",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory) -> Iterator[Chrome]:
    """Debian's Chromium and its driver; skips where they are not installed."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.timeouts = {"script": 1000 * WAIT_SECONDS, "pageLoad": 1000 * WAIT_SECONDS}
    with pytest.MonkeyPatch.context() as patch:
        # The driver is the installed one: selenium looks for none and reports nothing.
        patch.setenv("SE_OFFLINE", "true")
        patch.setenv("SE_AVOID_STATS", "true")
        # The one in small letters counts first.
        for name in ("no_proxy", "NO_PROXY"):
            patch.setenv(name, "localhost,127.0.0.1")
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
        browser.command_executor.client_config.timeout = WAIT_SECONDS
        yield browser
        browser.quit()


@pytest.fixture
def browser(chromium) -> Iterator[Chrome]:
    """The browser on an empty page with empty logs; size and colours that a test sets are reset."""
    chromium.get("about:blank")
    console_errors(chromium)
    requests(chromium)
    yield chromium
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def console_errors(browser: Chrome) -> list[str]:
    """Return the errors and warnings of the console since the last call."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def requests(browser: Chrome) -> list[str]:
    """Return the addresses requested since the last call, those of the pages included."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
