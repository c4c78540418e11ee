"""Two processes at one output, a process that is killed from outside, and one that may not have the memory it needs.

The first process stops where a test says and goes on when it is told to: nothing rests on the clock.
"""

import csv
import os
import subprocess
import sys

import pytest

from tests.conftest import DOCUMENTS
from tests.faults.jobs import LABELS

pytestmark = pytest.mark.faults

# Calls zicl, and stops before a function is called for the n-th time.
STOPPING = """
import sys
from importlib import import_module
name, attribute, calls = sys.argv[1].rpartition(".")[0], sys.argv[1].rpartition(".")[2], int(sys.argv[2])
module, _, kind = name.partition(":")
owner = getattr(import_module(module), kind) if kind else import_module(module)
real = getattr(owner, attribute)
def stop(*arguments, **given):
    global calls
    calls -= 1
    if calls == 0:
        print("STOPPED", flush=True)
        sys.stdin.readline()
    return real(*arguments, **given)
setattr(owner, attribute, stop)
sys.argv = ["zicl", *sys.argv[3:]]
from zicl.cli import main
main()
"""
# Calls zicl with so many more bytes of memory than it has once its libraries are loaded.
LIMITED = """
import resource, sys
from pathlib import Path
import faiss, pyarrow, sentence_transformers, torch
import zicl.classifier, zicl.cli.app, zicl.retrieve.update
torch.set_num_threads(1)
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (size, size))
sys.argv = ["zicl", *sys.argv[2:]]
from zicl.cli import main
main()
"""
# Fits twice: with so many more bytes of memory than it has once the texts are there, then with as many as it needs.
FITTING = """
import resource, sys
from pathlib import Path
from zlib import crc32
import numpy as np
from zicl import Pile, ZICLClassifier
from zicl.exceptions import MemoryLimitError

class TableEncoder:
    name, identity, dimension = "table", "table", 256
    table = np.random.default_rng(0).normal(size=(997, 256)).astype(np.float32) / 16

    def encode(self, texts):
        return self.table[[crc32(text.encode()) % 997 for text in texts]]

def new():
    pile = Pile(method="mixture", texts=len(texts))
    return ZICLClassifier(labels=["soup", "film"], encoder=TableEncoder(), pile=pile)

def answers(classifier):
    return [each.probabilities for each in classifier.classify(texts[:50])]

texts = [f"Take {n}." for n in range(20_000)]
classifier = new().fit(texts[:100])
before = answers(classifier)
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
try:
    classifier.fit(texts)
except (MemoryError, MemoryLimitError):
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert answers(classifier) == before, "half fitted"
    print("refused")
    classifier.fit(texts)
    assert classifier.fitted_.pile.texts == len(texts)
    assert answers(classifier) == answers(new().fit(texts))
print("fitted")
"""
# Where each command stops, and which output it has begun.
PLACES = {
    "corpus build": ("zicl.corpus.builder.publish", 1),
    "classify": ("zicl.inputs.output:OutputFile.write", 2),
    "evaluate": ("zicl.lab.evaluate.store:ResultsFolder.write", 2),
    "distill": ("zicl.inputs.output:OutputFile.write", 2),
}


@pytest.fixture
def commands(tmp_path, encoder_folder, lm_folder):
    """The command lines, and a corpus for them."""
    from tests.lab.evaluate.conftest import write_task

    pile = tmp_path / "raw.txt"
    pile.write_text("\n\n".join(DOCUMENTS))
    corpus, rows, tasks = tmp_path / "c.zicl", tmp_path / "rows.csv", write_task(tmp_path, test=40)
    with rows.open("w", newline="") as stream:
        csv.writer(stream).writerows([["id", "text"], *([n, f"Take {n}. {DOCUMENTS[n % 10]}"] for n in range(40))])
    zicl("corpus", "build", pile, "-o", corpus, "--encoder", encoder_folder)
    given = ["--corpus", corpus, "--lm", lm_folder, "--k", 2, "--offline"]
    labelled = [*given, "--labels", LABELS, "--method", "z-icl", "-f", rows]
    chosen = ["--task-file", tasks, "--tasks", "Days", "--methods", "z-icl", "--seeds", 1]
    return {
        "corpus build": ["corpus", "build", pile, "--encoder", encoder_folder, "-o"],
        "classify": ["classify", *labelled, "-o"],
        "evaluate": ["evaluate", *chosen, *given, "-o"],
        "distill": ["distill", *labelled, "--sample", 20, "-o"],
    }


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def zicl(*arguments, script=None, code=0):
    start = ["-m", "zicl"] if script is None else ["-c", script]
    command = [sys.executable, *start, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == code, done.stderr
    return done.stderr


def ended_by_a_library(done):
    """Return whether a library ended the process for want of memory: by a signal, or as OpenBLAS does, with a line."""
    return done.returncode < 0 or "OpenBLAS error: Memory allocation still failed" in done.stderr


def stopped(name, command):
    """Start a command, and return it once it has stopped with its lock held."""
    command = [sys.executable, "-c", STOPPING, *map(str, [*PLACES[name], *command])]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    for line in process.stdout:
        if line == "STOPPED\n":
            return process
    raise AssertionError(process.stderr.read())


def contents(path):
    """Return the bytes of what was written, without its times and locks."""
    paths = sorted(path.rglob("*")) if path.is_dir() else [path]
    changing = ("time.json", ".lock", "build.key")
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in paths if p.is_file() and p.name not in changing}


@pytest.mark.parametrize("name", PLACES)
def test_the_second_is_refused_and_a_killed_one_is_taken_over(name, commands, tmp_path):
    suffix = ".csv" if name == "classify" else ""
    expected, output = tmp_path / f"expected{suffix}", tmp_path / f"out{suffix}"
    zicl(*commands[name], expected)
    before = {path.name for path in tmp_path.iterdir()}

    first = stopped(name, [*commands[name], output])
    said = zicl(*commands[name], output, code=1)
    assert f"(process {first.pid}, since " in said
    assert f"kill {first.pid}" in said
    _, errors = first.communicate("\n")
    assert first.returncode == 0, errors
    assert contents(output) == contents(expected)

    second = tmp_path / f"second{suffix}"
    killed = stopped(name, [*commands[name], second])
    killed.kill()
    killed.communicate()
    zicl(*commands[name], second)
    assert contents(second) == contents(expected)
    left = {path.name for path in tmp_path.iterdir()} - before
    assert left <= {output.name, second.name, f".{output.name}.zicl.json", f".{second.name}.zicl.json"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the address space")
@pytest.mark.parametrize("megabytes", [4, 60])
@pytest.mark.parametrize("name", ["corpus build", "classify", "fit"])
def test_too_little_memory_gives_no_traceback_and_can_be_finished(name, megabytes, commands, tmp_path, encoder_folder):
    if name == "fit":
        # One text is labelled: what takes the memory is the pile.
        pile = tmp_path / "pile.txt"
        pile.write_text("".join(f"Take {n}. {DOCUMENTS[n % 10]}\n" for n in range(3_000)))
        given = ["--labels", LABELS, "--encoder", encoder_folder, "--offline"]
        commands[name] = ["classify", "The soup was cold.", "--fit", pile, *given, "--save"]
    if name == "corpus build":
        # One document without an end takes its size several times.
        (tmp_path / "long.txt").write_text("the lamp failed again " * 200_000)
        commands[name] = ["corpus", "build", tmp_path / "long.txt", "--encoder", encoder_folder, "-o"]
    output = tmp_path / {"classify": "out.csv", "fit": "out.zicl-clf"}.get(name, "out")
    command = [sys.executable, "-c", LIMITED, megabytes << 20, *commands[name], output]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(), check=False)
    assert "Traceback" not in done.stderr, done.stderr
    # Some libraries end the process when they get no memory. Only an error of Python's must say what to lower.
    if done.returncode and not ended_by_a_library(done):
        assert done.returncode == 1, done.stderr
        assert "zicl: " in done.stderr
        assert "→" in done.stderr
        assert "memory" in done.stderr
    if done.returncode:
        zicl(*commands[name], output)
    assert output.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the address space")
@pytest.mark.parametrize("megabytes", [4, 60, 120])
def test_a_fit_without_the_memory_it_needs_leaves_the_earlier_one_and_can_be_repeated(megabytes):
    def fit(size):
        command = [sys.executable, "-c", FITTING, str(size << 20)]
        return subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)

    done = fit(megabytes)
    if done.returncode:
        # In another process there is nothing left of it.
        assert ended_by_a_library(done), done.stderr
        done = fit(4096)
        assert done.stdout == "fitted\n", done.stderr
    else:
        assert done.stdout == "refused\nfitted\n", done.stderr
