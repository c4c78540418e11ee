"""The page in Chromium: points and table show the same, filters and keys work, and nothing is fetched."""

import csv
import io

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.apps.distill.conftest import SENTENCES
from tests.browser import console_errors, requests
from tests.conftest import BagEncoder
from tests.waiting import wait_until
from zicl.apps.map.run import LabelledText, make_map

pytestmark = pytest.mark.browser
LABELS = ["film", "food", "=train"]


@pytest.fixture
def page(browser, tmp_path):
    rows = [LabelledText(str(n), text, LABELS[n % 3], n / 40, 0.5, ("a reason",)) for n, text in enumerate(SENTENCES)]
    path = make_map(rows, BagEncoder().encode, layout="pca").save(tmp_path / "map.html")
    browser.get(path.as_uri())
    wait_until(lambda: browser.execute_script("return document.querySelectorAll('#rows tr').length") > 0)
    browser.address = path.as_uri()
    return browser


def drawn(page):
    """How many points the picture has."""
    sizes = page.execute_script("return document.getElementById('plot').data.map((trace) => trace.x.length)")
    # The last marks the chosen point.
    return sum(sizes[:-1])


def test_the_picture_and_the_table_show_the_same(page):
    assert drawn(page) == len(SENTENCES)
    assert f"All {len(SENTENCES)} texts" in page.find_element(By.ID, "count").text
    assert requests(page) == [page.address]
    page.find_elements(By.CSS_SELECTOR, "#labels input")[0].click()
    wait_until(lambda: drawn(page) == len(SENTENCES) - len(SENTENCES[::3]))
    page.find_element(By.ID, "only-unsure").click()
    wait_until(lambda: drawn(page) < 4)
    assert f"{drawn(page)} of {len(SENTENCES)} texts" in page.find_element(By.ID, "count").text
    # A machine without a graphics card says so.
    assert not [line for line in console_errors(page) if "GPU" not in line and "WebGL" not in line]


def test_the_picture_follows_the_mouse(page):
    ranges = "const { xaxis, yaxis } = document.getElementById('plot')._fullLayout; return [xaxis.range, yaxis.range]"
    before = page.execute_script(ranges)
    plot = page.find_element(By.ID, "plot")
    ActionChains(page, duration=50).move_to_element(plot).click_and_hold().move_by_offset(80, 40).release().perform()
    wait_until(lambda: page.execute_script(ranges) != before)
    (left, right), (low, high) = page.execute_script(ranges)
    # To the right and down: what was left and above comes into sight, at the same scale.
    share = (before[0][1] - before[0][0]) * 80 / plot.size["width"]
    assert (left, right) == pytest.approx((before[0][0] - share, before[0][1] - share), rel=1e-2)
    assert low > before[1][0]
    assert high - low == pytest.approx(before[1][1] - before[1][0])
    layers = "return [...document.querySelectorAll('.gl-container, .infolayer')].map((each) => each.style.transform)"
    assert set(page.execute_script(layers)) == {""}


def test_a_row_is_chosen_from_the_keyboard(page):
    button = page.find_element(By.CSS_SELECTOR, "#rows button")
    button.send_keys(Keys.ENTER)
    wait_until(lambda: "a reason" in page.find_element(By.ID, "chosen").text)
    assert SENTENCES[0] in page.find_element(By.ID, "chosen").text
    assert page.find_element(By.CSS_SELECTOR, "#rows tr").get_attribute("aria-selected") == "true"


def test_filtered_rows_are_saved_for_review(page):
    page.execute_script("window.blobs = []; URL.createObjectURL = (blob) => { blobs.push(blob); return '#'; }")
    page.find_element(By.ID, "search").send_keys("soup")
    wait_until(lambda: drawn(page) == sum("soup" in text for text in SENTENCES))
    page.find_element(By.ID, "export").click()
    text = page.execute_async_script("blobs[0].text().then(arguments[0])")
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [row["text"] for row in rows] == [text for text in SENTENCES if "soup" in text]
    # No cell is run as a formula by a spreadsheet.
    assert all(not row["predicted"].startswith("=") for row in rows)
