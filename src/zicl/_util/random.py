"""One random generator per (seed, item, purpose), so that no draw depends on another item."""

from __future__ import annotations

import hashlib

import numpy as np


def stable_hash(*keys: object) -> int:
    """Return a 128-bit hash of the keys that is the same on every machine and in every process.

    >>> stable_hash(1, "a") == stable_hash(1, "a") != stable_hash("1a")
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for key in keys:
        # numpy.str_ is a subclass of str and must hash as the same text.
        kind = "str" if isinstance(key, str) else type(key).__name__
        part = f"{kind}:{key}".encode("utf-8", "surrogatepass")
        digest.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(digest.digest(), "little")


def rng(seed: int, *keys: object) -> np.random.Generator:
    """Return the generator for one item and one purpose, e.g. ``rng(seed, text, "labels")``.

    >>> int(rng(0, "x").integers(1000)) == int(rng(0, "x").integers(1000))
    True
    """
    return np.random.Generator(np.random.PCG64(stable_hash(int(seed), *keys)))
