"""What found heads are compared with: random ones of the same layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zicl._util.random import rng
from zicl.exceptions import ConfigError
from zicl.lm.heads import Head


def random_like(
    found: Sequence[Head], shape: tuple[int, int], *, draws: int, seed: int = 0
) -> tuple[tuple[Head, ...], ...]:
    """``draws`` times as many other heads as were found, each from the layer of one of these.

    ``shape`` is the model's: layers and heads. Where found heads fill so much of a layer that too few others are left
    in it, the nearest layer that has some stands in, the lower of two.
    """
    layers, heads = shape
    for head in found:
        if not (0 <= head.layer < layers and 0 <= head.head < heads):
            raise ConfigError(f"there is no head {head} among {layers} layers of {heads}", hint="find the heads anew")
    if 2 * len(set(found)) > layers * heads:
        raise ConfigError(
            f"{len(set(found))} of {layers * heads} heads were found, so that too few others are left to compare with",
            hint="silence fewer heads",
        )
    return tuple(_draw(found, shape, rng(seed, draw, "random heads")) for draw in range(draws))


def _draw(found: Sequence[Head], shape: tuple[int, int], generator: np.random.Generator) -> tuple[Head, ...]:
    layers, heads = shape
    free = {layer: sorted(set(range(heads)) - {h.head for h in found if h.layer == layer}) for layer in range(layers)}
    drawn = []
    for wanted in dict.fromkeys(found):
        layer = min((n for n in free if free[n]), key=lambda n: (abs(n - wanted.layer), n))
        drawn.append(Head(layer, free[layer].pop(int(generator.integers(len(free[layer]))))))
    return tuple(drawn)
