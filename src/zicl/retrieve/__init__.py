"""From a test input to sentences of the corpus: encoder · index · retrieval methods."""
