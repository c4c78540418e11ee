"""The whole report: results folders in, tables and everything behind them out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from zicl._util.registry import did_you_mean
from zicl.exceptions import ConfigError
from zicl.lab.report.cells import Metric, ReportCell, ResultSet, mean_and_deviation
from zicl.lab.report.collect import collect
from zicl.lab.report.formats import latex, markdown, to_csv
from zicl.lab.report.main_table import main_table
from zicl.lab.report.paper import paper_results
from zicl.lab.report.recalibrate import ResampledCells, calibrate_results, resample_results
from zicl.lab.report.reliability import probability_claims
from zicl.lab.report.side_tables import share_tables, side_tables
from zicl.lab.report.statistics import BASELINES, Difference, differences
from zicl.lab.report.table import Table

Format = Literal["markdown", "csv", "latex", "json"]
SUFFIXES: dict[Format, str] = {"markdown": ".md", "csv": ".csv", "latex": ".tex", "json": ".json"}
METRICS: tuple[Metric, ...] = ("accuracy", "macro-f1")


@dataclass(frozen=True, eq=False)
class EvaluationReport:
    """Tables in the order they are printed, and what they were made from."""

    results: ResultSet
    metric: Metric
    differences: list[Difference]
    main: Table
    tables: tuple[Table, ...]
    paper: bool
    # Under other shares of the labels, where that was asked for.
    shares: list[ResampledCells] | None = None

    def render(self, kind: Format) -> str:
        """The report as text. CSV has the main table alone; JSON has everything."""
        if kind == "json":
            return json.dumps(self.everything(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if kind == "csv":
            return to_csv(self.main)
        return latex(self.tables) if kind == "latex" else markdown(self.tables)

    def everything(self) -> dict[str, Any]:
        """All numbers, as JSON knows them; scores, shares and rates in per cent."""
        found: dict[str, Any] = {
            "unit": "per cent",
            "metric": self.metric,
            "models": list(self.results.models),
            "tasks": {name: asdict(task) for name, task in self.results.tasks.items()},
            "cells": [_cell(cell) for cell in self.results.cells.values()],
            "differences": [_difference(each) for each in self.differences],
            "main": asdict(self.main),
            "missing": self.results.missing,
        }
        if self.paper:
            found["paper"] = [asdict(row) for row in paper_results()]
        if self.shares is not None:
            found["other_shares"] = [_resampled(each) for each in self.shares]
        return found


def make_report(
    paths: Sequence[str | Path],
    metric: Metric = "accuracy",
    *,
    compare: Literal["paper"] | None = None,
    calibrate: Literal["batch"] | None = None,
    shares: bool = False,
    against: Sequence[str] = (),
) -> EvaluationReport:
    """The report on one or several results folders, finished or not.

    Differences are those to the methods ``against``, or to the two usual baselines. ``calibrate`` treats every prompt
    so, not only the methods that ask for it; ``shares`` adds tables with other shares of the labels.
    """
    if compare == "paper" and metric != "accuracy":
        raise ConfigError(f"the paper prints accuracy, not {metric}", hint="compare with --metric accuracy")
    results = calibrate_results(collect(paths), every=calibrate == "batch")
    known = sorted({key.method for key in results.cells})
    for name in against:
        if name not in known:
            raise did_you_mean("method of these results", name, known)
    main = main_table(results, metric, paper=compare == "paper")
    found = differences(results, tuple(dict.fromkeys(against)) or BASELINES)
    drawn = resample_results(results) if shares else None
    tables = (main, *side_tables(results, found), *share_tables(results, drawn or ()))
    return EvaluationReport(results, metric, found, main, tables, compare == "paper", drawn)


def _cell(cell: ReportCell) -> dict[str, Any]:
    found: dict[str, Any] = {
        **cell.key._asdict(),
        **asdict(cell.kind),
        "examples": {_seed(run.seed): len(run.examples) for run in cell.runs},
        "missing": cell.missing,
    }
    for metric in METRICS:
        mean, deviation = mean_and_deviation([cell], metric)
        seeds = {_seed(seed): score for seed, score in cell.scores(metric).items()}
        found[metric] = {"mean": mean, "deviation": deviation, "seeds": seeds}
    copied = {"copied_nearest": cell.copied_nearest, "copied_last": cell.copied_last}
    return {**found, "shares": cell.shares, **copied, "probabilities": _claims(cell)}


def _claims(cell: ReportCell) -> dict[str, float | None] | None:
    measured = probability_claims(cell)
    if measured is None:
        return None
    # JSON has no infinity: the log-likelihood of a label that was ruled out is null.
    return {name: value if math.isfinite(value) else None for name, value in asdict(measured).items()}


def _seed(seed: int | None) -> str:
    return "-" if seed is None else str(seed)


def _resampled(each: ResampledCells) -> dict[str, Any]:
    values = {**each.key._asdict(), **asdict(each)}
    del values["key"]
    return values


def _difference(each: Difference) -> dict[str, Any]:
    values = {**each.block._asdict(), **asdict(each)}
    del values["block"], values["kind"]
    return values
