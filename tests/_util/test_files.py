"""What is written is whole or not there, has the permissions of the umask, and leaves nothing behind."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from zicl._util import files
from zicl._util.files import atomic_write, check_place, exchange, home, write_text
from zicl._util.locks import publish, work_folder
from zicl.exceptions import StorageError, ZICLError
from zicl.persistence import write_linear
from zicl.score.pile import Linear

# As in a folder that a group shares; the umask is read when a process begins.
MODES = """
import os, sys
from pathlib import Path
os.umask(0o002)
import numpy as np
from safetensors.numpy import save_file
from zicl._util.files import atomic_write
from zicl._util.locks import locked
with atomic_write(Path(sys.argv[1]) / "made") as folder:
    folder.mkdir()
    save_file({"a": np.zeros(2)}, folder / "weights")
    (folder / "note").write_text("")
print(*(oct(path.stat().st_mode & 0o777) for path in sorted(folder.parent.rglob("made/*"))))
"""


def test_every_file_has_the_permissions_of_the_umask(tmp_path):
    done = subprocess.run([sys.executable, "-c", MODES, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0o664", "0o664"]


def test_weights_can_be_read_by_others(tmp_path):
    with atomic_write(tmp_path / "made") as folder:
        folder.mkdir()
        write_linear(Linear(np.zeros((2, 3)), np.zeros(2)), folder / "weights.safetensors")
        write_text(folder / "note", "")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "made").iterdir()}
    assert len(set(modes.values())) == 1, modes


def test_what_killed_processes_left_is_removed_and_what_others_write_is_not(tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = tmp_path / f".note.{files._HERE}-{int(dead.stdout)}-0.tmp"
    running = tmp_path / f".note.{files._HERE}-{os.getppid()}-0.tmp"
    elsewhere = tmp_path / f".note.abcdef-{int(dead.stdout)}-0.tmp"
    for path in (left, running, elsewhere):
        path.write_text("half")
    write_text(tmp_path / "note", "whole")
    assert sorted(tmp_path.iterdir()) == sorted([running, elsewhere, tmp_path / "note"])


@pytest.mark.parametrize("supported", [True, False])
def test_folders_change_places(tmp_path, monkeypatch, supported):
    if not supported:
        # As on a file system without it.
        monkeypatch.setattr(files, "_EXCHANGE", 1 << 20)
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "what").write_text(name)
    exchange(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "what").read_text() == "new"
    assert (tmp_path / "new" / "what").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_was_set_aside_when_its_process_was_killed_is_put_back(tmp_path, monkeypatch, again):
    monkeypatch.setattr(files.sys, "platform", "other")
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "what").write_text(name)
    renames, real = [], os.replace

    def killed(source, target):
        renames.append(target)
        # Again: after the new folder has come into place.
        if len(renames) == (3 if again else 2):
            raise KeyboardInterrupt
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            exchange(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").exists() is again
    # The next writer fails: what was there is there.
    with pytest.raises(StorageError), atomic_write(tmp_path / "old"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (tmp_path / "old" / "what").read_text() == ("new" if again else "old")
    assert {path.name for path in tmp_path.iterdir()} == ({"old"} if again else {"old", "new"})


def test_a_folder_whose_file_system_cannot_sync_folders_is_written(tmp_path, monkeypatch):
    real = os.fsync

    def refused(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(files.os, "fsync", refused)
    with atomic_write(tmp_path / "made") as folder:
        folder.mkdir()
        (folder / "what").write_text("")
    assert (tmp_path / "made" / "what").exists()


def test_of_two_processes_that_write_the_same_content_the_first_wins(tmp_path):
    with atomic_write(tmp_path / "made", replace=False) as second:
        second.mkdir()
        (second / "by").write_text("second")
        with atomic_write(tmp_path / "made", replace=False) as first:
            first.mkdir()
            (first / "by").write_text("first")
    assert (tmp_path / "made" / "by").read_text() == "first"
    assert list(tmp_path.iterdir()) == [tmp_path / "made"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (RuntimeError("write error in x: 0 != 4 (No space left on device)"), "the disk is full"),
        (Exception('IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })'), "disk is full"),
        (OSError(errno.EIO, "Input/output error"), "check the disk"),
        (OSError(errno.EFBIG, "File too large"), "ulimit -f"),
        (OSError(errno.EROFS, "Read-only file system"), "cannot be written"),
    ],
)
def test_what_the_system_says_of_a_disk_is_an_error_that_says_what_to_do(tmp_path, error, said):
    with pytest.raises(StorageError, match=said), atomic_write(tmp_path / "x"):
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_file_elsewhere_that_cannot_be_opened_is_named(tmp_path):
    error = PermissionError(errno.EACCES, "Permission denied", "/elsewhere/raw.txt")
    with pytest.raises(StorageError, match=r"^/elsewhere/raw\.txt cannot be opened"), atomic_write(tmp_path / "x"):
        raise error


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(ValueError, match="a bug"), atomic_write(tmp_path / "x"):
        raise ValueError("a bug")


def test_what_a_link_leads_to_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "real").mkdir()
    for name, kind in (("note", "file"), ("made", "folder"), ("built", "work folder")):
        link = tmp_path / name
        link.symlink_to(tmp_path / "real" / name)
        for content in ("first", "second"):
            if kind == "file":
                write_text(link, content)
            elif kind == "folder":
                with atomic_write(link) as folder:
                    folder.mkdir()
                    (folder / "what").write_text(content)
            else:
                with work_folder(link, "") as work:
                    (work / "done").mkdir()
                    (work / "done" / "what").write_text(content)
                    publish(work / "done", link, "what")
            real = tmp_path / "real" / name
            assert (real if kind == "file" else real / "what").read_text() == content
            assert link.is_symlink()
    assert len(list(tmp_path.iterdir())) == 4
    assert len(list((tmp_path / "real").iterdir())) == 3


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("dangling", "is a link to {folder}/nowhere/x, and there is no folder {folder}/nowhere"),
        ("dangling/x", "{folder}/dangling is a link to {folder}/nowhere/x, and there is no folder {folder}/nowhere/x"),
        ("a", "its links lead in a circle"),
        ("a/x", "its links lead in a circle"),
        ("n" * 300, "its name is too long"),
        # The files beside it would not fit.
        ("n" * 240, "its name is too long"),
        (f"{'n' * 300}/x", "its name is too long"),
        (f"new/{'n' * 300}/x", "its name is too long"),
        ("file/x", "{folder}/file is a file"),
        ("file/x/y", "{folder}/file is a file"),
        ("", "is empty"),
    ],
)
def test_a_place_that_cannot_be_written_to(tmp_path, monkeypatch, place, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for name, target in (("a", "b"), ("b", "a"), ("dangling", "nowhere/x")):
        (tmp_path / name).symlink_to(target)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ZICLError) as caught:
        check_place(Path(place))
    assert said.format(folder=tmp_path) in caught.value.message
    assert caught.value.hint
    assert sorted(tmp_path.iterdir()) == before


def test_a_place_that_can_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("missing")
    (tmp_path / "folder").symlink_to(".")
    for place in ("file", "link", "folder", "folder/new", "new/in/new", "n" * 200):
        check_place(tmp_path / place)


def test_a_folder_that_was_removed_under_the_process(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StorageError, match="in which zicl was started is gone"):
        check_place(Path("x.csv"))
    check_place(tmp_path / "x.csv")


def test_the_folder_of_models_is_a_folder(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", os.devnull):
        monkeypatch.setenv("ZICL_HOME", str(path))
        with pytest.raises(StorageError, match=f"{path} is no folder") as caught:
            home()
        assert "ZICL_HOME" in caught.value.hint
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "new"))
    assert home() == tmp_path / "new"
