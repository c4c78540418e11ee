"""Evaluation: tasks, their examples, and what is measured on them."""
