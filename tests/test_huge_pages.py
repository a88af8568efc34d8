"""Arrays on huge pages: they begin where one begins, and the missing ones are asked for again."""

import mmap
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.storage import huge_pages
from gamlp.storage.huge_pages import HUGE_PAGE, LINE, empty, prefaulted


@pytest.mark.parametrize("size", [4, 1000, HUGE_PAGE, 5 * HUGE_PAGE + 4])
def test_settled_arrays_hold_what_is_written(size):
    array = prefaulted(empty((size // 4,), np.float32))
    assert array.ctypes.data % (LINE if size < HUGE_PAGE else HUGE_PAGE) == 0
    array[:] = np.arange(len(array))
    assert_array_equal(array, np.arange(len(array), dtype=np.float32))


def test_all_memory_is_there_before_it_is_used():
    size = 40 * HUGE_PAGE
    before = resident()
    array = prefaulted(empty((10, size // 20), np.float16))
    assert resident() - before > 0.9 * array.nbytes


def resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE


def test_missing_huge_pages_are_asked_for_again(monkeypatch):
    array, asked = empty((3 * HUGE_PAGE + 4096,), np.uint8), []

    def collapsed(memory: mmap.mmap, start: int) -> bool:
        asked.append(np.frombuffer(memory, np.uint8).ctypes.data + start - array.ctypes.data)
        return len(asked) in {1, 5}  # the first at once, the third the second time, the second never

    monkeypatch.setattr(huge_pages, "_collapsed", collapsed)
    prefaulted(array)
    assert asked == [0, HUGE_PAGE, 2 * HUGE_PAGE, HUGE_PAGE, 2 * HUGE_PAGE, HUGE_PAGE]
