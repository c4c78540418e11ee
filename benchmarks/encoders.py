"""Compare the encoders of the catalog in all that zicl does with one: expert, pile, and retriever of z-icl.

    python benchmarks/encoders.py run --data DATA --corpora CORPORA     # into results/encoders.json, resumable
    python benchmarks/encoders.py pair --data DATA                      # two encoders joined, on all tasks
    python benchmarks/encoders.py table                                 # in Markdown, from what is stored

DATA has a folder per task with test.jsonl, CORPORA files DOMAIN.jsonl.gz. Only tasks that settings are
chosen on are used, except by pair.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from beyond import CHOSEN, CONFIRMED, NINE, TASKS, Task, classifier, draws, interval, read_task, scores_of

RESULTS = Path(__file__).parent / "results" / "encoders.json"
ENCODERS = ("bge-small-en-v1.5", "gte-small", "all-minilm-l6-v2")
# z-icl retrieves for this many rows a task, from this many paragraphs of each of these domains.
ROWS, PARAGRAPHS = 100, 1000
DOMAINS = ("amazon_reviews", "imdb_reviews", "news_bbc", "tweets")


def run(data: Path, corpora: Path) -> None:
    """Measure what is missing and store it, encoder by encoder."""
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    tasks = [read_task(name, data) for name in CHOSEN]
    for name in ENCODERS:
        found = stored.setdefault(name, {})
        if "encoder" not in found:
            found.update(without_language_model(name, tasks))
        if "z-icl" not in found:
            found["z-icl"] = retrieval(name, tasks, corpora)
        RESULTS.write_text(json.dumps(stored) + "\n", encoding="utf-8")


def without_language_model(name: str, tasks: list[Task]) -> dict[str, Any]:
    """Return the accuracy as an expert and with the pile, natural and skewed, and texts a second."""
    from zicl import load_encoder

    loaded = load_encoder(name)
    started = time.perf_counter()
    for task in tasks:
        loaded.encode(task.texts)
    rate = sum(len(task.texts) for task in tasks) / (time.perf_counter() - started)
    found: dict[str, Any] = {"texts_per_second": rate, "encoder": {}, "z-icl+": {}, "one-large": {}}
    for task in tasks:
        for method in ("encoder", "z-icl+"):
            fitted = classifier(task, method, encoder=loaded).fit(task.texts)
            found[method][task.name] = float((scores_of(fitted, task.texts).argmax(axis=1) == task.gold).mean())
        drawn = []
        for rows in draws(task, "one-large"):
            texts = [task.texts[n] for n in rows]
            scores = scores_of(classifier(task, "z-icl+", encoder=loaded).fit(texts), texts)
            drawn.append(float((scores.argmax(axis=1) == task.gold[rows]).mean()))
        found["one-large"][task.name] = float(np.mean(drawn))
    return found


def retrieval(name: str, tasks: list[Task], corpora: Path) -> dict[str, Any]:
    """Return which rows z-icl gets right."""
    from zicl import Index, PromptSettings, build_corpus, build_index, find_sources, load_encoder
    from zicl.corpus.builder import BuildOptions

    sources = find_sources([], {domain: [corpora / f"{domain}.jsonl.gz"] for domain in DOMAINS})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.zicl"
        corpus = build_corpus(sources, path, BuildOptions(max_paragraphs=PARAGRAPHS))
        build_index(corpus, load_encoder(name))
        index, found = Index.open(path), dict[str, Any]()
        for task in tasks:
            chosen = np.sort(np.random.default_rng(0).permutation(len(task.texts))[:ROWS])
            fitted = classifier(task, "z-icl", index=index, prompt=PromptSettings(template=task.template)).fit()
            scores = scores_of(fitted, [task.texts[n] for n in chosen])
            found[task.name] = (scores.argmax(axis=1) == task.gold[chosen]).astype(int).tolist()
    return found


class PairEncoder:
    """Two encoders as one: vectors side by side, so that a cosine is the mean of both."""

    def __init__(self, *names: str) -> None:
        from zicl import load_encoder

        self._both = [load_encoder(name) for name in names]
        self.name, self.identity = "+".join(names), "+".join(each.identity for each in self._both)
        self.dimension = sum(each.dimension for each in self._both)

    def __deepcopy__(self, memo: dict[int, object]) -> PairEncoder:
        return self

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return one unit vector per text."""
        return np.concatenate([each.encode(texts) for each in self._both], axis=1) / np.sqrt(len(self._both))


def pair(data: Path) -> None:
    """Store and print the accuracy of z-icl+ with two encoders, beside the default alone, on all tasks."""
    from zicl import load_encoder

    stored = json.loads(RESULTS.read_text())
    encoders: dict[str, Any] = {"alone": load_encoder(ENCODERS[0]), "pair": PairEncoder(*ENCODERS[:2])}
    stored["pair"] = {}
    for key, encoder in encoders.items():
        for name in TASKS:
            task = read_task(name, data)
            fitted = classifier(task, "z-icl+", encoder=encoder).fit(task.texts)
            right = scores_of(fitted, task.texts).argmax(axis=1) == task.gold
            stored["pair"].setdefault(name, {})[key] = right.astype(int).tolist()
    for title, tasks in (("chosen on", CHOSEN), ("confirming", CONFIRMED), ("nine", NINE)):
        rows = {key: [np.array(stored["pair"][name][key]) for name in tasks] for key in encoders}
        means = ", ".join(f"{key} {100 * np.mean([r.mean() for r in found]):.1f}" for key, found in rows.items())
        gain = interval([two - one for one, two in zip(rows["alone"], rows["pair"], strict=True)])
        print(f"{title}: {means}; difference {gain[0]:+.1f} [{gain[1]:+.1f}, {gain[2]:+.1f}]")
    RESULTS.write_text(json.dumps(stored) + "\n", encoding="utf-8")


def table() -> str:
    """Return the comparison in Markdown: means over the tasks."""
    stored = json.loads(RESULTS.read_text())
    lines = [
        "| | encoder | z-icl+ | one label has 90 % | as z-icl's retriever | against the default | texts a second |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    default = {task: np.array(rows) for task, rows in stored[ENCODERS[0]]["z-icl"].items()}
    for name in ENCODERS:
        found = stored[name]
        cells = [f"{100 * np.mean(list(found[key].values())):.1f}" for key in ("encoder", "z-icl+", "one-large")]
        right = {task: np.array(rows) for task, rows in found["z-icl"].items()}
        cells.append(f"{100 * np.mean([rows.mean() for rows in right.values()]):.1f}")
        mean, low, high = interval([right[task] - default[task] for task in right])
        against = "–" if name == ENCODERS[0] else f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]".replace("-", "−")
        lines.append(f"| {name} | {' | '.join(cells)} | {against} | {found['texts_per_second']:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "pair", "table"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpora", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "table":
        print(table())
    elif arguments.data is None or (arguments.corpora is None and arguments.what == "run"):
        parser.error("--data and --corpora are needed")
    elif arguments.what == "pair":
        pair(arguments.data)
    else:
        run(arguments.data, arguments.corpora)


if __name__ == "__main__":
    main()
