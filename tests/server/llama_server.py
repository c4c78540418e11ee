"""Starts and stops a real ``llama_cpp.server``."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_START = 180.0


@contextmanager
def llama_server(model: Path, log: Path, *, threads: int = 2, port: int | None = None) -> Iterator[str]:
    """The address of a server of ``model``, which ends with the block."""
    port = port or free_port()
    options = {
        "model": model,
        "model_alias": "smollm2",
        "host": "127.0.0.1",
        "port": port,
        "n_ctx": 2048,
        "n_threads": threads,
        "n_threads_batch": threads,
        # Without it no log-likelihood is given.
        "logits_all": "true",
        # Keys and values in float32 (0 in ggml's numbers), as the transformers backend has them.
        "type_k": 0,
        "type_v": 0,
    }
    command = [sys.executable, "-m", "llama_cpp.server"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(process, f"http://127.0.0.1:{port}/v1/models", log)
        yield f"http://127.0.0.1:{port}/v1#smollm2"
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise RuntimeError(f"the server did not start:\n{log.read_text(errors='replace')[-3000:]}")
