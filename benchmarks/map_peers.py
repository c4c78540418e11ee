"""The same vectors drawn by zicl, BERTopic and datamapplot: numbers, and the pictures side by side.

    python benchmarks/map_peers.py --data DATA             # build/map_peers: the numbers and a picture of each

DATA/AGNews/test.jsonl has news items with their topic. They are labelled and encoded by zicl's default classifier, and
everyone gets its vectors and its labels. The others run in an environment of their own (build/peers/maps). Needs
chromium and chromedriver for the pictures; no text is in them.

- trustworthiness: whether neighbours in the picture are neighbours among the vectors (scikit-learn's, 10 neighbours);
- same topic: how many of a text's 10 nearest points have its gold topic;
- outside: addresses that the page loads scripts and styles from. A page with none works without a network.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from peers import PACKAGES, environment

HERE = Path(__file__).resolve().parent
LABELS = ["world", "sports", "business", "technology"]
NEIGHBOURS = 10
PACKAGES["maps"] = ("bertopic==0.17.4", "datamapplot==0.7.3")
_OUTSIDE = re.compile(r"<(?:script|link)[^>]*(?:src|href)=[\"'](https?://[^\"']+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the tasks: DATA/TASK/test.jsonl")
    parser.add_argument("--out", type=Path, default=HERE.parent / "build/map_peers")
    parser.add_argument("--build", type=Path, default=HERE.parent / "build/peers", help="folder of the environments")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = draw(options.data / "AGNews/test.jsonl", environment("maps", options.build), options.out)
    (options.out / "map_peers.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


def draw(file: Path, python: Path, out: Path) -> dict[str, Any]:
    """Draw everyone's picture, and return the numbers."""
    import zicl
    from zicl.retrieve.encoder import load_encoder

    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    texts, gold = [row["text"] for row in rows], [row["label"] for row in rows]
    vectors = load_encoder().encode(texts)
    shown = zicl.ZICLClassifier(labels=LABELS).fit(texts).map(texts)
    pages = {"zicl": shown.save(out / "zicl.html")}
    with tempfile.TemporaryDirectory() as scratch:
        np.savez(Path(scratch) / "request.npz", vectors=vectors, labels=np.array([row.label for row in shown.rows]))
        subprocess.run([python, "-P", HERE / "peers/maps.py", scratch, out], check=True, cwd=scratch)
        points = {"zicl": shown.points, "UMAP": np.load(Path(scratch) / "points.npy")}
    pages |= {name: out / f"{name}.html" for name in ("bertopic", "datamapplot")}
    take_pictures(pages, out)
    return {
        "texts": len(texts),
        "layouts": {name: judge(vectors, each, gold) for name, each in points.items()},
        "pages": {
            name: {
                "megabytes": round(page.stat().st_size / 1e6, 1),
                "outside": len(set(_OUTSIDE.findall(page.read_text("utf-8")))),
            }
            for name, page in pages.items()
        },
    }


def judge(vectors: NDArray[np.float32], points: NDArray[np.float32], gold: list[str]) -> dict[str, float]:
    """Compare a picture with the vectors, and with the topics that people gave the texts."""
    from sklearn.manifold import trustworthiness
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(points).kneighbors(return_distance=False)
    topics = np.array(gold)
    kept = trustworthiness(vectors, points, n_neighbors=NEIGHBOURS, metric="cosine")
    return {
        "trustworthiness": round(float(kept), 3),
        "same_topic": round(float((topics[near] == topics[:, None]).mean()), 3),
    }


def take_pictures(pages: dict[str, Path], out: Path) -> None:
    """Take a picture of each page in headless Chromium."""
    sys.path.insert(0, str(HERE.parent / "docs"))
    from make_page_pictures import chromium, wait

    with tempfile.TemporaryDirectory() as temporary, chromium(Path(temporary)) as browser:
        browser.set_window_size(1240, 860)
        for name, page in pages.items():
            browser.get(page.as_uri())
            wait(lambda: browser.execute_script("return document.readyState") == "complete")
            browser.save_screenshot(str(out / f"{name}.png"))


if __name__ == "__main__":
    main()
