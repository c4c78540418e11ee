"""Every artefact, every file operation, every fault: `make test-faults`."""

import json
import os
from pathlib import Path

import pytest

from tests.faults.jobs import JOBS
from tests.faults.running import run_sweep

pytestmark = pytest.mark.faults
# At most so many faults per job, spread evenly over its operations; 0 is all of them.
MOST = int(os.environ.get("ZICL_FAULTS_PER_JOB", "150"))
# The numbers of a run are written there.
RESULTS = os.environ.get("ZICL_FAULTS_RESULTS")


@pytest.mark.parametrize("job", JOBS)
def test_what_was_is_kept_and_what_is_left_can_be_finished(job, shim, scratch, lm_folder, encoder_folder):
    found = run_sweep("jobs", [job], scratch / "sweep", shim, MOST, lm_folder, encoder_folder)[job]
    problems = found.pop("problems")
    if RESULTS:
        record(Path(RESULTS), job, {**found, "problems": len(problems)})
    assert not problems, "\n".join(problems)
    assert found["faults"]


def record(path: Path, job: str, found: dict) -> None:
    stored = json.loads(path.read_text()) if path.exists() else {"jobs": {}}
    jobs = {**stored["jobs"], job: found}
    content = {
        "command": "make test-faults",
        "faults_per_job_at_most": MOST or "all",
        "faults": sum(each["faults"] for each in jobs.values()),
        "problems": sum(each["problems"] for each in jobs.values()),
        "jobs": {name: jobs[name] for name in JOBS if name in jobs},
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
