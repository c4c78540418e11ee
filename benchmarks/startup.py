"""How long ``zicl --help`` takes, beside an empty Python process in the same run.

python benchmarks/startup.py [--json]
"""

from __future__ import annotations

import json
import subprocess
import sys

from machine import best_of


def main() -> None:
    def run(*command: str) -> float:
        return best_of(lambda: subprocess.run(command, capture_output=True, check=True), 10).seconds

    empty = run(sys.executable, "-c", "pass")
    answer = run(sys.executable, "-c", "from zicl.cli import main; main()", "--help")
    result = {
        "help_seconds": round(answer, 3),
        "empty_python_seconds": round(empty, 3),
        "ratio": round(answer / empty, 1),
    }
    if "--json" in sys.argv:
        print(json.dumps(result))
        return
    print(f"zicl --help: {answer:.3f} s, {answer / empty:.1f} times an empty Python process")


if __name__ == "__main__":
    main()
