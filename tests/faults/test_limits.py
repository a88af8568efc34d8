"""Too little memory, no room for files, and signals at any time: a message or an end, and the same bits afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and limits address space")


@pytest.fixture(scope="module")
def found():
    command = [sys.executable, str(Path(__file__).with_name("limits.py"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("limit", ["memory", "file size"])
def test_a_limit_gives_one_message_and_leaves_nothing(found, limit):
    assert found[limit]["code"] in (2, 3), found[limit]
    assert "Traceback" not in found[limit]["said"]
    assert found[limit]["said"]
    assert found["left"] == ["inputs", "out"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_at_any_time_loses_nothing(found, name):
    for wait in (0.02, 0.1, 0.2):
        one = found[f"{name} after {wait} s"]
        assert one["code"] in (0, 130), one
        assert "Traceback" not in one["said"]
        assert one["again"]["code"] == 0, one
        assert one["same"], one
