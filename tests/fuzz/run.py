"""Fuzz every target for some time, and write what was run and found: ``python -m tests.fuzz.run --seconds 60``."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.targets import TARGETS

HERE = Path(__file__).parent
_DONE = re.compile(r"stat::number_of_executed_units:\s+(\d+)|^#(\d+)", re.MULTILINE)


def main() -> None:
    """Print a line per target, and write the results if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} [all]")
    parser.add_argument("--seconds", type=int, default=60, help="of each target")
    parser.add_argument("--json", type=Path, help="write the results here, too; those of other targets stay")
    parser.add_argument("--finds", type=Path, help="where inputs that broke something are written [a new folder]")
    options = parser.parse_args()
    finds = options.finds or Path(tempfile.mkdtemp(prefix="zicl-finds-"))
    total = 0
    for name in options.targets or TARGETS:
        result = fuzz(name, options.seconds, finds / name)
        total += result["finds"]
        found = f"{result['finds']} finds, in {finds / name}" if result["finds"] else "nothing found"
        print(f"{name:12} {result['executions']:>9,} executions in {result['seconds']} s: {found}", flush=True)
        if options.json:
            # After each target: an hour's run may be ended early.
            record(options.json, name, options.seconds, result)
    sys.exit(total > 0)


def record(path: Path, name: str, seconds: int, result: dict[str, int]) -> None:
    """Write the numbers of a target into the results, where those of the other targets stay as they are."""
    stored = json.loads(path.read_text()) if path.exists() else {"targets": {}}
    command = f"make fuzz SECONDS={seconds} TARGETS={name}"
    known = {**stored["targets"], name: {"command": command, **result}}
    kept = {each: known[each] for each in TARGETS if each in known}
    path.write_text(json.dumps({"engine": "atheris (libFuzzer)", "targets": kept}, indent=2) + "\n")


def fuzz(name: str, seconds: int, folder: Path) -> dict[str, int]:
    """Fuzz one target; where the process ended early, go on in another with the time that is left."""
    folder.mkdir(parents=True, exist_ok=True)
    (HERE / "found" / name).mkdir(parents=True, exist_ok=True)
    started, executions, seed = time.monotonic(), 0, 1
    while (left := seconds - int(time.monotonic() - started)) > 0 and seed < 50:
        command = [sys.executable, "-m", "tests.fuzz.one", name, str(folder), str(left), str(seed)]
        with (folder / f"log-{seed}.txt").open("w+") as log:
            code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
            log.seek(0)
            counts = [int(a or b) for a, b in _DONE.findall(log.read())]
        if not counts and code:
            sys.exit(f"{shlex.join(command)} failed: see {folder}/log-{seed}.txt")
        executions, seed = executions + max(counts, default=0), seed + 1
        if code == 0:
            break
    finds = [path for path in folder.iterdir() if re.match(r"(raised|crash|oom|timeout|leak)-[^.]*$", path.name)]
    return {"executions": executions, "seconds": round(time.monotonic() - started), "finds": len(finds)}


if __name__ == "__main__":
    main()
