"""Diagnose a classifier without labels: texts → sample → corpus search and scores → signals, each with an option.

Read run (``suggest``: sample the texts, search the corpus, score them), then signals (each a function of the numbers
that run collected, with its bounds).

To add a signal, write a function in signals.py that returns a ``Signal``, and call it in ``_corpus_signals`` or
``_model_signals`` of run.py.
"""
