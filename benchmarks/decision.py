"""None of the labels, several of them, and the likeliest few: the tables of docs/results/decision.md.

    python benchmarks/decision.py run --data DATA --corpora CORPORA    # into benchmarks/results/decision, resumable
    python benchmarks/decision.py tables                               # in Markdown, from what is stored
    python benchmarks/decision.py cost --data DATA                     # 200 labels against 5, in turn, in one run

DATA has a folder per task with test.jsonl (id, text, label), CORPORA files DOMAIN.jsonl.gz with one document per line.
The rival everywhere is the cosine of the same encoder to the labels' descriptions, with one threshold for all texts:
the threshold that is best on the very rows that judge it, which no user would know. zicl uses no label at all.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "decision"
# Domains whose texts fit no label of AGNews and CR, and the share they have of the rows.
OUTSIDE, SHARE, OTHER = ("contracts_licences", "speeches_sotu", "acl_abstracts"), 0.3, "other"
PER_DOMAIN, WORDS, DRAWS = 40, 40, 10_000
DOMAINS = {
    "acl_abstracts": "An abstract of a paper on computational linguistics.",
    "amazon_reviews": "A customer's review of a product bought online.",
    "contracts_licences": "A passage of a software licence or a contract.",
    "cs_scitldr_abstracts": "An abstract of a paper on machine learning.",
    "dialogue_chitchat": "Small talk between two people about their everyday lives.",
    "gutenberg": "A passage of a classic novel or play.",
    "hotel_reviews": "A guest's review of a hotel stay.",
    "imdb_reviews": "A viewer's review of a film.",
    "legal_scotus": "A passage of a court opinion.",
    "news_bbc": "A news report.",
    "news_nasdaq": "Financial news about companies and stocks.",
    "news_nyt_editorials": "A newspaper editorial with an opinion on politics.",
    "pubmed_abstracts": "An abstract of a medical study.",
    "reddit_goemotions": "A short comment in an online discussion.",
    "software_docs": "A page of software documentation.",
    "speeches_sotu": "A passage of a president's speech to congress.",
    "tweets": "A tweet.",
    "wikitext2": "A passage of an encyclopedia article.",
    "yelp_reviews": "A customer's review of a restaurant or shop.",
}
# The twentieth label is one that no document has.
EXTRA = ("recipes", "A recipe with ingredients and steps.")


def passages(corpora: Path, domain: str, count: int) -> dict[str, str]:
    """Return passages of a domain by id: some words of documents, or of places in long ones, drawn with a seed."""
    with gzip.open(corpora / f"{domain}.jsonl.gz", "rt", encoding="utf-8") as stream:
        documents = [json.loads(line)["text"].split() for line in stream]
    places = [(n, start) for n, words in enumerate(documents) for start in range(0, max(1, len(words) - 20), 400)]
    drawn = np.random.default_rng(0).permutation(len(places))[:count]
    chosen = [places[int(n)] for n in drawn]
    return {f"{domain}/{n}/{start}": " ".join(documents[n][start : start + WORDS]) for n, start in chosen}


# -- running ---------------------------------------------------------------------------------------------------


def none(name: str, data: Path, corpora: Path) -> dict[str, Any]:
    """Mix a task's rows with texts that fit no label."""
    from beyond import cosine, read_task

    from zicl import ZICLClassifier

    task = read_task(name, data)
    count = round(len(task.texts) * SHARE / (1 - SHARE))
    outside: dict[str, str] = {}
    for number, domain in enumerate(OUTSIDE):
        outside |= passages(corpora, domain, (count + number) // len(OUTSIDE))
    texts = [*task.texts, *outside.values()]
    labels = [*task.labels.names, OTHER]
    gold = [labels[n] for n in task.gold] + [OTHER] * len(outside)
    plain = cosine(task, texts)
    with_none = ZICLClassifier(labels=task.labels, none=OTHER).fit(texts).classify(texts)
    without = ZICLClassifier(labels=task.labels).fit(texts).predict(texts)
    inside = ZICLClassifier(labels=task.labels, none=OTHER).fit(task.texts).predict(task.texts)
    return {
        "ids": [*task.ids, *outside],
        "gold": gold,
        "cosine": {"label": [labels[n] for n in plain.argmax(axis=1)], "highest": plain.max(axis=1).tolist()},
        "zicl": {"label": [p.label for p in with_none], "none": [p.probabilities[OTHER] for p in with_none]},
        "without": list(without),
        "sent_of_fitting_alone": float((inside == OTHER).mean()),
    }


def several(data: Path) -> dict[str, Any]:
    """Join half of the items of AGNews in pairs of different topics, and leave the other half single."""
    from beyond import cosine, read_task

    from zicl import ZICLClassifier

    task = read_task("AGNews", data)
    left = [int(n) for n in np.random.default_rng(0).permutation(len(task.texts))]
    texts, ids, gold = [], [], []
    while left:
        first = left.pop()
        other = next((n for n in left if task.gold[n] != task.gold[first]), None) if len(texts) % 2 else None
        if other is not None:
            left.remove(other)
        rows = [first] if other is None else [first, other]
        texts.append(" ".join(task.texts[n] for n in rows))
        ids.append([task.ids[n] for n in rows])
        gold.append([int(k in task.gold[rows]) for k in range(len(task.labels))])
    found = ZICLClassifier(labels=task.labels, multi=True).fit(texts).classify(texts)
    return {
        "ids": ids,
        "gold": gold,
        "cosine": cosine(task, texts).tolist(),
        "zicl": [list(p.probabilities.values()) for p in found],
    }


def top(corpora: Path) -> dict[str, Any]:
    """Ask which of the domains a passage comes from."""
    from zicl import Label, Labels, Scoring, ZICLClassifier

    described = [*DOMAINS.items(), EXTRA]
    labels = Labels(tuple(Label(name, words=name.replace("_", " "), description=text) for name, text in described))
    texts = {key: text for domain in DOMAINS for key, text in passages(corpora, domain, PER_DOMAIN).items()}
    pile = list(texts.values())
    plain = ZICLClassifier(labels=labels, method="encoder", scoring=Scoring(experts=("cosine",))).fit()
    fitted = ZICLClassifier(labels=labels).fit(pile)
    return {
        "ids": list(texts),
        **{
            name: [[label for label, _ in p.top(3)] for p in classifier.classify(pile)]
            for name, classifier in (("cosine", plain), ("zicl", fitted))
        },
    }


def run(data: Path, corpora: Path) -> None:
    """Compute what is missing."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    wanted: dict[str, Callable[[], dict[str, Any]]] = {
        "none-AGNews": lambda: none("AGNews", data, corpora),
        "none-CR": lambda: none("CR", data, corpora),
        "several-AGNews": lambda: several(data),
        "top-domains": lambda: top(corpora),
    }
    for name, compute in wanted.items():
        path = RESULTS / f"{name}.json"
        if not path.exists():
            path.with_suffix(".partial").write_text(json.dumps(compute()) + "\n", encoding="utf-8")
            path.with_suffix(".partial").replace(path)
            print(name, flush=True)


# -- tables ----------------------------------------------------------------------------------------------------


def difference(count: int, measure: Callable[[np.ndarray], float], draws: int = DRAWS) -> str:
    """Return a difference with its 95 % interval, rows drawn with replacement."""
    generator = np.random.default_rng(0)
    values = [measure(generator.integers(count, size=count)) for _ in range(draws)]
    low, high = 100 * np.percentile(values, [2.5, 97.5])
    return f"{100 * measure(np.arange(count)):+.1f} [{low:+.1f}, {high:+.1f}]".replace("-", "−")


def auroc(positive: np.ndarray, scores: np.ndarray) -> float:
    """Return the probability that a positive row has the higher score; ties count half."""
    from scipy.stats import rankdata

    ranks, count = rankdata(scores), positive.sum()
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count)))


def none_table() -> str:
    """Return AUROC of in against out, and accuracy with and without ``none``."""
    lines = ["| 30 % of the texts fit no label | AUROC | accuracy | accuracy without `none` |", "|---|---:|---:|---:|"]
    for task in ("AGNews", "CR"):
        lines += _none_rows(task, json.loads((RESULTS / f"none-{task}.json").read_text()))
    return "\n".join(lines)


def _none_rows(task: str, stored: dict[str, Any]) -> list[str]:
    gold = np.array(stored["gold"])
    out = gold == OTHER
    closeness, plain = np.array(stored["cosine"]["highest"]), np.array(stored["cosine"]["label"])
    limits = np.quantile(closeness, np.linspace(0, 0.6, 121))
    rival = max((np.where(closeness < limit, OTHER, plain) == gold for limit in limits), key=lambda right: right.mean())
    sure, right = np.array(stored["zicl"]["none"]), np.array(stored["zicl"]["label"]) == gold

    def row(title: str, scores: np.ndarray, given: np.ndarray, without: np.ndarray) -> str:
        cells = [f"{value:.1f}" for value in (100 * auroc(out, scores), 100 * given.mean(), 100 * without.mean())]
        return f"| {task}: {title} | {' | '.join(cells)} |"

    gains = [
        difference(len(gold), lambda rows: auroc(out[rows], sure[rows]) - auroc(out[rows], -closeness[rows]), 2000),
        difference(len(gold), lambda rows: float(right[rows].mean() - rival[rows].mean())),
    ]
    return [
        row("cosine, best threshold", -closeness, rival, plain == gold),
        row("**zicl**", sure, right, np.array(stored["without"]) == gold),
        f"| {task}: zicl minus cosine | {' | '.join(gains)} | |",
    ]


def several_table() -> str:
    """Return F1 and calibration of several labels."""
    from sklearn.metrics import f1_score

    stored = json.loads((RESULTS / "several-AGNews.json").read_text())
    gold, plain, ours = (np.array(stored[name]) for name in ("gold", "cosine", "zicl"))
    limits = np.quantile(plain, np.linspace(0.3, 0.9, 121))
    rival = max((plain >= limit for limit in limits), key=lambda given: f1_score(gold, given, average="micro"))
    given = ours >= 0.5
    lines = ["| 1 or 2 topics a text | micro-F1 | macro-F1 | calibration error |", "|---|---:|---:|---:|"]
    for title, found, error in (
        ("cosine, best threshold", rival, "–"),
        ("**zicl**, `multi`", given, f"{calibration_error(ours, gold):.3f}"),
    ):
        scores = [f"{100 * f1_score(gold, found, average=kind):.1f}" for kind in ("micro", "macro")]
        lines.append(f"| {title} | {' | '.join(scores)} | {error} |")
    gains = [
        difference(
            len(gold),
            lambda rows, kind=kind: float(
                f1_score(gold[rows], given[rows], average=kind) - f1_score(gold[rows], rival[rows], average=kind)
            ),
            1000,
        )
        for kind in ("micro", "macro")
    ]
    return "\n".join([*lines, f"| zicl minus cosine | {' | '.join(gains)} | |"])


def calibration_error(probabilities: np.ndarray, gold: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error, mean over the labels."""
    errors = []
    for said, true in zip(probabilities.T, gold.T, strict=True):
        places = np.clip((said * bins).astype(int), 0, bins - 1)
        filled = [places == n for n in range(bins) if (places == n).any()]
        errors.append(sum(rows.mean() * abs(said[rows].mean() - true[rows].mean()) for rows in filled))
    return float(np.mean(errors))


def top_table() -> str:
    """Return how often the right one of twenty labels is the first, or among the first three."""
    stored = json.loads((RESULTS / "top-domains.json").read_text())
    true = [key.split("/")[0] for key in stored["ids"]]
    hits = {
        name: [np.array([t in row[:n] for t, row in zip(true, stored[name], strict=True)]) for n in (1, 3)]
        for name in ("cosine", "zicl")
    }
    lines = ["| 20 labels | top-1 | top-3 |", "|---|---:|---:|"]
    for title, name in (("cosine", "cosine"), ("**zicl**", "zicl")):
        lines.append(f"| {title} | " + " | ".join(f"{100 * each.mean():.1f}" for each in hits[name]) + " |")
    gains = [
        difference(len(true), lambda rows, n=n: float(hits["zicl"][n][rows].mean() - hits["cosine"][n][rows].mean()))
        for n in (0, 1)
    ]
    return "\n".join([*lines, f"| zicl minus cosine | {' | '.join(gains)} |"])


def tables() -> dict[str, str]:
    """Return all tables by name, in Markdown."""
    return {"none": none_table(), "several": several_table(), "top": top_table(), "cost": cost_line()}


def cost_line() -> str:
    """Return what many labels cost, as a sentence."""
    stored = json.loads((RESULTS / "cost.json").read_text())
    few, many = (min(stored["seconds"][count]) for count in ("5", "200"))
    return (
        f"200 labels instead of 5 cost {stored['ratio']:.2f} times as much for 1,672 texts ({few:.1f} and {many:.1f} "
        "s, fitting included; `python benchmarks/decision.py cost --data DATA`): their phrases are encoded too."
    )


# -- cost ------------------------------------------------------------------------------------------------------


def cost(data: Path, rounds: int = 3) -> None:
    """Print the seconds of 5 and of 200 labels for the same texts, each in a process of its own, in turn."""
    from nltk.corpus import wordnet

    from zicl._util.catalog import nltk_folder

    nltk_folder("wordnet")
    lemmas = (synset.lemma_names()[0] for synset in list(wordnet.all_synsets("n"))[2000:4000])
    nouns = sorted({lemma for lemma in lemmas if lemma.isalpha()})
    seconds: dict[int, list[float]] = {5: [], 200: []}
    for _ in range(rounds):
        for count, found in seconds.items():
            command = [sys.executable, __file__, "once", "--data", str(data), "--labels", ",".join(nouns[:count])]
            found.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    few, many = min(seconds[5]), min(seconds[200])
    found = {"seconds": {str(count): found for count, found in seconds.items()}, "ratio": many / few}
    (RESULTS / "cost.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"5 labels {few:.2f} s, 200 labels {many:.2f} s: {many / few:.2f} times")


def once(data: Path, labels: list[str]) -> None:
    """Print the seconds that fitting and predicting take with these labels; loading is not counted."""
    from beyond import read_task

    from zicl import ZICLClassifier

    texts = read_task("AGNews", data).texts + read_task("SST2", data).texts
    ZICLClassifier(labels=["a", "b"], method="encoder").fit().predict(["warm"])
    started = time.perf_counter()
    ZICLClassifier(labels=labels).fit(texts).classify(texts)
    print(time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "tables", "cost", "once"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--labels", default="", help="labels of once, separated by commas")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "tables":
        print("\n\n".join(tables().values()))
    elif arguments.data is None:
        parser.error("--data is needed")
    elif arguments.what == "run":
        run(arguments.data, arguments.corpora)
    elif arguments.what == "cost":
        cost(arguments.data)
    else:
        once(arguments.data, arguments.labels.split(","))


if __name__ == "__main__":
    main()
