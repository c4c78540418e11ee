"""The browser of the tests itself: it opens files, sees errors and requests, and reaches nothing outside."""

import pytest

from tests.browser import console_errors, requests
from tests.waiting import wait_until

pytestmark = pytest.mark.browser


def logged(read, browser, count):
    """The first entries of a log, which the browser may write after the page is loaded."""
    entries = []
    wait_until(lambda: entries.extend(read(browser)) or len(entries) >= count)
    return entries


def test_a_file_opens_with_its_errors_and_requests_seen(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<title>here</title><script>throw Error('planted')</script>", encoding="utf-8")
    browser.get(page.as_uri())
    assert browser.title == "here"
    assert logged(requests, browser, 1) == [page.as_uri()]
    assert any("planted" in line for line in logged(console_errors, browser, 1))
    assert console_errors(browser) == []


def test_nothing_outside_is_reachable(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<img src='http://zicl.invalid/a.png' onerror='document.title=\"closed\"'>", encoding="utf-8")
    browser.get(page.as_uri())
    assert logged(requests, browser, 2) == [page.as_uri(), "http://zicl.invalid/a.png"]
    wait_until(lambda: browser.title == "closed")
