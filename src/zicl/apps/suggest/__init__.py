"""Signs that need no labels: what unlabelled texts, a corpus and labels say about each other."""
