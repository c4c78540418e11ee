"""Break file operations of a job one at a time, each in a forked child, and check what is left."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.faults import shim
from zicl.exceptions import ZICLError

# A child that takes longer hangs.
_TIMEOUT = 300
# What a second run says of what the first one had finished.
_FINISHED = ("exists already", "is removed already", "has a domain 'second' already")


@dataclass(frozen=True)
class Place:
    """The folders of a sweep: ``work`` is watched, ``inputs`` is not; and the two tiny models."""

    base: Path
    lm: Path = Path()
    encoder: Path = Path()

    @property
    def work(self) -> Path:
        return self.base / "work"

    @property
    def inputs(self) -> Path:
        folder = self.base / "inputs"
        folder.mkdir(exist_ok=True)
        return folder


@dataclass(frozen=True)
class Job:
    """``look`` returns what the artefact holds, "nothing", or "refused" where an error says what to do.

    The content of files that match ``timed`` holds times or paths; files that match ``ignored`` are no artefacts. Only
    where the documents say so may the artefact be refused after a fault (``may_refuse``), though it was not before.
    """

    name: str
    prepare: Callable[[Place], None]
    run: Callable[[Place], None]
    look: Callable[[Place], Any]
    timed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    may_refuse: bool = False


def as_command(function: Callable[[], object]) -> None:
    """Call a function with the errors of the command line."""
    try:
        function()
    except ZICLError as error:
        sys.stderr.write(f"zicl: {error}\n")
        sys.exit(error.exit_code)


def looking(content: Callable[[Place], Any]) -> Callable[[Place], Any]:
    """Return a function that gives "refused" for an error with a hint."""

    def look(place: Place) -> Any:
        try:
            return content(place)
        except ZICLError as error:
            return "refused" if error.hint else f"an error without a hint: {error}"

    return look


@dataclass(frozen=True)
class Ending:
    """How a child ended: its exit status (negative: the signal), what it printed, what it returned, what broke."""

    code: int
    errors: str
    value: Any
    broken: int


def in_child(
    place: Place,
    call: Callable[[], Any],
    number: int = 0,
    kind: str = "c",
    log: Path | None = None,
    seen: list[Any] | None = None,
) -> Ending:
    """Call a function in a forked child whose operation ``number`` is broken; ``seen`` is filled by it in the child."""
    errors, result = place.base / "stderr", place.base / "result"
    result.unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        watched = place.work if number or log else place.base / "nowhere"
        _child(errors, result, call, (watched, number, kind, log), seen)
    end = time.monotonic() + _TIMEOUT
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Ending(-999, "it hung", None, 1)
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(status)
    value, broken = json.loads(result.read_text()) if result.exists() else (None, 1)
    return Ending(code, errors.read_text(errors="replace"), value, broken)


def _child(
    errors: Path,
    result: Path,
    call: Callable[[], Any],
    fault: tuple[Path, int, str, Path | None],
    seen: list[Any] | None,
) -> None:
    with errors.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    code, value = 1, None
    try:
        shim.arm(*fault)
        value = call()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 99
    broken = shim.disarm()
    sys.stdout.flush()
    sys.stderr.flush()
    result.write_text(json.dumps([seen[0] if seen else value, broken]))
    os._exit(code)


def restore(source: Path, target: Path) -> None:
    """Make a folder a copy of another one, with its times."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)


def files_of(place: Place, job: Job) -> dict[str, str]:
    """Return every path of a work folder with the hash of its content; files that hold times have none."""
    found = {}
    for path in sorted(place.work.rglob("*")):
        name = path.relative_to(place.work).as_posix()
        if path.name == ".lock" or any(fnmatch(name, pattern) for pattern in job.ignored):
            continue
        fixed = path.is_file() and not any(fnmatch(name, pattern) for pattern in job.timed)
        mode = oct(path.stat().st_mode & 0o777)
        found[name] = f"{mode} {hashlib.sha256(path.read_bytes()).hexdigest() if fixed else ''}"
    return found


class Sweep:
    """The faults of one job, and what went wrong after them."""

    def __init__(self, job: Job, place: Place) -> None:
        self.job, self.place, self.before = job, place, place.base / "before"
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()

    def run(self, most: int | None = None) -> dict[str, Any]:
        """Break the operations, at most so many faults of them, spread evenly."""
        job, place = self.job, self.place
        place.work.mkdir(parents=True, exist_ok=True)
        job.prepare(place)
        restore(place.work, self.before)
        # Once in this process: the children then have all modules and models in memory.
        try:
            job.run(place)
        except SystemExit as ending:
            if ending.code:
                raise RuntimeError(f"{job.name} fails without a fault") from ending
        self._look_here()
        # Forked children then share this memory instead of copying what the collector touches.
        gc.collect()
        gc.freeze()
        self.old = self._look_at(self.before)
        restore(self.before, place.work)
        log = place.base / "operations"
        log.unlink(missing_ok=True)
        ending = in_child(place, lambda: job.run(place), log=log)
        assert ending.code == 0, ending.errors
        self.new, self.whole = self._look(), files_of(place, job)
        operations = shim.read_log(log)
        faults = [(operation, kind) for operation in shim.chosen(operations) for kind in operation.faults()]
        if most is not None and len(faults) > most:
            faults = [faults[len(faults) * n // most] for n in range(most)]
        for operation, kind in faults:
            self._break(operation, kind)
        return {
            "operations": len(operations),
            "faults": sum(self.counts.values()),
            "by_kind": {name: self.counts[name] for name in shim.KINDS.values()},
            "problems": self.problems,
        }

    def _look_here(self) -> None:
        """Look once in this process, for the same reason."""
        self.job.look(self.place)

    def _look(self) -> Any:
        return in_child(self.place, lambda: self.job.look(self.place)).value

    def _look_at(self, folder: Path) -> Any:
        restore(folder, self.place.work)
        return self._look()

    def _break(self, operation: shim.Operation, kind: str) -> None:
        job, place = self.job, self.place
        restore(self.before, place.work)
        ending = in_child(place, lambda: job.run(place), operation.number, kind)
        if not ending.broken:
            return
        self.counts[shim.KINDS[kind]] += 1
        names = {"o": "open", "w": "write", "s": "sync", "r": "rename", "m": "mkdir", "u": "remove"}
        path = Path(operation.path).relative_to(place.work)
        where = f"{job.name}: {shim.KINDS[kind]} at {operation.number}, {names[operation.type]} {path}"

        def problem(what: str, errors: str = "") -> None:
            self.problems.append(f"{where}: {what}" + (f"\n{errors.strip()[-400:]}" if errors else ""))

        if "Traceback" in ending.errors or ending.code == 99:
            problem("a traceback", ending.errors)
        elif kind == "k" and ending.code != -signal.SIGKILL:
            problem(f"not killed: {ending.code}", ending.errors)
        elif ending.code > 0 and ("zicl: " not in ending.errors or "→" not in ending.errors):
            problem("no error that says what to do", ending.errors)
        elif ending.code < 0 and kind != "k":
            problem(f"ended by signal {ending.code}", ending.errors)
        left = files_of(place, job) if ending.code == 0 else self.whole
        seen: list[Any] = []

        def look_and_run_again() -> None:
            seen.append(job.look(place))
            job.run(place)

        again = in_child(place, look_and_run_again, seen=seen)
        allowed = [self.old, self.new, *(["refused"] if job.may_refuse else [])]
        if again.value is None or again.value not in allowed:
            problem(f"afterwards it opens as {again.value}", again.errors)
        if ending.code == 0 and again.value != self.new:
            problem("it succeeded and is not complete", ending.errors)
        if {name: content for name, content in left.items() if name in self.whole} != self.whole:
            problem(f"it succeeded with other files: {_differences(left, self.whole)}", ending.errors)
        if again.code and not (any(text in again.errors for text in _FINISHED) and again.value == self.new):
            problem("the second run fails", again.errors)
            return
        files = files_of(place, job)
        if operation.type == "u" and kind != "k" and ending.code == 0:
            # What the disk refused to remove stays, where nothing is left to do, until something else is done there.
            files = {name: found for name, found in files.items() if name in self.whole or Path(name).name != path.name}
        if files != self.whole:
            problem(f"the second run leaves other files: {_differences(files, self.whole)}")


def _differences(found: dict[str, str], expected: dict[str, str]) -> str:
    names = sorted({*found, *expected})
    return "; ".join(
        f"{name} {'is missing' if name not in found else 'is left' if name not in expected else 'differs'}"
        + (f" ({found[name][:10]}, {expected[name][:10]})" if name in found and name in expected else "")
        for name in names
        if found.get(name) != expected.get(name)
    )


def sweep(jobs: Mapping[str, Job]) -> None:
    """Sweep jobs: their names, a folder, at most how many faults of each, and the folders of the models."""
    names, base, most, *models = sys.argv[1:]
    os.environ["ZICL_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"
    found = {}
    for name in names.split(","):
        place = Place(Path(base) / name.replace(" ", "-"), *map(Path, models))
        os.environ["ZICL_HOME"], os.environ["TMPDIR"] = str(place.work / "home"), str(place.work / "tmp")
        (place.work / "tmp").mkdir(parents=True)
        found[name] = Sweep(jobs[name], place).run(int(most) or None)
    (Path(base) / "found.json").write_text(json.dumps(found))
