"""A sample of what `make faults` does in full: kills, failing calls and corrupted files; see docs/reliability.md."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks into /proc")


@pytest.fixture(scope="module")
def sample():
    """One process for all: it forks, which a process with threads, as pytest's may be, cannot do safely."""
    command = [sys.executable, str(Path(__file__).with_name("report.py")), "--sample"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_killed_or_failing_anywhere_it_resumes_to_the_same_bits(sample):
    tally = sample["tally"]
    assert tally["defects"] == []
    faults = sum(tally["injected"].values())
    assert faults >= 30
    assert set(tally["injected"]) >= {"kill", "torn", "power", "ENOSPC", "EIO"}
    assert sum(count for name, count in tally["outcomes"].items() if name.endswith("identical bits")) == faults
    assert tally["boundaries"]["train"] > 100


def test_no_corrupted_file_gives_a_wrong_result_or_a_traceback(sample):
    findings = sample["findings"]
    assert findings["defects"] == []
    assert sum(findings["tried"].values()) >= 250
    assert findings["outcomes"]["detected"] > 200
