"""Write the picture of a map: python docs/make_map_picture.py --data DATA.

DATA/eval/AGNews/test.jsonl has 800 news items; none of their text is in the picture. Needs chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from make_page_pictures import chromium, wait
from selenium.webdriver.common.by import By

DOCS = Path(__file__).parent
LABELS = ["world", "sports", "business", "technology"]


def main() -> None:
    """Label, draw, and take the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    lines = (parser.parse_args().data / "eval/AGNews/test.jsonl").read_text(encoding="utf-8").splitlines()

    import zicl

    texts = [json.loads(line)["text"] for line in lines]
    with tempfile.TemporaryDirectory() as temporary, chromium(Path(temporary)) as browser:
        page = zicl.ZICLClassifier(labels=LABELS).fit(texts).map(texts).save(Path(temporary) / "map.html")
        browser.set_window_size(1240, 860)
        browser.get(page.as_uri())
        wait(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#rows tr")) > 1)
        browser.find_element(By.TAG_NAME, "main").screenshot(str(DOCS / "map.png"))


if __name__ == "__main__":
    main()
