"""A plan for a large corpus: machines, hours, memory, disk and cost, from rates that benchmarks/spread.py measured.

    python benchmarks/plan.py benchmarks/results/spread.json                        # 27 million and 1 billion
    python benchmarks/plan.py RATES --sentences 5e6 --machines 4 --cores 32 --price 0.04

Core hours are sentences by the rate of one core. What two workers lose against twice one is taken as the share of a
step that cannot be spread (Amdahl's law), so that more machines help less and less. Index: 8-bit codes up to 4 million
sentences, product-quantised beyond, with the vectors in half precision beside them (docs/SCALE.md); adding a vector
costs as many products as there are lists (4√n), at the rate of matrix products measured beside it, in one process with
the cores of one machine. A price is per core hour, in any currency.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIMENSION = 384
SQ8_UP_TO = 4_000_000
# Bytes a vector: codes and number in a list, and the vector in half precision for the last comparison.
CODES = {"ivf-sq8": DIMENSION + 8, "ivf-pq": DIMENSION // 8 + 8}
STORED = 2 * DIMENSION
TRAINED_A_LIST, PASSES = 40, 10


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
    parser.add_argument("--texts", type=float, default=1e5, help="texts to label then")
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--cores", type=int, default=16, help="of a machine")
    parser.add_argument("--price", type=float, default=0.05, help="of a core hour")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rates = json.loads(arguments.rates.read_text())
    machines = Machines(arguments.machines, arguments.cores, arguments.price)
    sizes = [arguments.sentences] if arguments.sentences else [27e6, 1e9]
    plans = {f"{int(size):,}": plan(int(size), int(arguments.texts), rates, machines) for size in sizes}
    print(json.dumps(plans, indent=2) if arguments.json else table(plans, machines, int(arguments.texts)))


def plan(sentences: int, texts: int, rates: dict[str, Any], machines: Machines) -> dict[str, float | str]:
    """What a corpus of so many sentences needs; the rates are those of one worker with one thread."""
    kind = "ivf-sq8" if sentences <= SQ8_UP_TO else "ivf-pq"
    lists = 4 * math.sqrt(sentences)
    products = 2.0 * DIMENSION * lists * (sentences + PASSES * TRAINED_A_LIST * lists)
    hours = {
        "split": sentences / rates["splitting"]["one"]["per_second"] / 3600,
        "embed": sentences / rates["embedding"]["one"]["per_second"] / 3600,
        "label": texts / rates["evaluating"]["one"]["per_second"] / 3600,
        # One process builds the index, with the cores of one machine.
        "index": products / rates["machine"]["products_per_second_a_core"] / 3600,
    }
    spread = {"split": "splitting", "embed": "embedding", "label": "evaluating"}
    cores = machines.count * machines.cores
    serial = {step: max(0.0, 2 / rates[part]["two_to_one"] - 1) for step, part in spread.items()}
    elapsed = {step: hours[step] * (serial[step] + (1 - serial[step]) / cores) for step in spread}
    elapsed["index"] = hours["index"] / machines.cores
    text = sentences * rates["splitting"]["one"]["bytes_a_sentence"]
    codes = sentences * CODES[kind]
    return {
        "kind": kind,
        "raw_text_gb": round(text / 1e9, 1),
        "disk_gb": round((2 * text + sentences * (4 * DIMENSION + STORED) + 2 * codes) / 1e9, 1),
        "index_gb": round((codes + sentences * STORED) / 1e9, 1),
        "codes_in_memory_gb": round(codes / 1e9, 1),
        **{f"{step}_core_hours": round(value, 1) for step, value in hours.items()},
        **{f"{step}_hours": round(value, 2) for step, value in elapsed.items()},
        "hours": round(sum(elapsed.values()), 1),
        "cost": round(sum(elapsed.values()) * cores * machines.price),
    }


def table(plans: dict[str, dict[str, Any]], machines: Machines, texts: int) -> str:
    """For people."""
    first = next(iter(plans.values()))
    head = (
        f"{machines.count} machines of {machines.cores} cores, {machines.price} a core hour; {texts:,} texts labelled"
    )
    lines = [head, f"{'sentences':24}" + "".join(f"{name:>18}" for name in plans)]
    return "\n".join(lines + [f"{key:24}" + "".join(f"{p[key]!s:>18}" for p in plans.values()) for key in first])


if __name__ == "__main__":
    main()
