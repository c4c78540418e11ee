"""Starts, kills and stops a real vLLM, which lives in an environment of its own (``make test-vllm``)."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from zicl._util.catalog import find_asset

NAME = "smollm2"
PYTHON = os.path.abspath(os.environ.get("ZICL_VLLM_PYTHON", ".venv-vllm/bin/python"))
# One gigabyte of keys and values; no message to the makers of vLLM; nothing is looked up.
_ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
_START = 300.0


class VLLMServer:
    """A server of the default model, as the catalog has it; ``options`` are those of vLLM."""

    context, chunk = 1024, 512

    def __init__(self, port: int, log: Path, **options: str) -> None:
        self.port, self.log = port, log
        self.options = {
            "model": str(find_asset("smollm2-135m", offline=True)),
            "served-model-name": NAME,
            "host": "127.0.0.1",
            "port": str(port),
            "dtype": "float32",
            "max-model-len": str(self.context),
            "max-num-seqs": "16",
            # Prompts longer than this are computed in several steps.
            "max-num-batched-tokens": str(self.chunk),
            **options,
        }

    @property
    def address(self) -> str:
        """The name of the model for zicl."""
        return f"http://127.0.0.1:{self.port}/v1#{NAME}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # Not compiled: that takes longer than all the tests.
        command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager"]
        for name, value in self.options.items():
            command += [f"--{name}", value]
        with self.log.open("ab") as output:
            # The model is in another process than the server: a session of their own ends them together.
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env={**os.environ, **_ENVIRONMENT}, start_new_session=True
            )
        end = time.monotonic() + _START
        while time.monotonic() < end and self._process.poll() is None:
            try:
                self.get("/v1/models")
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
            else:
                return
        self.kill()
        raise RuntimeError(f"vLLM did not start:\n{self.log.read_text(errors='replace')[-3000:]}")

    def stop(self) -> None:
        """Let it end by itself, or else kill it."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self.kill()

    def kill(self) -> None:
        """End all its processes at once, as a lack of memory does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def get(self, path: str) -> str:
        """Fetch a page of it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def metric(self, name: str) -> float:
        """Return a number that the server counts, such as ``prefix_cache_hits``."""
        found = re.search(rf"^vllm:{name}_total\{{.*\}} (\S+)$", self.get("/metrics"), re.MULTILINE)
        assert found, f"vLLM counts no {name}"
        return float(found[1])
