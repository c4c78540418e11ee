"""A worker's threads: results are the same, byte for byte, only at equal numbers of them."""

from __future__ import annotations


def use_threads(count: int) -> None:
    """Compute with so many threads in this process."""
    import faiss
    import torch

    torch.set_num_threads(count)
    faiss.omp_set_num_threads(count)
