"""Fuzz one target with atheris: ``python -m tests.fuzz.one TARGET FOLDER SECONDS SEED``.

What a target raises that is no error of the library is written to FOLDER, once for each place in the code, and fuzzing
goes on. What ends the process (a crash of native code, too much memory, a hang) is written there by libFuzzer.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import atheris

HERE = Path(__file__).parent
_MEGABYTES, _SECONDS = 3000, 30


def main() -> None:
    """Fuzz until the time is over."""
    name, folder, seconds, seed = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    with atheris.instrument_imports(include=["zicl", "csv", "tomllib", "gguf"], enable_loader_override=False):
        from tests.fuzz.targets import TARGETS
        from zicl.exceptions import ZICLError

        run = TARGETS[name]()
    known: set[str] = set()

    def checked(data: bytes) -> None:
        try:
            run(data)
        except ZICLError:
            return
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{type(error).__name__} {Path(frames[-1].filename).name}:{frames[-1].lineno}"
            if place not in known:
                known.add(place)
                (folder / f"raised-{seed}-{len(known)}").write_bytes(data)
                (folder / f"raised-{seed}-{len(known)}.txt").write_text(traceback.format_exc())

    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    options = [
        f"-max_total_time={seconds}", f"-rss_limit_mb={_MEGABYTES}", f"-timeout={_SECONDS}", f"-seed={seed}",
        f"-artifact_prefix={folder}/", "-print_final_stats=1", "-max_len=50000", "-verbosity=0",
    ]  # fmt: skip
    atheris.Setup(["fuzz", *options, str(corpus), str(HERE / "seeds" / name), str(HERE / "found" / name)], checked)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
