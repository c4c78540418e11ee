"""Build a report from results folders: tables in the order printed, and all numbers as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from zicl._util.registry import did_you_mean
from zicl.exceptions import ConfigError
from zicl.lab.report.batch_calibration import calibrate_results
from zicl.lab.report.cells import Metric, ReportCell, ResultSet, mean_and_deviation
from zicl.lab.report.collect import collect
from zicl.lab.report.label_shares import ResampledCell, resample_results, share_tables
from zicl.lab.report.layout import Table, to_csv, to_latex, to_markdown
from zicl.lab.report.paper import paper_results
from zicl.lab.report.reliability import probability_metrics
from zicl.lab.report.statistics import BASELINES, Difference, differences
from zicl.lab.report.tables import main_table, side_tables

Format = Literal["markdown", "csv", "latex", "json"]
SUFFIXES: dict[Format, str] = {"markdown": ".md", "csv": ".csv", "latex": ".tex", "json": ".json"}
METRICS: tuple[Metric, ...] = ("accuracy", "macro-f1")


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """The tables of a report, the main one first, and the numbers they were made from."""

    results: ResultSet
    metric: Metric
    differences: list[Difference]
    tables: tuple[Table, ...]
    # Whether the main table has the paper's rows.
    paper: bool
    # The cells under other label shares, if requested.
    shares: list[ResampledCell] | None = None

    @property
    def main(self) -> Table:
        """The main table."""
        return self.tables[0]

    def render(self, kind: Format) -> str:
        """Return the report as text. CSV has only the main table; JSON has everything."""
        if kind == "json":
            return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if kind == "csv":
            return to_csv(self.main)
        return to_latex(self.tables) if kind == "latex" else to_markdown(self.tables)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON values; scores, shares and rates in per cent."""
        content: dict[str, Any] = {
            "unit": "per cent",
            "metric": self.metric,
            "models": list(self.results.models),
            "tasks": {name: asdict(task) for name, task in self.results.tasks.items()},
            "cells": [_cell_dict(cell) for cell in self.results.cells.values()],
            "differences": [_difference_dict(each) for each in self.differences],
            "main": asdict(self.main),
            "missing": self.results.missing,
        }
        if self.paper:
            content["paper"] = [asdict(row) for row in paper_results()]
        if self.shares is not None:
            content["other_shares"] = [_resampled_dict(cell) for cell in self.shares]
        return content


def make_report(
    paths: Sequence[str | Path],
    metric: Metric = "accuracy",
    *,
    compare: Literal["paper"] | None = None,
    calibrate: Literal["batch"] | None = None,
    shares: bool = False,
    against: Sequence[str] = (),
) -> EvaluationReport:
    """Build the report on one or several results folders, finished or not.

    Differences are to the methods ``against``, by default the two usual baselines. ``calibrate`` calibrates every
    prompt, not only the methods that are configured so; ``shares`` adds tables with other label shares.
    """
    if compare == "paper" and metric != "accuracy":
        raise ConfigError(f"the paper prints accuracy, not {metric}", hint="compare with --metric accuracy")
    results = calibrate_results(collect(paths), every=calibrate == "batch")
    methods = sorted({key.method for key in results.cells})
    for name in against:
        if name not in methods:
            raise did_you_mean("method of these results", name, methods)
    main = main_table(results, metric, paper=compare == "paper")
    compared = differences(results, tuple(dict.fromkeys(against)) or BASELINES)
    resampled = resample_results(results) if shares else None
    tables = (main, *side_tables(results, compared), *share_tables(results, resampled or ()))
    return EvaluationReport(results, metric, compared, tables, compare == "paper", resampled)


def _cell_dict(cell: ReportCell) -> dict[str, Any]:
    content: dict[str, Any] = {
        **cell.key._asdict(),
        **asdict(cell.kind),
        "examples": {_seed_name(run.seed): len(run.examples) for run in cell.runs},
        "missing": cell.missing,
    }
    for metric in METRICS:
        mean, deviation = mean_and_deviation([cell], metric)
        seeds = {_seed_name(seed): score for seed, score in cell.scores(metric).items()}
        content[metric] = {"mean": mean, "deviation": deviation, "seeds": seeds}
    metrics = probability_metrics(cell)
    return {
        **content,
        "shares": cell.shares,
        "copied_nearest": cell.copied_nearest,
        "copied_last": cell.copied_last,
        # JSON has no infinity: the log-likelihood of a label that was ruled out is null.
        "probabilities": metrics and {n: v if math.isfinite(v) else None for n, v in asdict(metrics).items()},
    }


def _seed_name(seed: int | None) -> str:
    return "-" if seed is None else str(seed)


def _difference_dict(difference: Difference) -> dict[str, Any]:
    values = {**difference.section._asdict(), **asdict(difference)}
    del values["section"], values["kind"]
    return values


def _resampled_dict(cell: ResampledCell) -> dict[str, Any]:
    values = {**cell.key._asdict(), **asdict(cell)}
    del values["key"]
    return values
