"""Every seed, and every input that fuzzing found something with, is read or refused in the library's own words."""

import contextlib
import tempfile
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS, scratch
from zicl.exceptions import ZICLError

HERE = Path(__file__).parent


def files(folder, name):
    return sorted(path for path in (HERE / folder / name).glob("*") if path.is_file())


@pytest.mark.parametrize("name", list(TARGETS))
def test_inputs_are_read_or_refused(name, tmp_path, monkeypatch):
    # Some targets replace a part of the library: for this test only.
    from zicl.lm.remote.client import Client

    monkeypatch.setattr(Client, "_exchange", Client._exchange)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))
    run = TARGETS[name]()
    assert files("seeds", name)
    for path in [*files("seeds", name), *files("found", name)]:
        try:
            run(path.read_bytes())
        except ZICLError:
            pass
        except Exception as error:
            raise AssertionError(f"{path.relative_to(HERE)}: {error!r}") from error
        # Beginnings of files, as an interrupted copy leaves them.
        content = path.read_bytes()
        for part in (content[: len(content) // 2], content[:-1], b""):
            with contextlib.suppress(ZICLError):
                run(part)


def test_folders_are_made_where_whoever_runs_a_target_says(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert scratch().parent == tmp_path
