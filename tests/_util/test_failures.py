"""Memory that runs out is an error that says what to lower; a bug stays a bug."""

import errno

import numpy as np
import pyarrow as pa
import pytest
import torch

from zicl._util.failures import explain


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        np._core._exceptions._ArrayMemoryError((1 << 40,), np.dtype("f8")),
        pa.lib.ArrowMemoryError("malloc of size 64 failed"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("can't start new thread"),
        pa.lib.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
        torch.OutOfMemoryError("CUDA out of memory"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_memory_that_ran_out(error):
    found = explain(error)
    assert "memory ran out" in found.message
    assert "--batch-size" in found.hint
    assert found.exit_code == 1


@pytest.mark.parametrize(
    "error", [ValueError("shapes differ"), RuntimeError("shapes differ"), FileNotFoundError(2, "")]
)
def test_a_bug_is_not_explained_away(error):
    assert explain(error) is None
