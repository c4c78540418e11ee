"""Run sweeps in a process of their own, with the shim before its C library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.faults.shim import preloaded


def run_sweep(module: str, jobs: list[str], base: Path, library: Path, most: int, *models: Path) -> dict[str, Any]:
    """Return, by job, the numbers of a sweep and the problems that it found."""
    base.mkdir(parents=True)
    command = [sys.executable, "-m", f"tests.faults.{module}", ",".join(jobs), base, most, *models]
    done = subprocess.run(
        list(map(str, command)), env=preloaded(library), capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((base / "found.json").read_text())
    return found


def record(path: Path, jobs: list[str], job: str, most: int, found: dict[str, Any]) -> None:
    """Write the numbers of a job into the results, where those of the other jobs stay as they are."""
    stored = json.loads(path.read_text()) if path.exists() else {"jobs": {}}
    known = {**stored["jobs"], job: {"command": f"ZICL_FAULTS_PER_JOB={most} make test-faults", **found}}
    kept = {name: known[name] for name in jobs if name in known}
    sums = {key: sum(each[key] for each in kept.values()) for key in ("operations", "faults", "problems")}
    path.write_text(json.dumps({**sums, "jobs": kept}, indent=2) + "\n")
