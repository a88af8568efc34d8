"""What a process holds within a limit: freed arrays are given back at once, whatever lies behind them."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Arrays of 8 MiB, freed once, are what glibc takes from its heap from then on. Of 32 that follow every second one is
# freed: in a heap the others, above them, would keep all of it.
HOLES = """
import numpy as np
from gamlp.storage.memory import resident_bytes, room_within
for _ in range(4):
    np.ones(2**20)
room_within(2**30)
before = resident_bytes()
held = [np.ones(2**20) for _ in range(32)]
full = resident_bytes()
del held[::2]
print(full - before, resident_bytes() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc")
def test_what_is_freed_between_arrays_in_use_is_given_back():
    found = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True).stdout
    full, half = map(int, found.split())
    assert full >= 32 * 2**23
    assert half <= 18 * 2**23
