"""Synthetic predictions that the tests of this folder share."""

from zicl.apps.check.predictions import OutputPrediction

LABELS = ("calm", "stormy", "foggy")


def predictions(count):
    """Return predictions of two of the three labels: no square is 2 modulo 3."""
    return [
        OutputPrediction(f"r{n}", f"Weather report number {n}.", LABELS[n * n % len(LABELS)], (n * 37 % 101) / 100)
        for n in range(count)
    ]
