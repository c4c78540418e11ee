"""A plan for a large corpus or file: machines, hours, memory, disk and cost, from rates of benchmarks/spread.py.

    python benchmarks/plan.py benchmarks/results/spread.json                        # 27 million and 1 billion
    python benchmarks/plan.py RATES --sentences 5e6 --machines 4 --cores 32 --price 0.04
    python benchmarks/plan.py RATES --rows 1e7          # rows to label with z-icl+, from rates of --parts pile

Core hours are sentences by half the rate of two workers with one thread each. Pieces are independent of each other, so
cores help in proportion; each is taken to lose what a core lost here when a second one was busy beside it (memory
bandwidth, Ray, the command itself). What one process does alone stands beside it: splitting goes no faster than
reading, deduplicating and storing, and the index is learnt and filled on the cores of one machine, a vector by as many
products as there are lists (4√n), at the rate of matrix products measured. Rows to label are read and written by the
command, which holds them all; what it learns from is a sample of 5,000, and no more workers encode it than it has
groups of 1,024, nor are asked than there are groups of 16. Index: 8-bit codes up to 4 million
sentences, product-quantised beyond, with the vectors in half precision beside them
(docs/how-to/large-corpora.md). A price is per core hour, in any currency; machines that only wait are not in it.
Nothing here was measured with more than two workers.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

DIMENSION = 384
SQ8_UP_TO = 4_000_000
# Bytes a vector: codes and number in a list, and the vector in half precision for the last comparison.
CODES = {"ivf-sq8": DIMENSION + 8, "ivf-pq": DIMENSION // 8 + 8}
STORED = 2 * DIMENSION
TRAINED_A_LIST, PASSES = 40, 10
# Bytes a sentence that the command holds to deduplicate: a hash, then hashes and places while they are sorted.
SEEN = 24
# The sample that z-icl+ learns from, and the texts that a call of a worker encodes, asks about or labels.
PILE, ENCODED, ASKED, LABELLED = 5000, 1024, 16, 1024


@dataclass(frozen=True)
class Machines:
    """What is rented."""

    count: int
    cores: int
    price: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rates", type=Path, help="what benchmarks/spread.py --json wrote")
    parser.add_argument("--sentences", type=float, help="another size")
    parser.add_argument("--rows", type=float, help="rows to label with z-icl+, instead of a corpus")
    parser.add_argument("--asked", type=int, default=2000, help="texts to ask the language model about then")
    parser.add_argument("--texts", type=float, default=1e5, help="texts to label then")
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--cores", type=int, default=16, help="of a machine")
    parser.add_argument("--price", type=float, default=0.05, help="of a core hour")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rates = json.loads(arguments.rates.read_text())
    machines = Machines(arguments.machines, arguments.cores, arguments.price)
    if arguments.rows:
        found = {f"{int(arguments.rows):,}": rows_plan(int(arguments.rows), arguments.asked, rates, machines)}
        print(json.dumps(found, indent=2) if arguments.json else table(found, machines, "rows"))
        return
    sizes = [arguments.sentences] if arguments.sentences else [27e6, 1e9]
    plans = {f"{int(size):,}": plan(int(size), int(arguments.texts), rates, machines) for size in sizes}
    print(json.dumps(plans, indent=2) if arguments.json else table(plans, machines, "sentences", int(arguments.texts)))


def plan(sentences: int, texts: int, rates: dict[str, Any], machines: Machines) -> dict[str, float | str]:
    """What a corpus of so many sentences needs."""
    kind, lists = "ivf-sq8" if sentences <= SQ8_UP_TO else "ivf-pq", 4 * math.sqrt(sentences)
    cores = machines.count * machines.cores
    work = {"split": (sentences, "splitting"), "embed": (sentences, "embedding"), "label": (texts, "evaluating")}
    # A core hour here is one of a core that has a busy neighbour.
    spent = {step: count / _rate(rates, part, "two") * 2 / 3600 for step, (count, part) in work.items()}
    hours = {step: value / cores for step, value in spent.items()}
    hours["split"] = max(hours["split"], sentences / rates["storing"]["per_second"] / 3600)
    products = 2.0 * DIMENSION * lists * (sentences + PASSES * TRAINED_A_LIST * lists)
    spent["index"] = products / rates["machine"]["products_per_second_a_core"] / 3600
    hours["index"] = spent["index"] / machines.cores
    text = sentences * mean(run["bytes_a_sentence"] for run in rates["splitting"]["one"])
    codes, sample = sentences * CODES[kind], lists * TRAINED_A_LIST * DIMENSION * 4
    worker = max(run["worker_gb"] for runs in (rates["evaluating"]["one"], rates["evaluating"]["two"]) for run in runs)
    return {
        "kind": kind,
        "raw_text_gb": round(text / 1e9, 1),
        "disk_gb": round((2 * text + sentences * (4 * DIMENSION + STORED) + 2 * codes) / 1e9, 1),
        "index_gb": round((codes + sentences * STORED) / 1e9, 1),
        "memory_of_the_command_gb": round(max(sentences * SEEN, codes, sample) / 1e9, 1),
        "memory_of_a_worker_gb": worker,
        **{f"{step}_core_hours": round(value, 1) for step, value in spent.items()},
        **{f"{step}_hours": round(value, 2) for step, value in hours.items()},
        "hours": round(sum(hours.values()), 1),
        "cost": round(sum(spent.values()) * machines.price),
    }


def rows_plan(rows: int, asked: int, rates: dict[str, Any], machines: Machines) -> dict[str, float | str]:
    """What it takes to label so many rows with z-icl+."""
    cores, command = machines.count * machines.cores, rates["command"]
    steps = {
        "encode": ("encoding", PILE, ENCODED),
        "ask": ("asking", asked, ASKED),
        "label": ("labelling", rows, LABELLED),
    }
    spent, hours = dict[str, float](), dict[str, float]()
    for step, (part, count, group) in steps.items():
        spent[step] = count / _rate(rates, part, "two") * 2 / 3600
        # Groups are done in rounds, one per worker.
        groups = math.ceil(count / group)
        hours[step] = spent[step] * math.ceil(groups / cores) / max(groups, 1)
    hours["label"] = max(hours["label"], rows / command["written_per_second"] / 3600)
    hours["read"] = rows / command["read_per_second"] / 3600
    worker = max(
        run["worker_gb"] for part, *_ in steps.values() for runs in ("one", "two") for run in rates[part][runs]
    )
    return {
        "input_gb": round(rows * command["input_bytes_a_row"] / 1e9, 2),
        "output_gb": round(rows * command["output_bytes_a_row"] / 1e9, 2),
        "bytes_a_row_of_the_command": round(command["bytes_a_row"]),
        # It loads what a worker loads, to fit with.
        "memory_of_the_command_gb": round(worker + rows * command["bytes_a_row"] / 1e9, 1),
        "memory_of_a_worker_gb": worker,
        **{f"{step}_core_hours": round(value, 2) for step, value in spent.items()},
        **{f"{step}_hours": round(hours[step], 3) for step in ("read", *steps)},
        "hours": round(sum(hours.values()), 2),
        # The machines are there while the command reads.
        "cost": round(sum(hours.values()) * cores * machines.price, 1),
    }


def _rate(rates: dict[str, Any], part: str, workers: str) -> float:
    return mean(run["per_second"] for run in rates[part][workers])


def table(plans: dict[str, dict[str, Any]], machines: Machines, what: str, texts: int | None = None) -> str:
    """For people."""
    labelled = "" if texts is None else f"; {texts:,} texts labelled"
    head = f"{machines.count} machines of {machines.cores} cores, {machines.price} a core hour{labelled}"
    first = next(iter(plans.values()))
    lines = [head, f"{what:28}" + "".join(f"{name:>18}" for name in plans)]
    return "\n".join(lines + [f"{key:28}" + "".join(f"{p[key]!s:>18}" for p in plans.values()) for key in first])


if __name__ == "__main__":
    main()
