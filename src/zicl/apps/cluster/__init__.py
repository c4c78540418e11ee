"""The same work on the machines of a Ray cluster: splitting, embedding, searching, evaluating, classifying.

Nothing else in the package knows of Ray. What is computed follows the same plan as on one machine, and what is
written is written by the command that was started, in the same order.
"""
