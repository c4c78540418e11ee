"""A small classifier that answers as the language model would, at the speed of the encoder alone."""
