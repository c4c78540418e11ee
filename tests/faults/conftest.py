"""The shim, compiled once; a folder in memory, because every step of a sweep waits for the disk."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.faults.shim import build_shim, why_not


@pytest.fixture(scope="session")
def shim(tmp_path_factory) -> Path:
    if reason := why_not():
        # `make test-faults` would be green without having broken anything.
        (pytest.fail if os.environ.get("ZICL_FAULTS_REQUIRED") else pytest.skip)(reason)
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def scratch(tmp_path):
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="zicl-faults-", dir=memory))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
