"""How near the demonstrations of stored rows were: no model, no text.

    python benchmarks/nearness.py benchmarks/results/studies/retrieval/methods [--json]

For every task and method the median, over texts and seeds, of the highest and of the mean cosine between a text and the
sentences its demonstrations were found through.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from zicl.lab.evaluate.store import ROWS

COLUMNS = ["task", "method", "similarities"]


def nearness(folder: Path) -> list[dict[str, str | float]]:
    """One entry a task and method; those whose demonstrations were not found by nearness are left out."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in pq.read_table(folder / ROWS, columns=COLUMNS).to_pylist():
        if row["similarities"] and None not in row["similarities"]:
            found[row["task"], row["method"]].append((max(row["similarities"]), float(np.mean(row["similarities"]))))
    medians = {key: np.median(values, axis=0).round(2).tolist() for key, values in sorted(found.items())}
    return [{"task": key[0], "method": key[1], "nearest": each[0], "mean": each[1]} for key, each in medians.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a results folder")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = nearness(options.results)
    told = (f"{e['task']:<8} {e['method']:<28} nearest {e['nearest']:.2f}  mean {e['mean']:.2f}" for e in found)
    print(json.dumps(found, indent=2) if options.json else "\n".join(told))


if __name__ == "__main__":
    main()
