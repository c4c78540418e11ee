"""What a run of the fuzzer writes; it runs with ``make fuzz`` alone."""

import json
import re

from tests.fuzz.run import record
from tests.readme import ROOT


def test_results_of_a_target_leave_those_of_the_others(tmp_path):
    path, result = tmp_path / "fuzz.json", {"executions": 100, "seconds": 61, "finds": 0}
    record(path, "onnx", 60, result)
    record(path, "csv", 5, {**result, "finds": 1})
    record(path, "onnx", 240, result)
    assert json.loads(path.read_text())["targets"] == {
        "csv": {"command": "make fuzz SECONDS=5 TARGETS=csv", **result, "finds": 1},
        "onnx": {"command": "make fuzz SECONDS=240 TARGETS=onnx", **result},
    }


def test_the_stored_results_are_as_they_are_written(tmp_path):
    text = (ROOT / "benchmarks/results/fuzz.json").read_text()
    for name, result in json.loads(text)["targets"].items():
        seconds = int(re.search(r"SECONDS=(\d+)", result["command"])[1])
        record(tmp_path / "fuzz.json", name, seconds, result)
    assert (tmp_path / "fuzz.json").read_text() == text
