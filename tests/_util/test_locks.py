"""One process at a time, and what the others are told. Real processes; none of them is waited for by the clock."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from zicl._util.locks import _WAIT, locked, work_folder
from zicl.exceptions import StorageError

HOLD = """
import sys
from pathlib import Path
from zicl._util.locks import locked
with locked(Path(sys.argv[1]), ""):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of a folder until a line is written to it."""
    command = [sys.executable, "-c", HOLD, tmp_path / "folder"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_is_told_who_holds_it_since_when_and_what_to_do(tmp_path, holder):
    with pytest.raises(StorageError) as caught, locked(tmp_path / "folder", "it is being built"):
        pass
    assert re.match(
        rf"it is being built \(process {holder.pid}, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\)", str(caught.value)
    )
    assert f"kill {holder.pid}" in caught.value.hint


def test_the_lock_of_a_killed_process_is_free(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with locked(tmp_path / "folder", ""):
        pass
    assert list(tmp_path.iterdir()) == []


def test_one_that_waits_goes_on_when_the_first_ends(tmp_path, holder):
    said = []
    # It is told once, however long the wait is: here longer than until the next look.
    ending = threading.Timer(3 * _WAIT, holder.communicate, ["\n"])

    def let_go(message):
        said.append(message)
        ending.start()

    with locked(tmp_path / "folder", "fetched by another process", waiting=let_go):
        ending.join()
        assert len(said) == 1
        assert said[0].startswith(f"fetched by another process (process {holder.pid}")


def test_an_error_is_not_hidden_by_a_folder_that_is_gone(tmp_path):
    def fail():
        with locked(tmp_path / "folder", ""):
            shutil.rmtree(tmp_path / "folder")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with locked(tmp_path / "folder", ""):
        pass


def test_a_folder_of_work_stays_after_an_error_and_goes_at_the_end(tmp_path):
    def fail():
        with work_folder(tmp_path / "made", "") as work:
            (work / "half").write_text("")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    work = tmp_path / "made.partial"
    assert (work / "half").exists()
    with work_folder(tmp_path / "made", "") as work:
        assert (work / "half").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_without_a_note_is_still_a_lock(tmp_path, holder):
    (tmp_path / "folder" / ".lock.json").write_text("{")
    with pytest.raises(StorageError, match=r"^it is being built\n"), locked(tmp_path / "folder", "it is being built"):
        pass
    os.unlink(tmp_path / "folder" / ".lock.json")


def test_parents_that_were_made_go_with_the_lock_if_they_hold_nothing(tmp_path):
    def fail(name):
        (tmp_path / "there").mkdir(exist_ok=True)
        with locked(tmp_path / "there" / "new" / "newer" / ".out.csv.lock", ""):
            if name:
                (tmp_path / "there" / "new" / name).write_text("")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail("")
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]
    with pytest.raises(ZeroDivisionError):
        fail("note")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "note", "there"]
