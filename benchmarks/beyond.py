"""Each option beyond the paper against z-icl: accuracy, the difference with its interval, and its forward tokens.

    python benchmarks/beyond.py RESULTS --count benchmarks/beyond.toml --data DATA    # tokens.json beside the rows
    python benchmarks/beyond.py RESULTS                                               # the table, in Markdown

Counting writes the prompts and runs none. Batch calibration, and joining direct, channel and the encoder's opinion,
re-read the stored scores. All differences are paired over the same examples, averaged over tasks, with a bootstrap
interval.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

BASE = "z-icl"
# The terms of the methods that ask everything, in their order, and which of them are joined.
JOINED, TERMS = {"joined": "", "joined-8": ", shared by 8"}, ("channel", "direct", "encoder")
SUBSETS = (("direct",), ("channel", "direct"), ("channel", "encoder"), TERMS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--count", type=Path, help="an experiment: count its forward tokens instead")
    parser.add_argument("--data", type=Path, help="the folder of its data")
    arguments = parser.parse_args()
    if arguments.count:
        tokens = count(arguments.count, arguments.data)
        (arguments.results / "tokens.json").write_text(json.dumps(tokens, indent=1) + "\n")
    else:
        print(table(arguments.results))


def count(experiment: Path, data: Path) -> dict[str, float]:
    """Forward tokens an example, by cell: prompts are written, none is run."""
    from zicl.cli._experiment import in_data_dir
    from zicl.evaluate.count import TokenCounter
    from zicl.evaluate.experiment import read_experiment
    from zicl.evaluate.plan import cells
    from zicl.evaluate.run import Runner
    from zicl.evaluate.world import World
    from zicl.lm.load import load_lm

    read = in_data_dir(read_experiment(experiment, {}), data)
    counter = TokenCounter(load_lm(read.lm, offline=True))
    world = World(read, lm=counter, offline=True)
    runner, found = Runner(world), {}
    for cell in cells(read):
        if not world.methods[cell.method].needs_lm:
            continue
        counter.tokens = 0
        runner.rows(cell, world.examples[cell.task])
        found[cell.key] = round(counter.tokens / len(world.examples[cell.task]), 1)
    return found


def table(results: Path) -> str:
    """The table for people."""
    from zicl.report.bootstrap import Bootstrap, pair
    from zicl.report.collect import collect

    found = collect([results])
    tasks = list(found.tasks)
    counted = json.loads((results / "tokens.json").read_text()) if (results / "tokens.json").exists() else {}
    base = {key.task: cell for key, cell in found.cells.items() if key.method == BASE and key.inference == "channel"}
    bootstrap, lines = Bootstrap(), []
    for title, cells, cost in variants(found, counted):
        shared = [task for task in tasks if task in cells and task in base]
        pairs = [each for task in shared if (each := pair(cells[task], base[task]))]
        estimate = bootstrap.compare(pairs) if pairs else None
        means = {
            task: sum(run.score("accuracy") for run in cells[task].runs) / len(cells[task].runs) for task in shared
        }
        shown = [f"{means[task]:.1f}" if task in means else "–" for task in tasks]
        average = f"{sum(means.values()) / len(means):.1f}" if means else "–"
        told = "–" if estimate is None else f"{estimate.estimate:+.1f} [{estimate.low:+.1f}, {estimate.high:+.1f}]"
        lines.append([title, *shown, average, told, cost])
    header = ["", *tasks, "mean", f"to {BASE}, 95 % interval", f"tokens, times {BASE}"]
    rows = [header, ["---", *["---:"] * (len(header) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def variants(found: Any, counted: dict[str, float]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every method as it was run and with batch calibration, and of the joined one also some of its terms."""
    from zicl.report.calibrate import calibrated

    batch = calibrated(found, every=True)
    for method, inference in dict.fromkeys((key.method, key.inference) for key in found.cells):
        for source, more in ((found, ""), (batch, ", batch")):
            cells = {k.task: c for k, c in source.cells.items() if (k.method, k.inference) == (method, inference)}
            cells = {task: cell for task, cell in cells.items() if cell.runs}
            if not cells or (more and next(iter(cells.values())).kind.sort != "prompt"):
                continue
            cost = times(counted, method, cells)
            if method in JOINED:
                for names in SUBSETS:
                    # Without a term its prompts need not be run: direct and channel cost as much, the encoder nothing.
                    share = sum(name != "encoder" for name in names) / 2
                    own = {task: only(cell, names, calibrate=bool(more)) for task, cell in cells.items()}
                    yield f"{' + '.join(names)}{JOINED[method]}{more}", own, f"{cost * share:.2f}" if cost else "–"
            else:
                title = next(iter(cells.values())).kind.title
                yield f"{title}{more}", cells, f"{cost:.2f}" if cost else "–"


def times(counted: dict[str, float], method: str, tasks: Sequence[str]) -> float | None:
    """Tokens an example as a multiple of z-icl's, averaged over tasks."""

    def mean(name: str, task: str) -> float:
        values = [value for key, value in counted.items() if key.split("/")[:2] == [task, name]]
        return sum(values) / len(values) if values else 0.0

    pairs = [(mean(method, task), mean(BASE, task)) for task in tasks]
    ratios = [own / base for own, base in pairs if own and base]
    return sum(ratios) / len(ratios) if ratios else None


def only(cell: Any, names: Sequence[str], *, calibrate: bool) -> Any:
    """The joined method with some of its terms."""
    from zicl.calibrate.scores import joined
    from zicl.report.calibrate import batch_scores

    runs = []
    for run in cell.runs:
        terms = run.terms[[TERMS.index(name) for name in names]]
        scores = batch_scores(terms) if calibrate else joined(terms)
        runs.append(replace(run, terms=terms, scores=scores, predicted=scores.argmax(axis=1)))
    return replace(cell, runs=tuple(runs))


if __name__ == "__main__":
    main()
