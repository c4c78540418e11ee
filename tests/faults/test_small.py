"""A sample of the faults of `make test-faults`, without models, and that the harness notices what it looks for."""

from dataclasses import replace

from tests.faults.running import run_sweep
from tests.faults.shim import Operation, chosen, read_log
from tests.faults.small import JOBS


def test_nothing_is_lost_or_left_wherever_a_write_fails(shim, scratch):
    found = run_sweep("small", list(JOBS), scratch / "sweep", shim, 16)
    problems = [problem for each in found.values() for problem in each["problems"]]
    assert not problems, "\n".join(problems)
    assert {kind for each in found.values() for kind, count in each["by_kind"].items() if count} == {
        "ENOSPC", "EIO", "EACCES", "SIGKILL"
    }  # fmt: skip
    # What is renamed is on disk before: the file is synced after its last write.
    types = [operation.type for operation in read_log(scratch / "sweep" / "file" / "operations")]
    assert types == ["o", "w", "s", "r"]


def test_a_writer_that_is_not_atomic_is_noticed(shim, scratch):
    found = run_sweep("careless", ["careless"], scratch / "sweep", shim, 0)["careless"]
    said = "\n".join(found["problems"])
    assert "opens as" in said
    assert "a traceback" in said
    assert "leaves other files" in said


def test_an_artefact_that_is_refused_after_a_fault_is_not_the_old_one(shim, scratch):
    said = run_sweep("careless", ["refusing"], scratch / "sweep", shim, 0)["refusing"]["problems"]
    assert any("afterwards it opens as refused" in problem for problem in said)


def test_of_writes_in_a_row_the_first_the_middle_and_the_last_are_broken():
    writes = [Operation(number, "w", "a") for number in range(1, 8)]
    other = [replace(each, number=each.number + 7, path="b") for each in writes[:1]]
    assert [each.number for each in chosen([*writes, *other])] == [1, 4, 7, 8]
