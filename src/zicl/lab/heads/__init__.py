"""Attention heads that copy labels: mark labels in prompts, measure the attention to them, store and draw the scores.

Read ``find`` (prompts to scores), then ``scores`` (the scores, the heads chosen by them, and their map).

To add a kind of demonstrations that heads are found on, add it to ``FoundOn`` in ``scores`` and its method to
``find.FINDERS``.
"""
