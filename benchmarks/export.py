"""An exported classifier beside the one it was made from, and beside plain sentence-transformers, in one run.

    python benchmarks/export.py            # a table
    python benchmarks/export.py --json > benchmarks/results/export.json

A classifier is fitted on IMDB reviews with the default method, saved, and exported. Then each of these labels the same
Rotten Tomatoes sentences in a process of its own, in rounds: the exported folder's script, the saved classifier, and
all-MiniLM-L6-v2 in sentence-transformers, which only embeds them: its texts a second are the limit of a classifier on
top of it (SetFit, for example). Import: of what is needed. Start: from the files to the first answer. Memory: the peak
of the process. The size is of the packages that are imported, and of the files that the classifier needs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import verdict, watch

_MEASURE = """
import json, sys, time
from pathlib import Path
before = time.perf_counter()
{imports}
imported = time.perf_counter()
{load}
first = label(["The ending felt rushed and cheap."])
started = time.perf_counter()
texts = json.loads(Path(sys.argv[2]).read_text())
begun = time.perf_counter()
rows = label(texts)
seconds = time.perf_counter() - begun
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
files = [Path(each.__file__).resolve() for each in sys.modules.values() if getattr(each, "__file__", None)]
site = next(Path(each).resolve() for each in sys.path if each.endswith("site-packages"))
names = {{path.relative_to(site).parts[0] for path in files if path.is_relative_to(site)}}
places = [site / name for name in names] + [site / (name + ".libs") for name in names]
size = sum(path.stat().st_size for place in places for path in [place, *place.rglob("*")] if path.is_file())
print(json.dumps({{
    "import_seconds": round(imported - before, 2), "start_seconds": round(started - imported, 2),
    "peak_mb": round(peak / 1024), "texts_per_second": round(len(texts) / seconds, 1), "packages_mb": round(size / 1e6),
}}))
Path(sys.argv[3]).write_text(json.dumps([list(map(float, row)) for row in rows]))
"""
WAYS = {
    "exported": (
        "sys.path.insert(0, sys.argv[1])\nfrom predict import Classifier",
        "label = Classifier(sys.argv[1]).predict_proba",
    ),
    "zicl": (
        "import zicl",
        "loaded = zicl.load(sys.argv[1])\n"
        "def label(texts):\n"
        "    return [list(found.probabilities.values()) for found in loaded.classify(texts)]",
    ),
    "sentence-transformers": (
        "from sentence_transformers import SentenceTransformer",
        "label = SentenceTransformer(sys.argv[1], device='cpu').encode",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pile", type=int, default=500, help="reviews to learn from")
    parser.add_argument("--texts", type=int, default=1000, help="sentences to label")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()

    import zicl
    from zicl._util.catalog import get_asset
    from zicl.apps.demo import reviews

    pile = [text for text, _ in reviews("imdb")][: arguments.pile]
    texts = [text for text, _ in reviews("rotten_tomatoes")][: arguments.texts]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "texts.json").write_text(json.dumps(texts))
        classifier = zicl.ZICLClassifier(labels=["terrible", "great"], method="z-icl+").fit(pile)
        classifier.save(folder / "film.zicl-clf")
        zicl.export(classifier, folder / "film-onnx")
        places = {
            "exported": folder / "film-onnx",
            "zicl": folder / "film.zicl-clf",
            "sentence-transformers": get_asset("all-minilm-l6-v2").folder,
        }
        with watch() as load:
            for _ in range(arguments.rounds):
                for name, (imports, start) in WAYS.items():
                    found[name].append(measure(imports, start, places[name], folder, name))
        answers = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("exported", "zicl")}
        files = {name: sum(path.stat().st_size for path in place.rglob("*")) for name, place in places.items()}
    pairs = zip(answers["exported"], answers["zicl"], strict=True)
    ways = {name: {**best(rounds), "files_mb": round(files[name] / 1e6)} for name, rounds in found.items()}
    result = {
        "texts": len(texts),
        "largest_difference": max(abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True)),
        "ways": ways,
        "to_zicl": round(ways["exported"]["texts_per_second"] / ways["zicl"]["texts_per_second"], 2),
        "others": round(load.others, 2),
    }
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def measure(imports: str, load: str, place: Path, folder: Path, name: str) -> dict[str, Any]:
    """Run one of the ways in a process of its own."""
    code = _MEASURE.format(imports=imports, load=load)
    command = [sys.executable, "-c", code, str(place), str(folder / "texts.json"), str(folder / f"{name}.json")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def best(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The best of some runs: noise only ever makes a run slower."""
    return {key: (max if key == "texts_per_second" else min)(row[key] for row in rounds) for key in rounds[0]}


def table(result: dict[str, Any]) -> str:
    """For people."""
    ways = result["ways"]
    lines = [f"{'':22}" + "".join(f"{name:>24}" for name in ways)]
    for key in next(iter(ways.values())):
        lines.append(f"{key:22}" + "".join(f"{way[key]:>24}" for way in ways.values()))
    lines.append(f"largest difference {result['largest_difference']:.1e}; {verdict(result['others'])}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
