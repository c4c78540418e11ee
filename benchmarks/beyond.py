"""Each option beyond the paper against z-icl: accuracy, the difference with its interval, and its forward tokens.

    python benchmarks/beyond.py RESULTS --count benchmarks/beyond.toml --data DATA    # tokens.json beside the rows
    python benchmarks/beyond.py RESULTS [RESULTS …]                                   # the table, in Markdown
    python benchmarks/beyond.py RESULTS [RESULTS …] --base z-icl+                     # the difference to another method

Counting writes the prompts and runs none. Batch calibration, and joining direct, channel and the encoder's opinion,
re-read the stored scores. All differences are paired over the same examples, averaged over tasks, with a bootstrap
interval. Beside them the mean accuracy on rows drawn with other shares: nine tenths to one label, each in turn, and
each label half as frequent as the one before.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

COST = "z-icl"
# The terms of the methods that ask everything, in their order, and which of them are joined.
JOINED, TERMS = {"joined": "", "joined-8": ", shared by 8"}, ("channel", "direct", "encoder")
SUBSETS = (("direct",), ("channel", "direct"), ("channel", "encoder"), TERMS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--base", default="z-icl", help="what all are compared with, on its tasks")
    parser.add_argument("--count", type=Path, help="an experiment: count its forward tokens instead")
    parser.add_argument("--data", type=Path, help="the folder of its data")
    arguments = parser.parse_args()
    if arguments.count:
        tokens = count(arguments.count, arguments.data)
        (arguments.results[0] / "tokens.json").write_text(json.dumps(tokens, indent=1) + "\n")
    else:
        print(table(arguments.results, arguments.base))


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
        for inference in ("channel", "direct") if cell.inference == "both" else (cell.inference,):
            counter.tokens = 0
            own = replace(cell, inference=inference)
            runner.rows(own, world.examples[cell.task])
            found[own.key] = round(counter.tokens / len(world.examples[cell.task]), 1)
    return found


class Variant(NamedTuple):
    """A method as it was run or with something done to its stored scores; ``tokens`` an input by task, if counted."""

    name: str
    title: str
    cells: dict[str, Any]
    tokens: dict[str, float]


def table(folders: Sequence[Path], base_name: str, task: str | None = None) -> str:
    """The table for people, on all tasks of the base or on one. Columns with nothing in them are left out."""
    from zicl.report.bootstrap import Bootstrap, pair

    every = {variant.name: variant for variant in variants(folders)}
    base, cost = every[base_name], every[COST].tokens
    tasks, bootstrap, lines = sorted(base.cells) if task is None else [task], Bootstrap(), []
    for variant in every.values():
        cells = {task: variant.cells[task] for task in tasks if task in variant.cells}
        if not cells:
            continue
        pairs = [each for task in cells if (each := pair(cells[task], base.cells[task]))]
        estimate = bootstrap.compare(pairs) if pairs else None
        told = "–" if estimate is None else f"{estimate.estimate:+.1f} [{estimate.low:+.1f}, {estimate.high:+.1f}]"
        shown = [f"{accuracy(cells[task]):.1f}" if task in cells else "–" for task in tasks]
        mean = f"{sum(map(accuracy, cells.values())) / len(cells):.1f}"
        times = [variant.tokens[task] / cost[task] for task in cells if variant.tokens.get(task) and cost.get(task)]
        ratio = f"{sum(times) / len(times):.2f}" if times else "–"
        lines.append([variant.title, *shown, mean, told, *under_other_shares(cells), ratio])
    header = [
        "",
        *tasks,
        "mean" if len(tasks) > 1 else "",
        f"to {base_name}, 95 % interval",
        "at 90 %",
        "long tail",
        f"tokens, times {COST}",
    ]
    kept = [n for n, name in enumerate(header) if n == 0 or (name and any(line[n] != "–" for line in lines))]
    rows = [[row[n] for n in kept] for row in (header, ["---", *["---:"] * (len(header) - 1)], *lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def points(folder: Path, names: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Forward tokens an input and accuracy of methods and their calibrated variants, averaged over tasks."""
    every = {variant.name: variant for variant in variants([folder])}
    chosen = [every[f"{name}{more}"] for name in names for more in ("", ", batch")]
    return {
        each.name: (
            sum(each.tokens.values()) / len(each.tokens),
            sum(map(accuracy, each.cells.values())) / len(each.cells),
        )
        for each in chosen
    }


def accuracy(cell: Any) -> float:
    """The mean over seeds, in per cent."""
    return float(sum(run.score("accuracy") for run in cell.runs) / len(cell.runs))


def under_other_shares(cells: dict[str, Any]) -> list[str]:
    """The mean accuracy on rows drawn with other shares of the labels."""
    from zicl.report.imbalance import PATTERNS, resampled

    found = resampled(SimpleNamespace(cells=cells))  # type: ignore[arg-type]
    by_pattern = [[each.accuracy for each in found if each.pattern == pattern] for pattern in PATTERNS]
    return [f"{sum(values) / len(values):.1f}" if len(values) == len(cells) else "–" for values in by_pattern]


def variants(folders: Sequence[Path]) -> Iterator[Variant]:
    """Every method as it was run and with batch calibration, and of the joined ones some of their terms too."""
    from zicl.report.calibrate import calibrated
    from zicl.report.collect import collect

    found, counted = collect(folders), {}
    for folder in folders:
        counted |= json.loads((folder / "tokens.json").read_text()) if (folder / "tokens.json").exists() else {}
    batch = calibrated(found, every=True)
    for method, inference in dict.fromkeys((key.method, key.inference) for key in found.cells):

        def of(cells: dict[Any, Any], own: tuple[str, str] = (method, inference)) -> dict[str, Any]:
            return {key.task: cell for key, cell in cells.items() if (key.method, key.inference) == own and cell.runs}

        before, after = of(found.cells), of(batch.cells)
        if not before:
            continue
        kind = next(iter(before.values())).kind
        # Calibration that is part of a method is not a variant of it, and options of each text's own have none.
        sources = [(after, "")] if kind.batch else [(before, "")]
        if not kind.batch and next(iter(after.values())).kind.batch:
            sources.append((after, ", batch"))
        ways = ("channel", "direct") if inference == "both" else (inference,)
        asked = ", direct" if inference == "direct" else ""
        for cells, more in sources:
            if method not in JOINED:
                tokens = forward_tokens(counted, method, ways)
                yield Variant(f"{method}{asked}{more}", f"{kind.title}{asked}{more}", cells, tokens)
                continue
            for names in SUBSETS:
                own = {task: only(cell, names, calibrate=bool(more)) for task, cell in cells.items()}
                title = f"{' + '.join(names)}{JOINED[method]}{more}"
                yield Variant(title, title, own, forward_tokens(counted, method, names))


def forward_tokens(counted: dict[str, float], method: str, inferences: Iterable[str]) -> dict[str, float]:
    """Tokens an input by task, the mean over seeds; the encoder's opinion takes none."""
    found: dict[str, dict[str, list[float]]] = {}
    for key, tokens in counted.items():
        task, name, _, inference, _ = key.split("/")
        if name == method and inference in inferences:
            found.setdefault(task, {}).setdefault(inference, []).append(tokens)
    return {task: sum(sum(own) / len(own) for own in ways.values()) for task, ways in found.items()}


def only(cell: Any, names: Sequence[str], *, calibrate: bool) -> Any:
    """The joined method with some of its terms."""
    from zicl.calibrate.scores import joined
    from zicl.report.calibrate import batch_scores

    runs = []
    for run in cell.runs:
        terms = run.terms[[TERMS.index(name) for name in names]]
        scores = batch_scores(terms) if calibrate else joined(terms)
        runs.append(replace(run, terms=terms, scores=scores, predicted=scores.argmax(axis=1)))
    return replace(cell, kind=replace(cell.kind, batch=calibrate), runs=tuple(runs))


if __name__ == "__main__":
    main()
