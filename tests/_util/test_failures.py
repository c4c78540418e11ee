"""Memory that runs out is an error that says what to lower; a bug stays a bug."""

import errno

import numpy as np
import pyarrow as pa
import pytest
import torch

from zicl._util.failures import explain, storage_error, storage_errors


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        np._core._exceptions._ArrayMemoryError((1 << 40,), np.dtype("f8")),
        pa.lib.ArrowMemoryError("malloc of size 64 failed"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("can't start new thread"),
        ImportError("splitter.so: failed to map segment from shared object"),
        pa.lib.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
        torch.OutOfMemoryError("CUDA out of memory"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_memory_that_ran_out(error):
    found = explain(error)
    assert "memory ran out" in found.message
    assert "`scoring.batch_size`" in found.hint
    assert found.exit_code == 1


@pytest.mark.parametrize(
    "error", [ValueError("shapes differ"), RuntimeError("shapes differ"), FileNotFoundError(2, "")]
)
def test_a_bug_is_not_explained_away(error):
    assert explain(error) is None


@pytest.mark.parametrize("message", ["worker died, exit code: 1", "status code: 5", "code: 28"])
def test_a_number_in_a_message_is_not_the_systems(tmp_path, message):
    with pytest.raises(RuntimeError, match=message), storage_errors(tmp_path / "out.zicl"):
        raise RuntimeError(message)


def test_a_file_that_is_only_in_the_same_folder_is_named_itself(tmp_path):
    out = tmp_path / "out.zicl"
    for name, blamed in {
        "out.zicl/rows": out,
        ".out.zicl.1-2.tmp/rows": out,
        "out.zicl.partial/rows": out,
        "inputs/labels.csv": tmp_path / "inputs/labels.csv",
    }.items():
        found = storage_error(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / name)), out)
        assert found.message.startswith(f"{blamed} cannot be"), name


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOENT, "there is no such file or folder"),
        (errno.ENOTDIR, "a part of its path is a file"),
        (errno.EISDIR, "is a folder, and a file was expected"),
        (errno.ELOOP, "its links lead in a circle"),
        (errno.ENAMETOOLONG, "its name is too long"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(tmp_path, code, said):
    found = explain(OSError(code, "", str(tmp_path / "out.csv")))
    assert found.message.startswith(f"{tmp_path / 'out.csv'} ")
    assert said in found.message
    assert "ZICL_HOME" in found.hint
    # Without a path it is a bug.
    assert explain(OSError(code, "")) is None


def test_a_name_of_thousands_of_letters_is_not_all_of_the_message():
    assert len(explain(OSError(errno.ENAMETOOLONG, "", "a" * 5000)).message) < 400


def test_the_folder_of_this_process_was_removed(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "in which zicl was started is gone" in explain(FileNotFoundError(errno.ENOENT, "")).message
