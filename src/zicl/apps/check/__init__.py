"""Estimate accuracy from a small sample labelled by hand: output → stratified sample → sheet → weighted estimates.

Read predictions (rows of a classified file), sample (which of them to label), sheet (the CSV file to fill in), then
score (the report).

To add a figure to the report, compute it from the reweighted rows in score.py, add a field to ``CheckReport``, and
print it in ``zicl.cli.check``.
"""
