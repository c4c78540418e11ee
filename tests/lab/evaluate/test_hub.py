"""Public data sets, read by the real library from folders of the same form as the hub's."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from zicl.corpus.builder import build_corpus
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.exceptions import DownloadError, TextError
from zicl.lab.evaluate.examples import read_examples
from zicl.lab.evaluate.tasks import Hub, Task

CARD = """---
configs:
- config_name: east
  data_files:
  - {split: test, path: east-test.csv}
  - {split: train, path: east-train.csv}
- config_name: west
  data_files:
  - {split: train, path: west.csv}
---
"""
COUNT = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set of two configurations; four rows of one split have no text."""
    place = tmp_path_factory.mktemp("hub") / "tickets"
    place.mkdir()
    (place / "README.md").write_text(CARD)
    for name in ("east-test", "east-train", "west"):
        rows = [
            f"Title {n},{'' if name == 'east-test' and n % 10 == 3 else f'{name} number {n}.'},{n % 2}"
            for n in range(COUNT)
        ]
        (place / f"{name}.csv").write_text("\n".join(["title,message,label", *rows]) + "\n")
    return place


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


def task(folder, **changes):
    hub = {"id": str(folder), "config": "east", "text": "message", "values": [0, 1], **changes}
    return Task(name="Tickets", labels=["late", "lost"], hub=Hub(**hub))


def test_rows_without_text_are_left_out_and_counted(folder, caplog):
    with caplog.at_level(logging.WARNING, "zicl"):
        found = read_examples(task(folder), "hub")
    assert len(found) == COUNT - 4
    # The others keep their numbers.
    assert found[3].id == "5"
    assert "4 rows without text were left out" in caplog.text


def test_rows_of_a_shuffled_split_with_joined_columns(folder):
    wanted = task(folder, test="train", test_rows=[10, 15], text="{title} [SEP] content: {message}")
    order = np.arange(COUNT)
    np.random.RandomState(42).shuffle(order)
    found = read_examples(wanted, "hub")
    assert [example.id for example in found] == [str(number + 1) for number in order[10:15]]
    assert found[0].text == f"Title {order[10]} [SEP] content: east-train number {order[10]}."
    assert found[0].label == ("late", "lost")[order[10] % 2]
    with pytest.raises(TextError, match="has 40 rows, and the task Tickets uses rows 39 to 41"):
        read_examples(task(folder, test="train", test_rows=[39, 41]), "hub")
    with pytest.raises(TextError, match="'subject' is no column"):
        read_examples(task(folder, text="{subject}: {message}"), "hub")


def test_a_row_without_any_of_the_joined_columns_has_no_text(folder, caplog):
    """A missing value is no word, and what stands between columns is no text."""
    with caplog.at_level(logging.WARNING, "zicl"):
        found = read_examples(task(folder, text="{message} [SEP] {message}"), "hub")
    assert len(found) == COUNT - 4
    assert "4 rows without text" in caplog.text
    joined = read_examples(task(folder, text="{title} [SEP] {message}"), "hub")
    assert joined[3].text.strip() == "Title 3 [SEP]"
    with pytest.raises(TextError, match="cannot be joined"):
        read_examples(task(folder, text="{title.x}"), "hub")


def test_what_the_library_says_is_in_the_error(folder):
    with pytest.raises(DownloadError, match="could not be read: Unknown split"):
        read_examples(task(folder, test="validation"), "hub")
    with pytest.raises(DownloadError, match="could not be read: BuilderConfig 'north' not found"):
        read_examples(task(folder, config="north"), "hub")


def test_a_corpus_of_several_configurations(folder, tmp_path):
    paths = {"east": [f"hf:{folder}:east:train"], "west": [f"hf:{folder}:west:train"]}
    sources = find_sources([], paths, text_columns=dict.fromkeys(paths, "message"))
    corpus = build_corpus(sources, tmp_path / "c.zicl", BuildOptions())
    assert {domain["name"]: domain["sentences"] for domain in corpus.manifest["domains"]} == dict.fromkeys(paths, COUNT)
    assert corpus.text(COUNT) == "west number 0."
    # Of several configurations one has to be named.
    with pytest.raises(DownloadError, match="Config name is missing"):
        build_corpus(find_sources([], {"any": [f"hf:{folder}:train"]}), tmp_path / "d.zicl", BuildOptions())
