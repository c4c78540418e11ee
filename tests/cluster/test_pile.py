"""What learns from a pile writes the same file on a cluster, also when workers die while they encode, ask or label."""

from __future__ import annotations

import csv
import os
import signal
import time

import pytest

from tests.cluster.conftest import busy_worker, once, sentences, zicl
from zicl._util.files import home

pytestmark = pytest.mark.cluster

# Of these texts a sample is learned from, and the language model is asked about some.
TEXTS, PILE, ASKED = 2500, 1000, 32


@pytest.fixture(scope="session")
def command(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate(sentences(TEXTS)))
    return ("classify", "-f", path, "-l", "terrible,great", "--offline")


@pytest.fixture
def labelled(command, tmp_path):
    """Return a function that labels the texts and returns the file; no run knows the answers of another."""

    def run(name, *options):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "assets").symlink_to(home() / "assets")
        zicl(*command, *options, "-o", tmp_path / f"{name}.csv", log=tmp_path / "log", home=folder)
        return (tmp_path / f"{name}.csv").read_bytes()

    return run


def test_a_pile_is_learned_from_as_on_one_machine(labelled, cluster, tmp_path):
    on, learning = f"{cluster.address},workers=2,threads=1", ("--set", f"pile.texts={PILE}", "--lm-rows", ASKED)
    killed = []

    def kill(stage, call, begun):
        """Kill a worker once while it computes such a call of a stage."""

        def reached():
            if begun() and (process := busy_worker(call)):
                os.kill(process, signal.SIGKILL)
                killed.append(stage)
                return True
            return False

        return once(reached, lambda: None)

    def learned():
        # Each run says so once the language model's answers are there, before workers are started that label.
        return (tmp_path / "log").read_text().count("learned from") == 3

    def labelling():
        return (tmp_path / "killed.csv").exists()

    expected = labelled("local", *learning)
    assert expected.count(b"\n") == TEXTS + 1
    assert labelled("cluster", *learning, "--on", on) == expected
    with (
        kill("encoding", "ClassifyWorker.encode", lambda: True),
        kill("asking", "ClassifyWorker.classify", lambda: not learned()),
        kill("labelling", "ClassifyWorker.classify", labelling),
    ):
        started = time.monotonic()
        assert labelled("killed", *learning, "--on", on) == expected
    assert sorted(killed) == ["asking", "encoding", "labelling"], f"after {time.monotonic() - started:.0f} seconds"


def test_an_encoder_alone_labels_as_on_one_machine(labelled, cluster):
    expected = labelled("local", "--method", "encoder")
    assert labelled("cluster", "--method", "encoder", "--on", f"{cluster.address},workers=2,threads=1") == expected
