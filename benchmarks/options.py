"""Each option beyond the paper against z-icl: accuracy, the difference with its interval, and its forward tokens.

    python benchmarks/options.py RESULTS --count benchmarks/options.toml --data DATA    # tokens.json beside the rows
    python benchmarks/options.py RESULTS [RESULTS …]                                   # the table, in Markdown
    python benchmarks/options.py RESULTS [RESULTS …] --base z-icl+cosine --tasks Yelp,Yelp5   # to another row

Counting writes the prompts and runs none. Batch calibration, and joining direct, channel and the encoder's opinion,
re-read the stored scores. All differences are paired over the same examples, averaged over tasks, with a bootstrap
interval. Beside them the mean accuracy on rows drawn with other shares: nine tenths to one label, each in turn, and
each label half as frequent as the one before.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

COST = "z-icl"
# The terms of the methods that ask everything, in their order, and which of them are joined.
JOINED, TERMS = {"joined": "", "joined-8": ", shared by 8"}, ("channel", "direct", "encoder")
SUBSETS = (("encoder",), ("direct",), ("channel", "direct"), ("channel", "encoder"), TERMS)
# z-icl+cosine put together from stored scores: z-icl's, and those of the control that compares with the same phrases.
PLUS = {"cosine-descriptions": "z-icl+descriptions", "cosine-words": "z-icl+words"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    names = ", ".join(PLUS.values())
    parser.add_argument("--base", default="z-icl", help=f"what all are compared with: a method, also {names}")
    parser.add_argument("--tasks", help="comma-separated; those of the base, if left out")
    parser.add_argument("--count", type=Path, help="an experiment: count its forward tokens instead")
    parser.add_argument("--data", type=Path, help="the folder of its data")
    arguments = parser.parse_args()
    if bool(arguments.count) != bool(arguments.data):
        parser.error("--count and --data go together")
    if arguments.count:
        tokens = count(arguments.count, arguments.data)
        (arguments.results[0] / "tokens.json").write_text(json.dumps(tokens, indent=1) + "\n")
    else:
        print(table(arguments.results, arguments.base, arguments.tasks.split(",") if arguments.tasks else None))


def count(experiment: Path, data: Path) -> dict[str, float]:
    """Forward tokens an example, by cell: prompts are written, none is run."""
    from zicl.cli.experiment_options import in_data_dir
    from zicl.lab.evaluate.context import ExperimentContext
    from zicl.lab.evaluate.estimate import TokenCounter
    from zicl.lab.evaluate.experiment import read_experiment
    from zicl.lab.evaluate.plan import cells
    from zicl.lab.evaluate.run import Runner
    from zicl.lm.load import load_lm

    read = in_data_dir(read_experiment(experiment, {}), data)
    counter = TokenCounter(load_lm(read.lm, offline=True))
    world = ExperimentContext(read, lm=counter, offline=True)
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


def table(folders: Sequence[Path], base_name: str, only_tasks: Sequence[str] | None = None) -> str:
    """The table for people, on all tasks of the base or on some. Columns with nothing in them are left out."""
    from zicl.lab.report.collect import collect
    from zicl.lab.report.statistics import Bootstrap, pair_runs

    found = collect(folders)
    print("\n".join(found.notes), file=sys.stderr)
    every = {variant.name: variant for variant in variants(found, read_counts(folders))}
    if base_name not in every:
        raise SystemExit(f"there is no row {base_name!r} to compare with; there are: {', '.join(every)}")
    base, cost = every[base_name], every[COST].tokens
    if unknown := set(only_tasks or ()) - base.cells.keys():
        raise SystemExit(f"{base_name} has no {', '.join(sorted(unknown))}; it has: {', '.join(sorted(base.cells))}")
    tasks, bootstrap, lines = sorted(only_tasks or base.cells), Bootstrap(), []
    for variant in every.values():
        cells = {task: variant.cells[task] for task in tasks if task in variant.cells}
        if not cells:
            continue
        pairs = [each for task in cells if (each := pair_runs(cells[task], base.cells[task]))]
        estimate = bootstrap.compare(pairs) if pairs else None
        told = (
            "–"
            if estimate is None or variant is base
            else f"{estimate.estimate:+.1f} [{estimate.low:+.1f}, {estimate.high:+.1f}]"
        )
        shown = [f"{accuracy(cells[task]):.1f}" if task in cells else "–" for task in tasks]
        mean = f"{sum(map(accuracy, cells.values())) / len(cells):.1f}"
        times = [variant.tokens[task] / cost[task] for task in cells if task in variant.tokens and task in cost]
        ratio = f"{sum(times) / len(times):.2f}" if times else "–"
        lines.append([variant.title, *shown, mean, told, *under_other_shares(found, cells), ratio])
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
    from zicl.lab.report.collect import collect

    every = {variant.name: variant for variant in variants(collect([folder]), read_counts([folder]))}
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


def read_counts(folders: Iterable[Path]) -> dict[str, float]:
    """Forward tokens by cell, of all folders that have them."""
    paths = [folder / "tokens.json" for folder in folders]
    return {key: tokens for path in paths if path.exists() for key, tokens in json.loads(path.read_text()).items()}


def under_other_shares(found: Any, cells: dict[str, Any]) -> list[str]:
    """The mean accuracy on rows drawn with other shares of the labels."""
    from zicl.lab.report.label_shares import PATTERNS, resample_results

    drawn = resample_results(replace(found, cells={cell.key: cell for cell in cells.values()}))
    by_pattern = [[each.accuracy for each in drawn if each.pattern == pattern] for pattern in PATTERNS]
    return [f"{sum(values) / len(values):.1f}" if len(values) == len(cells) else "–" for values in by_pattern]


def variants(found: Any, counted: dict[str, float]) -> Iterator[Variant]:
    """Every method as it was run and with batch calibration, and of the joined ones some of their terms too."""
    from zicl.lab.report.batch_calibration import calibrate_results

    if len({(key.model, key.template) for key in found.cells}) > 1:
        raise SystemExit("these results are of several models or templates, which cannot stand in one table")
    batch = calibrate_results(found, every=True)
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
            if method in JOINED:
                yield from subsets(method, cells, more, counted)
            else:
                tokens = forward_tokens(counted, method, ways)
                yield Variant(f"{method}{asked}{more}", f"{kind.title}{asked}{more}", cells, tokens)
        if (method, inference) == (COST, "channel"):
            yield from joined_with_controls(found, before, forward_tokens(counted, method, ways))


def subsets(method: str, cells: dict[str, Any], more: str, counted: dict[str, float]) -> Iterator[Variant]:
    """Some of the terms of a method that asked for all; the encoder alone is the same for all such methods."""
    for names in SUBSETS:
        alone = names == ("encoder",)
        if alone and JOINED[method]:
            continue
        own = {task: only(cell, names, calibrate=bool(more)) for task, cell in cells.items()}
        title = f"{' + '.join(names)}{' alone' if alone else ''}{JOINED[method]}{more}"
        tokens = dict.fromkeys(own, 0.0) if alone else forward_tokens(counted, method, names)
        yield Variant(title, title, own, tokens)


def joined_with_controls(found: Any, cells: dict[str, Any], tokens: dict[str, float]) -> Iterator[Variant]:
    """z-icl's stored scores with a control's cosines: what z-icl+cosine gives."""
    from zicl.score.calibration import join_terms
    from zicl.score.experts import SCALE

    for control, name in PLUS.items():
        beside = {key.task: cell for key, cell in found.cells.items() if key.method == control}
        own = {}
        for task in cells.keys() & beside.keys():
            (cosines,) = beside[task].runs
            runs = []
            for run in cells[task].runs:
                if not np.array_equal(run.examples, cosines.examples):
                    raise SystemExit(f"{task}: {COST} and {control} have other examples: finish the run first")
                runs.append(rescored(run, np.concatenate([run.terms, SCALE * cosines.terms]), join_terms))
            own[task] = replace(cells[task], runs=tuple(runs))
        if own:
            title = f"Z-ICL + {beside[task].kind.title[0].lower()}{beside[task].kind.title[1:]}"
            yield Variant(name, title, own, tokens)


def rescored(run: Any, terms: Any, join: Callable[[Any], Any]) -> Any:
    """A run with other terms, joined to what is compared."""
    scores = join(terms)
    return replace(run, terms=terms, scores=scores, predicted=scores.argmax(axis=1))


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
    from zicl.lab.report.batch_calibration import batch_scores
    from zicl.score.calibration import join_terms

    join, chosen = batch_scores if calibrate else join_terms, [TERMS.index(name) for name in names]
    runs = tuple(rescored(run, run.terms[chosen], join) for run in cell.runs)
    return replace(cell, kind=replace(cell.kind, batch=calibrate), runs=runs)


if __name__ == "__main__":
    main()
