"""Texts classified on a cluster get the labels of one machine, in the same order."""

from __future__ import annotations

import csv

import pytest

from tests.cluster.conftest import sentences, zicl

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["id", "text"])
        writer.writeheader()
        writer.writerows({"id": n, "text": text} for n, text in enumerate(list(sentences(4000))[::80]))
    return path


def test_labels_are_the_same(raw, texts, cluster, tmp_path):
    corpus, log = tmp_path / "raw.zicl", tmp_path / "log"
    zicl("corpus", "build", raw, "-o", corpus, "--max-paragraphs", 100, "--offline", log=log)
    command = (
        "classify",
        "-f",
        texts,
        "-c",
        corpus,
        "-l",
        "terrible,great",
        "--method",
        "z-icl",
        "--k",
        4,
        "--calibrate",
        "batch",
    )
    zicl(*command, "--offline", "-o", tmp_path / "local.csv", log=log)
    on = f"{cluster.address},workers=2,threads=1"
    zicl(*command, "--on", on, "--offline", "-o", tmp_path / "cluster.csv", log=log)
    assert (tmp_path / "cluster.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
