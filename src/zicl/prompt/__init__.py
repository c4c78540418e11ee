"""Turn sentences and labels into prompts: labels → label words → demonstrations → lines → a tree of tokens.

Read labels, wordnet and synonyms (the words that show a label), labelers (the label of each demonstration), template
(how text and label are written), tokens (text with its tokens), then builder, which joins them.

To add a template, add a line to ``TEMPLATES`` in template.py. To add a way to label demonstrations, write a class with
``words``, ``candidates`` and ``label()`` in labelers.py and choose it in ``zicl.score.factory``.
"""
