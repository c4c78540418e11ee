"""A sample of the faults of `make test-faults`, without models, and that the harness notices what it looks for."""

import json
from dataclasses import replace

from tests.faults.jobs import JOBS as ALL_JOBS
from tests.faults.running import record, run_sweep
from tests.faults.shim import Operation, chosen, read_log
from tests.faults.small import JOBS
from tests.readme import ROOT


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


def test_results_of_a_job_leave_those_of_the_others(tmp_path):
    path, names = tmp_path / "faults.json", ["one", "two"]
    found = {"operations": 8, "faults": 5, "by_kind": {"EIO": 5}, "problems": 0}
    record(path, names, "two", 30, found)
    record(path, names, "one", 150, {**found, "problems": 1})
    stored = json.loads(path.read_text())
    assert {name: each["command"] for name, each in stored["jobs"].items()} == {
        "one": "ZICL_FAULTS_PER_JOB=150 make test-faults",
        "two": "ZICL_FAULTS_PER_JOB=30 make test-faults",
    }
    assert [stored[key] for key in ("operations", "faults", "problems")] == [16, 10, 1]


def test_the_stored_results_are_as_they_are_written(tmp_path):
    text = (ROOT / "benchmarks/results/faults.json").read_text()
    for name, found in json.loads(text)["jobs"].items():
        most = int(found["command"].split()[0].removeprefix("ZICL_FAULTS_PER_JOB="))
        record(tmp_path / "faults.json", list(ALL_JOBS), name, most, found)
    assert (tmp_path / "faults.json").read_text() == text
