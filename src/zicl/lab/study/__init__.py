"""Studies of the method: declare experiments, run them or reuse rows, compare accuracies, draw figures, write findings.

Read ``base`` (what a study is), ``registry`` (which there are), ``method_grid`` (the methods that they compare),
``settings`` and ``context`` (what a run needs), ``reuse`` and ``run`` (from experiments to rows), ``outcome`` and
``figures`` (from rows to numbers). Every other file is one study; ``labels`` is the shortest.

To add a study, write a file here that defines ``STUDY``, and add one line to the table in ``registry``.
"""
