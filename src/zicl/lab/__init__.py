"""Measure the method as the paper does: run evaluations, ask questions of their rows, and report the numbers.

Read evaluate (experiments into rows), report (rows into tables, figures and a page), heads (attention heads that copy
labels), study (the paper's analyses, each a few experiments with figures and findings).

To add a method or a task, see evaluate; to add a table, see report; to add an analysis, see study.
"""
