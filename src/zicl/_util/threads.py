"""How many threads this process computes with."""

from __future__ import annotations


def use_threads(count: int | None) -> None:
    """Compute with so many, or as many as the libraries choose; results are equal to the byte only at equal numbers."""
    if count is None:
        return
    import faiss
    import torch

    torch.set_num_threads(count)
    faiss.omp_set_num_threads(count)
