"""What each expert, their joint answer and the pile are worth: the tables of docs/results/default-method.md.

    python benchmarks/beyond.py run --data DATA        # rows and draws into benchmarks/results/beyond, resumable
    python benchmarks/beyond.py tables                 # the tables, in Markdown, from what is stored
    python benchmarks/beyond.py choose --data DATA     # settings of the pile, on the tasks they were chosen on

DATA has a folder per task with test.jsonl: id, text, label. No label is used but to count what is right, except where
gold labels are given on purpose. Every method gets the same texts; what learns from texts learns from all of them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RESULTS = Path(__file__).parent / "results" / "beyond"
# Chosen on the first, confirmed on the second; MR and SST5 are films like SST2, and are only reported.
CHOSEN, CONFIRMED, FILMS = ("CR", "Tweet", "SST2", "AGNews"), ("Amz", "Amz5", "Yelp", "Yelp5"), ("MR", "SST5")
NINE = ("CR", "Amz", "Amz5", "Yelp", "Yelp5", "Tweet", "MR", "SST2", "SST5")
TASKS = (*NINE, "AGNews")
SHARES = ("natural", "one-large", "long-tailed")
DRAWS, SEED, LM_ROWS, GOLD = 3, 0, 300, (8, 32, 128)
GOLD_DRAWS = 10
TITLES = {
    "cosine": "cosine to the description",
    "centred": "the same, centred over the texts",
    "encoder": "encoder",
    "z-icl+": "**z-icl+**: encoder and pile",
    "student": "encoder and a logistic student",
    "supervised": "*logistic regression, gold labels of 80 % of the rows*",
    "direct": "language model, direct",
    "encoder+direct": "encoder and language model",
    "z-icl+lm": "z-icl+, language model asked about 300 texts",
}


class Task(NamedTuple):
    """Texts with gold labels as numbers, and the labels."""

    name: str
    ids: list[str]
    texts: list[str]
    gold: np.ndarray
    labels: Any
    template: Any


def read_task(name: str, data: Path) -> Task:
    from zicl.lab.evaluate.tasks import read_tasks

    tasks = {**read_tasks(), **read_tasks(Path(__file__).parent / "kinds_tasks.toml")}
    rows = [json.loads(line) for line in (data / name / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    labels = tasks[name].labels
    gold = np.array([labels.names.index(row["label"]) for row in rows])
    return Task(name, [str(r["id"]) for r in rows], [r["text"] for r in rows], gold, labels, tasks[name].template)


def draws(task: Task, shares: str) -> Iterator[np.ndarray]:
    """Yield the rows of each draw: all rows for natural shares, else a draw per label that is the most frequent."""
    from zicl._util.random import rng
    from zicl.lab.report.label_shares import PATTERNS, draw

    if shares == "natural":
        yield np.arange(len(task.gold))
        return
    for rotation, row in enumerate(PATTERNS[shares](len(task.labels))):
        for number in range(DRAWS):
            yield draw(task.gold, row, rng(SEED, "shares", task.name, shares, rotation, number))


# -- methods: texts in, one score per label out --------------------------------------------------------------


def classifier(task: Task, method: str, **settings: Any) -> Any:
    from zicl import ZICLClassifier

    return ZICLClassifier(labels=task.labels, method=method, **settings)


def scores_of(fitted: Any, texts: list[str]) -> np.ndarray:
    return np.array([[score.value for score in each.scores] for each in fitted.classify(texts)])


def cosine(task: Task, texts: list[str]) -> np.ndarray:
    from zicl import Scoring

    return scores_of(classifier(task, "encoder", scoring=Scoring(experts=("cosine",))).fit(), texts)


def centred(task: Task, texts: list[str]) -> np.ndarray:
    scores = cosine(task, texts)
    return scores - scores.mean(axis=0)


def encoder(task: Task, texts: list[str]) -> np.ndarray:
    return scores_of(classifier(task, "encoder").fit(), texts)


def plus(task: Task, texts: list[str]) -> np.ndarray:
    return scores_of(classifier(task, "z-icl+").fit(texts), texts)


def student(task: Task, texts: list[str]) -> np.ndarray:
    """Return a logistic regression on the vectors, taught by the encoder's probabilities: a rival of the mixture."""
    from sklearn.linear_model import LogisticRegression

    from zicl.score.calibration import log_softmax

    fitted = classifier(task, "encoder").fit()
    expert = fitted.ensemble_.encoder_expert
    vectors = expert.embed([text.strip() for text in texts])
    answers = log_softmax(expert.scores(vectors, task.labels))
    points, count = (vectors - vectors.mean(axis=0)) / vectors.std(), len(task.labels)
    rows = np.repeat(points, count, axis=0), np.tile(np.arange(count), len(points))
    model = LogisticRegression(C=0.003, max_iter=300).fit(*rows, sample_weight=np.exp(answers).ravel())
    return log_softmax(answers + model.predict_log_proba(points))


METHODS: dict[str, Callable[[Task, list[str]], np.ndarray]] = {
    "cosine": cosine,
    "centred": centred,
    "encoder": encoder,
    "z-icl+": plus,
    "student": student,
}


# -- running ---------------------------------------------------------------------------------------------


def run(data: Path, out: Path, tasks: list[str]) -> None:
    for name in tasks:
        task = read_task(name, data)
        _once(out / f"{name}.json", natural_and_skewed, task)
        _once(out / f"{name}.gold.json", gold_curve, task)
        _once(out / f"{name}.lm.json", language_model, task)
        _once(out / f"{name}.supervised.json", supervised, task)


def _once(path: Path, compute: Callable[[Task], dict[str, Any]], task: Task) -> None:
    if path.exists():
        return
    started = time.monotonic()
    content = compute(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".partial").write_text(json.dumps(content) + "\n", encoding="utf-8")
    path.with_suffix(".partial").replace(path)
    print(f"{path.name}: {time.monotonic() - started:.0f} s", flush=True)


def natural_and_skewed(task: Task) -> dict[str, Any]:
    """Return every label that was predicted on all rows, and the accuracies of the draws with other shares."""
    content: dict[str, Any] = {"ids": task.ids, "gold": task.gold.tolist(), "predicted": {}, "skewed": {}}
    for name, method in METHODS.items():
        content["predicted"][name] = method(task, task.texts).argmax(axis=1).tolist()
    for shares in SHARES[1:]:
        rows = list(draws(task, shares))
        content["skewed"][shares] = {
            name: [_accuracy(method, task, drawn) for drawn in rows] for name, method in METHODS.items()
        }
    return content


def _accuracy(method: Callable[[Task, list[str]], np.ndarray], task: Task, rows: np.ndarray) -> list[float]:
    from zicl.lab.report.cells import macro_f1

    predicted = method(task, [task.texts[n] for n in rows]).argmax(axis=1)
    gold = task.gold[rows]
    return [float((predicted == gold).mean()), float(macro_f1(gold, predicted))]


def gold_curve(task: Task) -> dict[str, Any]:
    """Return accuracies on the rows without a gold label: z-icl+ with gold labels, and logistic regression on them."""
    from sklearn.linear_model import LogisticRegression

    vectors = classifier(task, "encoder").fit().ensemble_.encoder_expert.embed([t.strip() for t in task.texts])
    points = (vectors - vectors.mean(axis=0)) / vectors.std()
    alone = np.array(plus(task, task.texts)).argmax(axis=1)
    content: dict[str, Any] = {}
    for count in GOLD:
        rows = []
        for number in range(GOLD_DRAWS):
            chosen = np.random.default_rng([SEED, count, number]).choice(len(task.gold), count, replace=False)
            rest = np.setdiff1d(np.arange(len(task.gold)), chosen)
            y: list[str | None] = [None] * len(task.texts)
            for n in chosen:
                y[n] = task.labels.names[task.gold[n]]
            taught = scores_of(classifier(task, "z-icl+").fit(task.texts, y), task.texts).argmax(axis=1)
            known = task.gold[chosen]
            if len(set(known.tolist())) > 1:
                regression = LogisticRegression(max_iter=300).fit(points[chosen], known).predict(points)
            else:
                regression = np.full(len(points), known[0])
            right = [(each[rest] == task.gold[rest]).mean() for each in (alone, taught, regression)]
            rows.append([float(value) for value in right])
        content[str(count)] = rows
    return content


def supervised(task: Task) -> dict[str, Any]:
    """Return what logistic regression on the same vectors predicts with the gold labels of four fifths of the rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    vectors = classifier(task, "encoder").fit().ensemble_.encoder_expert.embed([t.strip() for t in task.texts])
    points = (vectors - vectors.mean(axis=0)) / vectors.std()
    model = LogisticRegression(C=0.01, max_iter=500)
    return {"predicted": cross_val_predict(model, points, task.gold, cv=5).tolist()}


def language_model(task: Task) -> dict[str, Any]:
    """Return the language model's answers for some rows, and what they add: joined, and as a part of the fit."""
    from zicl import Pile, PromptSettings, Scoring

    rows = np.sort(np.random.default_rng(SEED).permutation(len(task.texts))[:LM_ROWS])
    texts = [task.texts[n] for n in rows]
    prompt = PromptSettings(template=task.template)
    content: dict[str, Any] = {"rows": rows.tolist()}
    for name, experts in {"direct": ("direct",), "encoder+direct": ("encoder", "direct")}.items():
        fitted = classifier(task, "no-demos", scoring=Scoring(experts=experts), prompt=prompt, calibrate="neutral")
        started = time.perf_counter()
        fitted.fit()
        scores = scores_of(fitted, texts)
        content[name] = {"scores": scores.tolist(), "seconds": time.perf_counter() - started}
    started = time.perf_counter()
    for count in (100, LM_ROWS):
        asked = classifier(task, "z-icl+", pile=Pile(lm_rows=count), prompt=prompt).fit(task.texts)
        predicted = scores_of(asked, task.texts).argmax(axis=1)
        content[f"z-icl+lm{count}"] = {"predicted": predicted.tolist(), "seconds": time.perf_counter() - started}
    return content


# -- choosing ------------------------------------------------------------------------------------------------


def choose(data: Path) -> None:
    """Print the mean accuracy of z-icl+ under other settings of the pile, on the tasks it was chosen on."""
    from zicl.score import experts, pile

    tried = [
        ("as it is", {}),
        *((f"{n} dimensions", {(pile, "DIMENSIONS"): n}) for n in (16, 32, 128)),
        *((f"anchor {a}", {(pile, "ANCHOR"): a}) for a in (1.0, 2.5)),
        *((f"smoothing {s}", {(pile, "_SMOOTHING"): s}) for s in (0.02, 0.1, 0.5)),
        *((f"bias share {b:.2f}", {(experts, "BIAS_SHARE"): b}) for b in (0.0, 0.5, 1.0)),
        ("always counted in full", {(pile, "_STABLE"): (-1.0, 0.0)}),
    ]
    tasks = [read_task(name, data) for name in (*CHOSEN, "SST5")]
    for title, changes in tried:
        before = {(module, name): getattr(module, name) for module, name in changes}
        for (module, name), value in changes.items():
            setattr(module, name, value)
        means = []
        for shares in SHARES:
            each = [np.mean([_accuracy(plus, task, rows)[0] for rows in draws(task, shares)]) for task in tasks]
            means.append(100 * float(np.mean(each)))
        print(f"{title:28}" + "".join(f"{mean:8.1f}" for mean in means), flush=True)
        for (module, name), value in before.items():
            setattr(module, name, value)


# -- tables --------------------------------------------------------------------------------------------------


def tables(folder: Path = RESULTS) -> dict[str, str]:
    """Return all tables by name, in Markdown."""
    stored = {name: json.loads((folder / f"{name}.json").read_text()) for name in TASKS}
    for name in TASKS:
        with_labels = json.loads((folder / f"{name}.supervised.json").read_text())
        stored[name]["predicted"]["supervised"] = with_labels["predicted"]
    return {
        "main": _main(stored),
        "differences": _differences(stored),
        "paper": _paper(stored),
        "shares": _skewed(stored),
        "lm": _lm(folder, stored),
        "gold": _gold(folder),
        "peers": _peers(folder.parent / "peers.jsonl"),
        "experts": _experts(folder.parent / "experts.json"),
    }


def _right(stored: dict[str, Any], task: str, method: str) -> np.ndarray:
    return np.array(stored[task]["predicted"][method]) == np.array(stored[task]["gold"])


def _main(stored: dict[str, Any]) -> str:
    lines = ["| | " + " | ".join(TASKS) + " | nine | F1 |", "|---|" + "---:|" * (len(TASKS) + 2)]
    from zicl.lab.report.cells import macro_f1

    for method in (*METHODS, "supervised"):
        accuracy = {task: 100 * _right(stored, task, method).mean() for task in TASKS}
        f1 = [
            100 * macro_f1(np.array(stored[task]["gold"]), np.array(stored[task]["predicted"][method])) for task in NINE
        ]
        cells = [f"{accuracy[task]:.1f}" for task in TASKS]
        nine = np.mean([accuracy[task] for task in NINE])
        lines.append(f"| {TITLES[method]} | " + " | ".join(cells) + f" | {nine:.1f} | {np.mean(f1):.1f} |")
    return "\n".join(lines)


def interval(differences: list[np.ndarray], draws: int = 10_000) -> tuple[float, float, float]:
    """Return the mean over tasks of paired differences, and its 95 % interval: examples drawn with replacement."""
    generator = np.random.default_rng(SEED)
    means = np.zeros(draws)
    for each in differences:
        # There are few different values: drawing how often each occurs is drawing the examples.
        values, counts = np.unique(each, return_counts=True)
        drawn = generator.multinomial(len(each), counts / len(each), size=draws)
        means += drawn @ values / len(each) / len(differences)
    low, high = np.percentile(100 * means, [2.5, 97.5])
    return 100 * float(np.mean([each.mean() for each in differences])), float(low), float(high)


def _shown(values: tuple[float, float, float]) -> str:
    mean, low, high = values
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]".replace("-", "−")


def _differences(stored: dict[str, Any]) -> str:
    groups = {"chosen on": CHOSEN, "confirmed on": CONFIRMED, "films": FILMS, "all ten": TASKS}
    lines = ["| z-icl+ against | " + " | ".join(groups) + " |", "|---|" + "---:|" * len(groups)]
    for method in METHODS:
        if method == "z-icl+":
            continue
        cells = []
        for tasks in groups.values():
            pairs = [_right(stored, t, "z-icl+").astype(float) - _right(stored, t, method) for t in tasks]
            cells.append(_shown(interval(pairs)))
        lines.append(f"| {TITLES[method]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _paper(stored: dict[str, Any]) -> str:
    """Compare with the paper's methods on the examples of the stored evaluation, the mean over its seeds."""
    import pyarrow.parquet as pq

    table = pq.read_table(RESULTS.parent / "evaluation" / "rows.parquet").to_pylist()
    groups = {"confirmed on": CONFIRMED, "nine tasks": NINE}
    lines = [
        "| 100 examples a task | nine tasks | z-icl+ minus it, confirmed on | nine tasks |",
        "|---|---:|---:|---:|",
    ]
    places = {task: {key: n for n, key in enumerate(stored[task]["ids"])} for task in NINE}
    ours = []
    for method, title in (("no-demos", "no demonstrations"), ("z-icl", "z-icl"), ("icl-gold", "ICL-gold")):
        right: dict[str, dict[int, list[float]]] = {task: {} for task in NINE}
        for row in table:
            if row["method"] == method and row["inference"] == "channel" and row["task"] in right:
                place = places[row["task"]][row["example"]]
                right[row["task"]].setdefault(place, []).append(float(row["predicted"] == row["gold"]))
        theirs = {task: np.array([np.mean(values) for values in rows.values()]) for task, rows in right.items()}
        plus_right = {task: _right(stored, task, "z-icl+")[list(rows)] for task, rows in right.items()}
        cells = [_shown(interval([plus_right[t] - theirs[t] for t in tasks])) for tasks in groups.values()]
        mean = 100 * float(np.mean([each.mean() for each in theirs.values()]))
        lines.append(f"| {title} | {mean:.1f} | " + " | ".join(cells) + " |")
        ours = [each.mean() for each in plus_right.values()]
    lines.append(f"| {TITLES['z-icl+']} | {100 * float(np.mean(ours)):.1f} | – | – |")
    return "\n".join(lines)


def _skewed(stored: dict[str, Any]) -> str:
    lines = ["| nine tasks, accuracy | natural | one label has 90 % | long-tailed |", "|---|---:|---:|---:|"]
    for method in METHODS:
        natural = np.mean([100 * _right(stored, task, method).mean() for task in NINE])
        cells = [f"{natural:.1f}"]
        for shares in SHARES[1:]:
            each = [np.mean([row[0] for row in stored[task]["skewed"][shares][method]]) for task in NINE]
            cells.append(f"{100 * float(np.mean(each)):.1f}")
        lines.append(f"| {TITLES[method]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _lm(folder: Path, stored: dict[str, Any]) -> str:
    files = {name: folder / f"{name}.lm.json" for name in TASKS}
    found = {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}
    if not found:
        return ""
    columns = list(found)
    lines = [f"| {LM_ROWS} rows a task | " + " | ".join(columns) + " | mean |", "|---|" + "---:|" * (len(columns) + 1)]
    for method in ("direct", "encoder", "encoder+direct", "z-icl+", "z-icl+lm100", f"z-icl+lm{LM_ROWS}"):
        cells = []
        for task in columns:
            rows, gold = np.array(found[task]["rows"]), np.array(stored[task]["gold"])
            if method in ("encoder", "z-icl+"):
                predicted = np.array(stored[task]["predicted"][method])[rows]
            elif "scores" in found[task][method]:
                predicted = np.array(found[task][method]["scores"]).argmax(axis=1)
            else:
                predicted = np.array(found[task][method]["predicted"])[rows]
            cells.append(100 * float((predicted == gold[rows]).mean()))
        title = TITLES.get(method, method.replace("z-icl+lm", "z-icl+, language model asked about "))
        lines.append(f"| {title} | " + " | ".join(f"{c:.1f}" for c in cells) + f" | {np.mean(cells):.1f} |")
    return "\n".join(lines)


def _gold(folder: Path) -> str:
    found = {
        name: json.loads((folder / f"{name}.gold.json").read_text())
        for name in TASKS
        if (folder / f"{name}.gold.json").exists()
    }
    if not found:
        return ""
    lines = [
        "| gold labels | z-icl+ without | z-icl+ with | logistic regression | with − without | with − logistic |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for count in GOLD:
        rows = np.array([found[name][str(count)] for name in found])
        means = 100 * rows.mean(axis=(0, 1))
        gains = [100 * (rows[:, :, 1] - rows[:, :, other]).mean(axis=0) for other in (0, 2)]
        shown = []
        for gain in gains:
            half = 2.262 * gain.std(ddof=1) / np.sqrt(len(gain))
            shown.append(_shown((float(gain.mean()), float(gain.mean() - half), float(gain.mean() + half))))
        lines.append(f"| {count} | " + " | ".join(f"{mean:.1f}" for mean in means) + f" | {shown[0]} | {shown[1]} |")
    return "\n".join(lines)


def _peers(path: Path) -> str:
    """Return what other tools reach on the same rows, and how fast."""
    titles = {
        "zicl": "**zicl**, `z-icl+`",
        "cosine": "sentence-transformers, cosine",
        "bertopic": "BERTopic, zero-shot topics",
        "setfit": "SetFit, zero-shot",
        "skorch": "skorch, ZeroShotClassifier",
    }
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = ["| | " + " | ".join(TASKS) + " | nine | texts a second |", "|---|" + "---:|" * (len(TASKS) + 2)]
    for peer, title in titles.items():
        found = {row["task"]: row for row in rows if row["peer"] == peer}
        if not found:
            continue
        cells = [f"{100 * found[task]['accuracy']:.1f}" if task in found else "" for task in TASKS]
        nine = [100 * found[task]["accuracy"] for task in NINE if task in found]
        seconds = sum(row["seconds"]["fit"] + row["seconds"]["predict"] for row in found.values())
        rate = sum(row["rows"] for row in found.values()) / seconds
        mean = f"{np.mean(nine):.1f}" if len(nine) == len(NINE) else ""
        lines.append(f"| {title} | " + " | ".join(cells) + f" | {mean} | {rate:.0f} |")
    return "\n".join(lines)


def _experts(path: Path) -> str:
    """Return what each expert costs, as benchmarks/experts.py measured it."""
    lines = ["| | texts a second | language-model tokens a text |", "|---|---:|---:|"]
    for title, found in json.loads(path.read_text(encoding="utf-8")).items():
        rate, tokens = found["texts"] / found["seconds"], found["tokens"] / found["texts"]
        shown = f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
        lines.append(f"| {title} | {shown} | {tokens:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "tables", "choose"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tasks", default=",".join(TASKS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "tables":
        print("\n\n".join(tables(arguments.out).values()))
    elif arguments.data is None:
        parser.error("--data is needed")
    elif arguments.what == "run":
        run(arguments.data, arguments.out, arguments.tasks.split(","))
    else:
        choose(arguments.data)


if __name__ == "__main__":
    main()
