"""Distil a classifier into a linear model: texts → sample → teacher's probabilities → weights → agreement.

Read run (``distill``, from a fitted classifier and unlabelled texts to a small classifier), train (which texts to
sample, and the fit), agreement (how well it repeats the teacher), classifier (``DistilledClassifier`` and its folder).

To add another kind of student, write a class with ``scores(vectors)`` and ``identity`` like ``Linear`` in train.py, and
save its numbers in classifier.py.
"""
