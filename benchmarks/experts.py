"""What each expert, pair of experts and method costs: texts a second and tokens of the language model, in one run.

    python benchmarks/experts.py --data DATA     # into benchmarks/results/experts.json; on a quiet machine

DATA has a folder per task with test.jsonl. The rows of a task are its own pile and, for demonstrations, its own
corpus. Loading models is not counted; fitting is. The table is in docs/results/default-method.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from beyond import classifier, read_task

RESULTS = Path(__file__).parent / "results" / "experts.json"
# A prompt with demonstrations takes about a second: fewer rows tell as much.
TASKS, ROWS, PROMPTED_ROWS = ("SST2", "AGNews"), 200, 50
# Title, method, experts and inference of each; with a pile where the method has one.
TRIED: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("cosine", "encoder", ("cosine",), "channel"),
    ("encoder", "encoder", ("encoder",), "channel"),
    ("**z-icl+**: encoder and pile", "z-icl+", ("encoder",), "channel"),
    ("language model, direct", "no-demos", ("direct",), "channel"),
    ("language model, channel", "no-demos", ("channel",), "channel"),
    ("encoder and direct", "no-demos", ("encoder", "direct"), "channel"),
    ("encoder and direct, pile", "z-icl+", ("encoder", "direct"), "channel"),
    # Single sentences have no physical neighbour: the nearest ones themselves make prompts as long as z-icl's.
    ("16 demonstrations, direct", "naive", ("prompt",), "direct"),
    ("16 demonstrations, channel", "naive", ("prompt",), "channel"),
    ("encoder and 16 demonstrations, channel", "naive", ("encoder", "prompt"), "channel"),
)


def run(data: Path) -> None:
    """Measure every row of the table, one after the other, each in a process of its own: vectors are kept in one."""
    stored: dict[str, Any] = {}
    for number, (title, *_) in enumerate(TRIED):
        command = [sys.executable, __file__, "--data", str(data), "--only", str(number)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        stored[title] = json.loads(done.stdout)
        print(f"{title}: {stored[title]['texts'] / stored[title]['seconds']:.1f} texts a second", flush=True)
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def measure(data: Path, method: str, experts: tuple[str, ...], inference: str) -> dict[str, float]:
    """Return the seconds, the texts and the tokens of one row."""
    from zicl import PromptSettings, Scoring
    from zicl.lab.evaluate.estimate import count_tokens

    seconds, tokens, count = 0.0, 0, PROMPTED_ROWS if "prompt" in experts else ROWS
    for name in TASKS:
        task = read_task(name, data)
        rows = np.sort(np.random.default_rng(0).permutation(len(task.texts))[:count])
        texts = [task.texts[n] for n in rows]
        asks = bool({"direct", "channel", "prompt"} & set(experts))
        fitted = classifier(
            task,
            method,
            scoring=Scoring(experts=experts, inference=inference),
            prompt=PromptSettings(template=task.template) if asks else None,
            calibrate="neutral" if asks and "prompt" not in experts else None,
        )
        # Other texts load the models.
        others = [text for n, text in enumerate(task.texts) if n not in set(rows.tolist())][:30]
        fitted.fit(others).classify(others[:2])
        started = time.perf_counter()
        found = fitted.fit(texts).classify(texts)
        seconds += time.perf_counter() - started
        prompts = [part.prepared.prompt for p in found for part in (p.parts or (p,)) if part.prepared is not None]
        tokens += count_tokens(prompts)
    return {"seconds": seconds, "texts": count * len(TASKS), "tokens": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", type=int, help="measure one row of the table, and print it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.only is None:
        run(arguments.data)
    else:
        print(json.dumps(measure(arguments.data, *TRIED[arguments.only][1:])))


if __name__ == "__main__":
    main()
