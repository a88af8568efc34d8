"""Scratch folders go with what reads them, and those of killed processes with the next one that is made."""

import gc
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from gamlp.storage.scratch import remove_scratch, removed_with, scratch_folder

MAKES_ONE = "import time; from gamlp.storage.scratch import scratch_folder; print(scratch_folder('made'), flush=True)"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_owner(place):
    owner, folder = np.zeros(3), scratch_folder("made")
    (folder / "file").write_text("x")
    removed_with(owner, folder)
    assert list(place.iterdir()) == [folder]
    del owner
    gc.collect()
    assert not list(place.iterdir())


def test_what_is_in_use_stays_and_can_be_removed_at_once(place):
    one, other = scratch_folder("made"), scratch_folder("made")
    assert one != other
    assert one.is_dir()
    remove_scratch(one)
    assert list(place.iterdir()) == [other]
    remove_scratch(other)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not(place):
    environment = {**os.environ, "TMPDIR": str(place)}
    words = [sys.executable, "-c", f"{MAKES_ONE}; time.sleep(60)"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        left = process.stdout.readline().strip()
        mine = scratch_folder("made")
        assert sorted(map(str, place.iterdir())) == sorted([left, str(mine)])
        process.send_signal(signal.SIGKILL)
        process.wait()
    again = scratch_folder("made")
    assert sorted(place.iterdir()) == sorted([mine, again])
    for folder in (mine, again):
        remove_scratch(folder)
