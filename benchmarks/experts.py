"""What each expert, pair of experts and method costs: texts a second and tokens of the language model, in one run.

    python benchmarks/experts.py run --data DATA     # into benchmarks/results/experts.json; on a quiet machine
    python benchmarks/experts.py table               # in Markdown, from what is stored

DATA has a folder per task with test.jsonl. The rows of a task are its own pile and, for z-icl, its own corpus. Loading
models is not counted; fitting is.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from beyond import classifier, read_task

RESULTS = Path(__file__).parent / "results" / "experts.json"
TASKS, ROWS = ("SST2", "AGNews"), 200
# Title, method, experts and inference of each; with a pile where the method has one.
TRIED: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("cosine", "encoder", ("cosine",), "channel"),
    ("encoder", "encoder", ("encoder",), "channel"),
    ("**z-icl+**: encoder and pile", "z-icl+", ("encoder",), "channel"),
    ("language model, direct", "no-demos", ("direct",), "channel"),
    ("language model, channel", "no-demos", ("channel",), "channel"),
    ("encoder and direct", "no-demos", ("encoder", "direct"), "channel"),
    ("encoder and direct, pile", "z-icl+", ("encoder", "direct"), "channel"),
    ("z-icl, direct", "z-icl", ("prompt",), "direct"),
    ("z-icl, channel", "z-icl", ("prompt",), "channel"),
    ("encoder and z-icl, channel", "z-icl", ("encoder", "prompt"), "channel"),
)


def run(data: Path) -> None:
    """Measure every row of the table, one after the other."""
    from zicl import PromptSettings, Scoring
    from zicl.lab.evaluate.estimate import count_tokens

    stored: dict[str, Any] = {}
    for title, method, experts, inference in TRIED:
        seconds, tokens, right = 0.0, 0, []
        for name in TASKS:
            task = read_task(name, data)
            rows = np.sort(np.random.default_rng(0).permutation(len(task.texts))[:ROWS])
            texts = [task.texts[n] for n in rows]
            asks = bool({"direct", "channel", "prompt"} & set(experts))
            fitted = classifier(
                task,
                method,
                scoring=Scoring(experts=experts, inference=inference),
                prompt=PromptSettings(template=task.template) if asks else None,
                calibrate="neutral" if asks and "prompt" not in experts else None,
            )
            # Other texts load the models: vectors and states of these are not kept.
            others = [text for n, text in enumerate(task.texts) if n not in set(rows.tolist())][:30]
            fitted.fit(others).classify(others[:2])
            started = time.perf_counter()
            found = fitted.fit(texts).classify(texts)
            seconds += time.perf_counter() - started
            prompts = [part.prepared.prompt for p in found for part in (p.parts or (p,)) if part.prepared is not None]
            tokens += count_tokens(prompts)
            right += [p.label == task.labels.names[n] for p, n in zip(found, task.gold[rows], strict=True)]
        count = len(TASKS) * ROWS
        stored[title] = {"accuracy": float(np.mean(right)), "seconds": seconds, "texts": count, "tokens": tokens}
        print(f"{title}: {count / seconds:.1f} texts a second", flush=True)
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def table() -> str:
    """Return the table in Markdown."""
    stored = json.loads(RESULTS.read_text())
    lines = ["| | accuracy | texts a second | language-model tokens a text |", "|---|---:|---:|---:|"]
    for title, found in stored.items():
        rate, tokens = found["texts"] / found["seconds"], found["tokens"] / found["texts"]
        shown = f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
        lines.append(f"| {title} | {100 * found['accuracy']:.1f} | {shown} | {tokens:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "table":
        print(table())
    elif arguments.data is None:
        parser.error("--data is needed")
    else:
        run(arguments.data)


if __name__ == "__main__":
    main()
