"""Other projects' zero-shot classifiers and zicl on the same rows: accuracy and texts a second.

    python benchmarks/peers.py --data DATA --encoder ENCODER --lm LM [--tasks SST2,AGNews] [--peers cosine,zicl]
    python benchmarks/peers.py --table

DATA has one folder a task with a test.jsonl (id, text, label). ENCODER is a folder of sentence-transformers and LM one
of transformers: all peers get the same two. Each peer has an environment of its own, which is made on first use and
needs pip to reach a package index; zicl runs in the environment of this program. A peer and a task that are in the file
of results with as many rows are skipped, so that a run that was killed goes on where it stopped.

A peer is a program, peers/NAME.py, that is started with the names of two JSON files. It reads from the first

    {"task", "title", "template", "texts", "labels": [{"name", "synonyms", "description"}], "encoder", "lm", "threads"}

and writes to the second

    {"predictions": [number of a label for each text, -1 for none],
     "seconds": {"load", "fit", "predict"}, "versions": {package: version}}

where load is what every start pays (imports, models, compiling), fit what a new list of labels costs, and predict the
rest. Texts a second are rows by fit and predict together.
Programs are started with -P: the files in peers/ bear the names of the packages that they import.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from machine import verdict
from sklearn.metrics import accuracy_score, f1_score

HERE = Path(__file__).resolve().parent
TASK_FILES = (HERE.parent / "src/zicl/data/tasks.toml", HERE / "kinds_tasks.toml")
TASKS = ("CR", "Amz", "Amz5", "Yelp", "Yelp5", "Tweet", "MR", "SST2", "SST5", "AGNews")
TORCH = "torch==2.13.0"
# What each environment gets besides torch. The libraries below the peers are those that zicl was last tested with.
PACKAGES = {
    "cosine": ("sentence-transformers==6.2.0", "transformers==5.22.2"),
    "setfit": ("setfit==1.2.0", "sentence-transformers==6.2.0", "transformers==5.22.2"),
    "skorch": ("skorch==1.4.0", "transformers==5.22.2"),
    "bertopic": ("bertopic==0.17.4", "sentence-transformers==6.2.0", "transformers==5.22.2"),
}
OWN = "zicl"
PEERS = (*PACKAGES, OWN)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the tasks: DATA/TASK/test.jsonl")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--rows", type=int, default=300, help="rows of each task")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--encoder", type=Path, help="folder of a sentence-transformers model")
    parser.add_argument("--lm", type=Path, help="folder of a causal language model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results/peers.jsonl")
    parser.add_argument("--build", type=Path, default=HERE.parent / "build/peers", help="folder of the environments")
    parser.add_argument("--table", action="store_true", help="only print the results as a table")
    options = parser.parse_args()
    tasks, peers = options.tasks.split(","), options.peers.split(",")
    if unknown := [*(set(tasks) - set(TASKS)), *(set(peers) - set(PEERS))]:
        parser.error(f"not known: {', '.join(sorted(unknown))}")
    if options.table:
        print(table(list(read(options.out)), tasks, peers, options.rows))
        return
    if missing := [name for name in ("data", "encoder", "lm") if getattr(options, name) is None]:
        parser.error(f"needed: {', '.join('--' + name for name in missing)}")
    failed = [pair for peer in peers for pair in run_peer(peer, tasks, options)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def run_peer(peer: str, tasks: list[str], options: argparse.Namespace) -> list[str]:
    """Run one peer on all tasks that are not done, append a line for each, and return those that failed."""
    failed = []
    for task in tasks:
        rows = sample(options.data / task / "test.jsonl", options.rows)
        ids = hashlib.sha256(json.dumps([row["id"] for row in rows]).encode()).hexdigest()[:16]
        done = {(line["peer"], line["task"], line["rows"]): line["ids"] for line in read(options.out)}
        if (peer, task, len(rows)) in done:
            if done[peer, task, len(rows)] != ids:
                sys.exit(f"{options.out} has {len(rows)} other rows of {task}: give another file with --out")
            continue
        described = describe(task)
        request = {
            **described,
            "texts": [row["text"] for row in rows],
            "encoder": str(options.encoder.resolve()),
            "lm": str(options.lm.resolve()),
            "threads": options.threads,
        }
        python = Path(sys.executable) if peer == OWN else environment(peer, options.build)
        try:
            answer, others = ask(peer, python, request)
        except subprocess.CalledProcessError as error:
            failed.append(f"{peer} on {task}")
            print(f"{failed[-1]} ended with {error.returncode}:\n{error.stdout[-3000:]}", file=sys.stderr)
            continue
        names = [label["name"] for label in described["labels"]]
        line = judge([names.index(row["label"]) for row in rows], answer, len(names))
        line = {"task": task, "peer": peer, "ids": ids, "rows": len(rows), **line, "others": round(others, 3)}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        print(f"{peer} on {task}: {line['accuracy']:.1%}, {line['texts_per_second']} texts/s; {verdict(others)}")
    return failed


def sample(path: Path, count: int) -> list[dict[str, Any]]:
    """Draw the same rows of a file for everyone, in the order of the file."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    chosen = np.random.default_rng(0).permutation(len(rows))[:count]
    return [rows[place] for place in sorted(chosen.tolist())]


def describe(task: str) -> dict[str, Any]:
    """Say what a task is and how its labels are called, from the tables that zicl itself uses."""
    tables = {name: body for path in TASK_FILES for name, body in tomllib.loads(path.read_text("utf-8")).items()}
    labels = [{"synonyms": [], "description": label["name"], **label} for label in tables[task]["labels"]]
    return {"task": task, "title": tables[task]["title"], "template": tables[task]["template"], "labels": labels}


def environment(peer: str, build: Path) -> Path:
    """Make the environment of a peer unless it is there with the same packages, and return its Python."""
    folder, wanted = build.resolve() / peer, [TORCH, *PACKAGES[peer]]
    python, stamp = folder / "bin/python", folder / "installed.txt"
    if not stamp.exists() or stamp.read_text("utf-8").split() != wanted:
        print(f"{folder}: installing {' '.join(wanted)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        for packages in ([TORCH], wanted):
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        stamp.write_text("\n".join(wanted) + "\n", encoding="utf-8")
    return python


def ask(peer: str, python: Path, request: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Start a peer's program offline in an empty folder; return its answer and the share of the cores others took."""
    script = HERE / "peers" / ("zicl_plus.py" if peer == OWN else f"{peer}.py")
    threads = str(request["threads"])
    settings = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
    with tempfile.TemporaryDirectory() as scratch:
        question, answer = Path(scratch) / "request.json", Path(scratch) / "answer.json"
        question.write_text(json.dumps(request), encoding="utf-8")
        before = busy_and_own()
        subprocess.run(
            [python, "-P", script, question, answer],
            check=True,
            cwd=scratch,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        busy, own, total = (b - a for a, b in zip(before, busy_and_own(), strict=True))
        return json.loads(answer.read_text("utf-8")), max(0.0, (busy - own) / total)


def busy_and_own() -> tuple[float, float, float]:
    """Return the seconds that all processes and that our own took of the cores, and those that there were."""
    now, mine = (
        psutil.cpu_times(),
        [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)],
    )
    busy = now.user + now.system + now.nice + now.steal
    return busy, sum(use.ru_utime + use.ru_stime for use in mine), busy + now.idle + now.iowait


def judge(gold: list[int], answer: dict[str, Any], labels: int) -> dict[str, Any]:
    """Compare predictions with the gold labels and count texts a second, the loading of models apart."""
    predictions, seconds = answer["predictions"], answer["seconds"]
    every = list(range(labels))
    return {
        "accuracy": round(float(accuracy_score(gold, predictions)), 4),
        "macro_f1": round(float(f1_score(gold, predictions, labels=every, average="macro", zero_division=0)), 4),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "texts_per_second": round(len(gold) / (seconds["fit"] + seconds["predict"]), 2),
        "predictions": predictions,
        "versions": answer["versions"],
    }


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file of results, if there is one."""
    if path.exists():
        yield from map(json.loads, path.read_text("utf-8").splitlines())


def table(lines: list[dict[str, Any]], tasks: list[str], peers: list[str], rows: int) -> str:
    """Write accuracies as Markdown: of each task the runs with the most rows, at most as many as asked for."""
    most = {
        task: max((x["rows"] for x in lines if x["task"] == task and x["rows"] <= rows), default=0) for task in tasks
    }
    found = {(x["peer"], x["task"]): x for x in lines if x["rows"] == most.get(x["task"])}
    shown = [task for task in tasks if most[task]]
    written = [
        "| accuracy, % | " + " | ".join(f"{task} ({most[task]})" for task in shown) + " | mean | texts/s |",
        "|---|" + "---:|" * (len(shown) + 2),
    ]
    for peer in peers:
        runs = [found.get((peer, task)) for task in shown]
        done = [run for run in runs if run]
        if not done:
            continue
        cells = [f"{100 * run['accuracy']:.1f}" if run else "–" for run in runs]
        mean = f"{100 * np.mean([run['accuracy'] for run in done]):.1f}" if len(done) == len(runs) else "–"
        seconds = sum(run["seconds"]["fit"] + run["seconds"]["predict"] for run in done)
        rate = f"{sum(run['rows'] for run in done) / seconds:.1f}"
        written.append(f"| {peer} | {' | '.join([*cells, mean, rate])} |")
    return "\n".join(written)


if __name__ == "__main__":
    main()
