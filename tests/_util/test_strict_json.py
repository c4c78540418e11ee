"""JSON and TOML of strangers: what Python's parsers let through, fail on or never finish is an error of its own."""

import tomllib

import pytest

from zicl._util.files import check_inside, read_json, read_toml
from zicl._util.strict_json import DEEPEST, parse_json
from zicl.exceptions import ConfigError, StorageError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 200_000, "nested too deeply"),
        ("[" * 300 + "]" * 300, "nested too deeply"),
        ('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1), "nested too deeply"),
        ('{"a": {"b": 1, "b": 2}}', "the key 'b' occurs twice"),
        ("1" * 5000, "digits"),
        ("{", "Expecting property name enclosed in double quotes, character 2"),
    ],
)
def test_what_cannot_be_used_is_a_value_error(text, said):
    with pytest.raises(ValueError, match=said):
        parse_json(text)


def test_what_can_is_read_as_python_reads_it():
    assert parse_json('[[1.5, null], {"a": "[[[[", "b": []}]') == [[1.5, None], {"a": "[[[[", "b": []}]
    assert parse_json("[" * DEEPEST + "]" * DEEPEST) is not None
    # Wide is not deep.
    assert len(parse_json("[" + ",".join(["[]"] * 10_000) + "]")) == 10_000


@pytest.mark.parametrize("text", ["a" + ".a" * 200_000 + " = 1", "[" + "a." * 100_000 + "a]"])
def test_deep_toml_is_refused_before_it_is_parsed(tmp_path, text, monkeypatch):
    """Python's parser takes hours for it."""
    parsed = []
    monkeypatch.setattr(tomllib, "loads", parsed.append)
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ConfigError, match="nested too deeply"):
        read_toml(tmp_path / "a.toml", ConfigError, missing="", form="")
    assert not parsed


def test_deep_arrays_of_toml_are_refused(tmp_path):
    (tmp_path / "a.toml").write_text("a = " + "[" * 200_000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        read_toml(tmp_path / "a.toml", ConfigError, missing="", form="")


def test_files_that_are_too_long_are_not_read(tmp_path):
    with (tmp_path / "a.json").open("wb") as stream:
        stream.truncate(65 << 20)
    with pytest.raises(StorageError, match=r"a\.json is damaged: it is longer than 64 MB"):
        read_json(tmp_path / "a.json")
    with pytest.raises(ConfigError, match="longer than 64 MB"):
        read_toml(tmp_path / "a.json", ConfigError, missing="", form="")


def test_a_folder_where_a_file_should_be_is_named(tmp_path):
    with pytest.raises(StorageError, match="cannot be read: Is a directory"):
        read_json(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none")


def test_links_within_a_folder_are_fine_and_out_of_it_are_not(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("x")
    (tmp_path / "out").write_text("x")
    (tmp_path / "in" / "near").symlink_to("file")
    (tmp_path / "in" / "far").symlink_to("../out")
    check_inside(tmp_path / "in" / "near", tmp_path / "in")
    with pytest.raises(StorageError, match="leads out of"):
        check_inside(tmp_path / "in" / "far", tmp_path / "in")
    # The folder itself may be one.
    (tmp_path / "link").symlink_to("in")
    check_inside(tmp_path / "link" / "file", tmp_path / "link")
