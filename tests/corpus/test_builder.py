"""Building: what is stored, and that a killed build ends with the same bytes."""

import json
from pathlib import Path

import pytest

from tests.conftest import DOCUMENTS
from zicl.corpus import builder, shards
from zicl.corpus.builder import build_corpus
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.corpus.splitter import get_splitter, split_locally
from zicl.exceptions import EmptyCorpusError, StorageError, UsageError


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_sentences_stay_in_order_and_neighbours_in_their_paragraph(tmp_path, jsonl):
    corpus = build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")
    assert len(corpus) == 30
    assert " ".join(corpus.text(row) for row in range(3)) == DOCUMENTS[0]
    assert [corpus.neighbour(row) for row in range(6)] == [1, 0, 1, 4, 3, 4]
    assert [s.row for s in corpus.paragraph(4)] == [3, 4, 5]
    assert corpus.sentence(4).source == "raw.jsonl"


def test_duplicates_are_stored_but_indexed_once(tmp_path):
    (tmp_path / "a.txt").write_text("Same here. Other one.\n\nSame here. Third one.\n\nAlone.\n")
    corpus = build_corpus(find_sources([tmp_path / "a.txt"]), tmp_path / "c.zicl")
    assert corpus.table["indexed"].to_pylist() == [True, True, False, True, True]
    assert corpus.manifest["single"] == 1
    assert corpus.neighbour(4) is None


def test_the_sample_is_uniform_over_paragraphs_and_seeded(tmp_path, jsonl):
    def rows(name, seed):
        options = BuildOptions(max_paragraphs=4, seed=seed)
        return build_corpus(find_sources([jsonl]), tmp_path / name, options).table["text"].to_pylist()

    first = rows("a.zicl", 1)
    assert first == rows("b.zicl", 1)
    assert first != rows("c.zicl", 2)
    assert len(first) == 12


@pytest.mark.parametrize("shard", [1, 1000])
def test_documents_that_were_read_and_that_were_kept_are_counted(tmp_path, jsonl, monkeypatch, shard):
    monkeypatch.setattr("zicl.corpus.shards._SHARD_SENTENCES", shard)
    (tmp_path / "long.jsonl").write_text(json.dumps({"text": "One lamp. It is lit.\n\nTwo lamps.\n\nNo lamp."}))
    sources = find_sources([], {"news": [jsonl], "lamps": [tmp_path / "long.jsonl"]})
    manifest = build_corpus(sources, tmp_path / "c.zicl", BuildOptions(domain_paragraphs={"news": 4})).manifest
    assert [domain["documents_kept"] for domain in manifest["domains"]] == [4, 1]
    assert (manifest["documents"], manifest["documents_kept"]) == (11, 5)


@pytest.mark.parametrize("stop_after", [1, 2, 3, 4])
def test_a_killed_build_ends_with_the_same_bytes(tmp_path, monkeypatch, stop_after):
    monkeypatch.setattr(shards, "_SHARD_SENTENCES", 5)
    paths = []
    for number in range(2):
        path = tmp_path / f"raw{number}.jsonl"
        path.write_text("".join(json.dumps({"text": t + f" Ending {number}."}) + "\n" for t in DOCUMENTS))
        paths.append(path)
    sources, options = find_sources(paths), BuildOptions(max_paragraphs=12)
    complete = build_corpus(sources, tmp_path / "complete.zicl", options)
    calls = 0

    def killed(stage, done, total=None, note=""):
        nonlocal calls
        calls += 1
        if calls == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_corpus(sources, tmp_path / "killed.zicl", options, report=killed)
    assert not (tmp_path / "killed.zicl").exists()
    resumed = build_corpus(sources, tmp_path / "killed.zicl", options)
    assert files(resumed.path) == files(complete.path)


def test_a_splitter_that_reads_ahead_makes_the_same_corpus(tmp_path, jsonl, monkeypatch):
    monkeypatch.setattr(shards, "_SHARD_SENTENCES", 5)
    split = split_locally(get_splitter("sentencex"))
    plain = build_corpus(find_sources([jsonl]), tmp_path / "plain.zicl")
    ahead = build_corpus(find_sources([jsonl]), tmp_path / "ahead.zicl", split=lambda texts: split(list(texts)))
    assert files(ahead.path) == files(plain.path)


def test_another_build_does_not_resume_a_killed_one(tmp_path, jsonl, monkeypatch):
    monkeypatch.setattr(shards, "_SHARD_SENTENCES", 5)

    def killed(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_corpus(find_sources([jsonl]), tmp_path / "c.zicl", report=killed)
    other = tmp_path / "other.txt"
    other.write_text("Quite another text. Of two sentences.")
    assert len(build_corpus(find_sources([other]), tmp_path / "c.zicl")) == 2


def test_two_builds_of_one_corpus_do_not_mix(tmp_path, jsonl):
    from zicl._util.locks import locked

    with locked(tmp_path / "c.zicl.partial", ""), pytest.raises(StorageError, match="another process"):
        build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")


def test_few_accepted_sentences_still_end_a_shard(tmp_path, jsonl, monkeypatch):
    monkeypatch.setattr(shards, "_SHARD_BLOCKS", 3)
    reports = []
    build_corpus(
        find_sources([jsonl]), tmp_path / "c.zicl", BuildOptions(max_paragraphs=1), report=lambda *a: reports.append(a)
    )
    assert len([r for r in reports if r[0] == "reading"]) > 3


def test_nothing_is_overwritten_by_default(tmp_path, jsonl):
    build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")
    with pytest.raises(StorageError, match="exists already: it is a folder, and a new name was expected") as error:
        build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")
    assert "`overwrite=True`" in error.value.hint
    build_corpus(find_sources([jsonl]), tmp_path / "c.zicl", overwrite=True)


def test_an_empty_corpus_is_an_error_and_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("  \n\n ")
    with pytest.raises(EmptyCorpusError):
        build_corpus(find_sources([tmp_path / "a.txt"]), tmp_path / "c.zicl")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    with pytest.raises(UsageError, match="at least 1"):
        build_corpus(find_sources([tmp_path / "a.txt"]), tmp_path / "c.zicl", BuildOptions(max_paragraphs=0))


def test_a_full_disk_leaves_nothing_half_written(tmp_path, jsonl, monkeypatch):
    import errno
    import os

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(builder.pa.ipc, "new_file", full)
    with pytest.raises(StorageError, match="disk is full"):
        build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")
    assert not (tmp_path / "c.zicl").exists()


def test_only_a_corpus_is_replaced(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.txt").write_text("One lamp. Two lamps.")
    with pytest.raises(StorageError, match="exists already: it is a folder, and a corpus was expected"):
        build_corpus(find_sources([raw]), raw, overwrite=True)
    assert (raw / "a.txt").read_text() == "One lamp. Two lamps."
    for _ in range(2):
        assert build_corpus(find_sources([raw]), tmp_path / "c.zicl", overwrite=True).sentences == 2
