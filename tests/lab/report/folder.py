"""Write results folders for tests: a few methods on two or three made-up tasks."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zicl.lab.evaluate.store import SCHEMA

LABELS = {"CR": ["bad", "good"], "SST2": ["bad", "good"], "AGNews": ["world", "sports", "business"]}
COVERED = {"CR": True, "SST2": False, "AGNews": None}
SEEDED = {"z-icl", "icl-gold", "random-inputs"}
# How often each method is correct.
CHANCES = {
    "majority": 0.5, "no-demos": 0.55, "z-icl": 0.8, "icl-gold": 0.95, "cosine-words": 0.6, "logistic": 0.9
}  # fmt: skip
LABELLED, CONTROL = {"icl-gold", "logistic"}, {"majority", "cosine-words", "logistic"}


def row(task, method, gold, predicted, example, *, inference="channel", template="task", seed=None, **values):
    return {
        "task": task, "method": method, "template": template, "inference": inference, "seed": seed,
        "example": example, "gold": gold, "predicted": predicted, "log_likelihoods": [0.0] * len(LABELS[task]),
        "tokens": [], "demos": [], "demo_words": [], "demo_labels": [], "similarities": [], "kept": 0,
        "input_cut": False, "prompt_hash": "", "overlap": None, **values,
    }  # fmt: skip


def make_rows(accuracy, *, examples=40, seeds=(13, 21), tasks=tuple(LABELS), **fixed):
    """Make rows of methods that are correct with a given probability; methods of SEEDED run once per seed."""
    rng = np.random.default_rng(3)
    rows = []
    for task in tasks:
        labels = LABELS[task]
        for method, chance in accuracy.items():
            inference = "none" if method in CONTROL else fixed.get("inference", "channel")
            template = "none" if method in CONTROL else fixed.get("template", "task")
            for seed in seeds if method in SEEDED else (None,):
                for number in range(examples):
                    gold = labels[number % len(labels)]
                    wrong = labels[(number + 1) % len(labels)]
                    predicted = gold if rng.random() < chance else wrong
                    rows.append(
                        row(task, method, gold, predicted, f"{task}-{number}", inference=inference, template=template,
                            seed=seed)
                    )  # fmt: skip
    return rows


def write_folder(
    folder: Path, rows, *, planned=None, model="tiny", identity="1", files=2, notes=None, covered=COVERED, reduce="sum"
):
    """Write rows (in several files) with the manifest that planned them, or ``planned`` examples per cell."""
    cells: dict[str, dict] = {}
    for r in rows:
        seed = "-" if r["seed"] is None else r["seed"]
        key = f"{r['task']}/{r['method']}/{r['template']}/{r['inference']}/{seed}"
        config = {
            "title": r["method"].capitalize(), "labelled": r["method"] in LABELLED, "control": r["method"] in CONTROL,
            "kind": r["method"] if r["method"] in CONTROL else "prompt",
            "calibration": {"method": "batch" if r["method"].endswith("-batch") else "none"},
        }  # fmt: skip
        entry = cells.setdefault(key, {"method": config, "reduce": reduce, "examples": 0})
        entry["examples"] += 1
    if planned is not None:
        for entry in cells.values():
            entry["examples"] = planned
    tasks = sorted({r["task"] for r in rows}, key=list(LABELS).index)
    manifest = {
        "format": 1,
        "zicl": "0",
        "fingerprint": {"lm": {"name": model, "identity": identity, "revision": None}, "corpus": None},
        "experiment": {},
        "tasks": {
            name: {
                "labels": LABELS[name], "covered": covered[name], "origin": "", "note": (notes or {}).get(name, ""),
                "examples": planned or 0, "hash": name,
            }
            for name in tasks
        },
        "cells": cells,
    }  # fmt: skip
    (folder / "rows").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for number in range(files):
        pq.write_table(pa.Table.from_pylist(rows[number::files], SCHEMA), folder / "rows" / f"{number}.parquet")
    return folder
