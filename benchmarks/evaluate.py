"""The evaluation's cost per example by method, as a ratio to one plain full forward per label in the same run.

    python benchmarks/evaluate.py            # a table
    python benchmarks/evaluate.py --json

Rotten Tomatoes sentences and the demo corpus, the default model, both inferences. The plain way is a fresh
transformers model that reads the whole prompt once for every label.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from machine import best_of, verdict
from score import plain_model

METHODS = ("no-demos", "random-inputs", "naive", "z-icl", "icl-gold", "icl-random", "nearest-icl-gold")
TASK = """[Snippets]
test = "test.jsonl"
train = "train.jsonl"
template = "review"
labels = [{name = "terrible", synonyms = ["bad"]}, {name = "great", synonyms = ["good"]}]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--examples", type=int, default=32)
    parser.add_argument("--plain", type=int, default=3, help="prompts run the plain way, which is slow")
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(arguments.threads)
    from zicl.apps.demo import example_index
    from zicl.lab.evaluate.context import ExperimentContext
    from zicl.lab.evaluate.experiment import Experiment
    from zicl.lab.evaluate.plan import PlanCell
    from zicl.lab.evaluate.run import Runner

    with tempfile.TemporaryDirectory() as folder:
        tasks = write_task(Path(folder), arguments.examples)
        experiment = Experiment(tasks=["Snippets"], methods=METHODS, corpus="given", task_file=str(tasks))
        world = ExperimentContext(experiment, index=example_index())
        runner, plain, result, others = Runner(world), plain_model(world.lm), {}, 0.0
        for inference in ("direct", "channel"):
            for name in METHODS:
                cell = PlanCell("Snippets", name, "task", inference, 100 if world.methods[name].seeded else None)
                row, load = measure(runner, plain, cell, arguments)
                result[f"{name}, {inference}"], others = row, max(others, load)
    result["machine"] = {"threads": arguments.threads, "verdict": verdict(others)}
    print(json.dumps(result, indent=2) if arguments.json else table(result))


def measure(runner: Any, plain: Any, cell: Any, options: Any) -> tuple[dict[str, float], float]:
    """One method: an example's time as the evaluation runs it, and one full forward per label."""
    examples = runner.context.examples["Snippets"]
    prompts = [prompt for way in runner.prompts(cell, examples) for prompt in way][: options.plain]
    ours, peers = [], []
    for _ in range(2):
        runner.context.lm._last_prefix = None
        ours.append(best_of(lambda: runner.rows(cell, examples), 1))
        peers.append(best_of(lambda: full_forwards(plain, prompts), 1))
    each = min(w.seconds for w in ours) / len(examples)
    peer = min(w.seconds for w in peers) / len(prompts)
    row = {"seconds": round(each, 4), "plain_seconds": round(peer, 3), "times_plain": round(peer / each, 2)}
    return row, max(w.others for w in (*ours, *peers))


def full_forwards(model: Any, prompts: list[Any]) -> None:
    """Every label's whole prompt, all logits."""
    import torch

    with torch.inference_mode():
        for prompt in prompts:
            for branch in range(len(prompt.branches)):
                logits = model(input_ids=torch.tensor([prompt.tokens(branch)]), use_cache=False).logits
                torch.log_softmax(logits[0].float(), dim=-1)


def write_task(folder: Path, count: int) -> Path:
    """Labelled sentences that the catalog's example data has."""
    from zicl.apps.demo import reviews

    rows = [{"text": text, "label": label} for text, label in reviews("rotten_tomatoes")]
    names = dict(zip(sorted({row["label"] for row in rows}), ("terrible", "great"), strict=True))
    rows = [{"text": row["text"], "label": names[row["label"]]} for row in rows]
    for name, chosen in (("test", rows[:: len(rows) // count][:count]), ("train", rows[1 :: len(rows) // 400][:400])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chosen))
    (folder / "tasks.toml").write_text(TASK)
    return folder / "tasks.toml"


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    lines = ["| method | s an example | plain, s an example | times plain |", "|---|---|---|---|"]
    for name, row in result.items():
        if name != "machine":
            lines.append(f"| {name} | {row['seconds']} | {row['plain_seconds']} | {row['times_plain']} |")
    return "\n".join([*lines, "", json.dumps(result["machine"])])


if __name__ == "__main__":
    main()
