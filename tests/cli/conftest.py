"""A corpus built with the program."""

import csv

import pytest

from tests.conftest import DOCUMENTS

LABELS = "terrible,great"


@pytest.fixture
def corpus(run, jsonl, tmp_path, encoder_folder):
    code, out, err = run("corpus", "build", "-o", tmp_path / "c.zicl", jsonl, "--encoder", encoder_folder)
    assert code == 0, err
    assert out == ""
    assert "30 sentences in 10 paragraphs of 10 documents" in err
    assert "0.0% of the paragraphs have one sentence" in err
    return tmp_path / "c.zicl"


@pytest.fixture
def options(corpus, lm_folder):
    """What makes a small classifier."""
    return ["--corpus", corpus, "--labels", LABELS, "--method", "z-icl", "--lm", lm_folder, "--k", 3, "--offline"]


def write_texts(path, count, *, column="text", takes=None):
    """A CSV file of texts; only so many ``takes`` of them are different."""
    numbers = [n % (takes or count) for n in range(count)]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", column])
        writer.writerows([n, f"Take {number}. {DOCUMENTS[number % 10]}"] for n, number in enumerate(numbers))
    return path
