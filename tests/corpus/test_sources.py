"""Sources: files of a folder, domains, and paths that cannot be read."""

from pathlib import Path

import pytest

from zicl.corpus.sources import find_sources
from zicl.exceptions import TextError


def test_a_folder_is_read_in_sorted_order(tmp_path):
    for name in ("b.txt", "a.txt", "photo.png"):
        (tmp_path / name).write_text("x")
    assert [s.name for s in find_sources([tmp_path])] == ["a.txt", "b.txt"]


def test_domains_are_kept(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert [s.domain for s in find_sources([], {"films": [tmp_path / "a.txt"]})] == ["films"]


def test_missing_files_and_empty_folders(tmp_path):
    with pytest.raises(TextError, match="there is no file"):
        find_sources([tmp_path / "none.txt"])
    with pytest.raises(TextError, match="holds no file"):
        find_sources([tmp_path])
    with pytest.raises(TextError, match="no input"):
        find_sources([])


def test_linked_folders_are_read_once_and_empty_paths_not_at_all(tmp_path):
    for name in ("films", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text("A lamp.")
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "films")
    (tmp_path / "films" / "back").symlink_to(tmp_path / "data")
    found = [Path(source.path).name for source in find_sources([str(tmp_path / "data")], {})]
    assert found == ["data.txt", "films.txt"]
    for empty in ("", " "):
        with pytest.raises(TextError, match="a path is empty"):
            find_sources([], {"films": [empty]})


def test_corpora_in_a_folder_are_no_raw_text(tmp_path):
    (tmp_path / "a.txt").write_text("One lamp.")
    for place, names in (("c.zicl", ["manifest.json", "sentences.arrow"]), ("d.zicl.partial", ["state.json"])):
        (tmp_path / place).mkdir()
        for name in names:
            (tmp_path / place / name).write_text("{}")
    assert [source.name for source in find_sources([tmp_path])] == ["a.txt"]
