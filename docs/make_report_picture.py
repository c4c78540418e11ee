"""Write docs/report.png, a prediction on the report's page: ``python docs/make_report_picture.py``.

Runs a small evaluation with the default models on text written for this project, docs/page_corpus and
docs/report_examples; needs chromium and chromedriver.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
TASK = """[{name}]
test = "{file}"
template = "review"
covered = true
labels = [
  {{ name = "terrible", synonyms = ["awful"] }},
  {{ name = "great", synonyms = ["excellent"] }},
]
"""
METHODS = "majority,cosine-words,no-demos,random-inputs,naive,z-icl"
OPTIONS = ("--methods", METHODS, "--inference", "channel,direct", "--seeds", "13,21", "--k", 8)
WIDTH, HEIGHT = 1280, 1080


def zicl(*arguments: object) -> None:
    """Run the program as a user does."""
    subprocess.run([sys.executable, "-m", "zicl", *map(str, arguments)], check=True)


def write_report(folder: Path) -> Path:
    """Build the corpus, run the evaluation and write the page in a folder."""
    corpus, tasks, page = folder / "outings.zicl", folder / "tasks.toml", folder / "report.html"
    files = sorted((DOCS / "report_examples").glob("*.csv"))
    tables = [TASK.format(name=file.stem.capitalize(), file=file) for file in files]
    tasks.write_text("\n".join(tables), encoding="utf-8")
    domains = [f"--domain={path.stem}={path}" for path in sorted((DOCS / "page_corpus").glob("*.txt"))]
    zicl("corpus", "build", "-o", corpus, *domains)
    zicl("evaluate", "--task-file", tasks, "--corpus", corpus, *OPTIONS, "-o", folder / "results")
    zicl("report", folder / "results", "--html", page, "--task-file", tasks, "--corpus", corpus)
    return page


def take(page: Path, folder: Path) -> None:
    """Take the picture, with a browser that downloads nothing."""
    os.environ["SE_OFFLINE"], os.environ["SE_AVOID_STATS"] = "true", "true"
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.25, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(f"{page.as_uri()}#predictions")
        script = 'const choice = document.querySelector("[name=title]"); choice.value = "Z-ICL"; '
        browser.execute_script(script + 'choice.dispatchEvent(new Event("change", { bubbles: true }))')
        picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        (DOCS / "report.png").write_bytes(base64.b64decode(picture["data"]))
    finally:
        browser.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        take(write_report(Path(folder)), Path(folder) / "browser")
