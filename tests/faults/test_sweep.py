"""Every artefact, with a sample of faults that is spread over all its file operations: `make test-faults`."""

import os
from pathlib import Path

import pytest

from tests.faults.jobs import JOBS
from tests.faults.running import record, run_sweep

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
        record(Path(RESULTS), list(JOBS), job, MOST, {**found, "problems": len(problems)})
    assert not problems, "\n".join(problems)
    assert found["faults"]
