"""How a map of 20,000 texts opens and moves in headless Chromium, by the browser's own trace.

    python benchmarks/map.py               # a table
    python benchmarks/map.py --json > benchmarks/results/map.json

The texts are words put together here, in groups as topics are. Opening: from the request of the file to the first frame
with all points. Panning: the mouse drags the picture for three seconds, sixty steps a second, and the trace's DrawFrame
events are counted. A machine without a graphics card draws with its cores (SwiftShader), as here. Needs chromium and
chromedriver.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from machine import watch

POINTS, LABELS, STEPS = 20_000, 8, 180
_WORDS = ("harbour", "lamp", "letter", "bread", "train", "choir", "garden", "winter", "bridge", "kettle", "window")
# What is traced, and for how many seconds after the browser has started.
_TRACED = 30
_FRAMES = "disabled-by-default-devtools.timeline.frame,devtools.timeline.frame"
_FLAGS = ("--headless", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000", "--hide-scrollbars")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--points", type=int, default=POINTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = write_page(arguments.points, Path(folder) / "map.html")
        with watch() as load:
            result = measure(page)
        result |= {"points": arguments.points, "megabytes": round(page.stat().st_size / 1e6, 1)}
    # The browser is another process, so that its own work is counted among others here.
    result["other_load_and_browser"] = round(load.others, 2)
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def write_page(count: int, path: Path) -> Path:
    """Write the page of a map of points around a middle for each label."""
    from zicl.apps.map.run import LabelledText, TextMap

    generator = np.random.default_rng(0)
    kinds = generator.integers(0, LABELS, count)
    middles = generator.uniform(-0.8, 0.8, (LABELS, 2))
    points = (middles[kinds] + generator.normal(scale=0.12, size=(count, 2))).astype(np.float32)
    words = generator.choice(_WORDS, (count, 25))
    margins = generator.uniform(0, 1, count)
    rows = [
        LabelledText(str(n), " ".join(words[n]), f"topic {kinds[n]}", float(margins[n]), 0.9, ("topic 90%, other 10%",))
        for n in range(count)
    ]
    outlying = (generator.uniform(0, 1, count) < 0.01).tolist()
    return TextMap(rows, points, outlying, "tsne", count, "A map").save(path)


def measure(page: Path) -> dict[str, Any]:
    """Open the page and pan it; return seconds and frames a second."""
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        raise SystemExit("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    trace = page.with_suffix(".trace.json")
    tracing = f"--trace-startup={_FRAMES}", f"--trace-startup-file={trace}", "--trace-startup-format=json"
    for flag in (*_FLAGS, *tracing, f"--trace-startup-duration={_TRACED}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        begun = time.monotonic()
        browser.get(page.as_uri())
        browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        opened = time.monotonic() - begun
        place = browser.find_element(By.ID, "plot").rect
        x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
        mouse = {"button": "left", "buttons": 1, "clickCount": 1}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mousePressed", "x": x, "y": y, **mouse})
        start = time.monotonic()
        for step in range(STEPS):
            at = {"x": x + 150 * np.sin(step / 20), "y": y + 100 * np.sin(step / 31)}
            browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **at, **mouse})
            time.sleep(max(0.0, start + (step + 1) / 60 - time.monotonic()))
        end = time.monotonic()
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseReleased", "x": x, "y": y, **mouse})
        # The trace is written when its time is over.
        while not trace.exists() and time.monotonic() < start + 3 * _TRACED:
            time.sleep(1)
        time.sleep(2)
    finally:
        browser.quit()
    # The trace has the clock of this process, in microseconds.
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    stamps = sorted({each["ts"] / 1e6 for each in events if each.get("name") == "DrawFrame"})
    frames = [stamp for stamp in stamps if start <= stamp <= end]
    return {
        "open_seconds": round(opened, 2),
        "pan_seconds": round(end - start, 2),
        "mouse_moves": STEPS,
        "frames_per_second": round(len(frames) / (end - start), 1),
        "longest_frame_ms": round(max((b - a for a, b in pairwise(frames)), default=0.0) * 1e3),
    }


def table(result: dict[str, Any]) -> str:
    """For people."""
    return "\n".join(f"{key:24}{value!s:>10}" for key, value in result.items())


if __name__ == "__main__":
    main()
