"""Memory for the large results of a training step, kept for the next step while training, or prediction, lasts.

    with kept():
        …                             every `room` that is let go serves again

A step asks for the same sizes as the one before. Fresh memory costs a fault and a clearing for every page of it, time
that the matrix products of a step wait for.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from gamlp.storage.files import Array
from gamlp.storage.huge_pages import empty, on_a_line

MOST = 2**30  # bytes that are kept


class Rooms:
    """What was let go, by size; a room serves for what fills at least half of it."""

    def __init__(self) -> None:
        self._kept: list[Array] = []
        self._back: deque[Array] = deque()  # let go, at any moment and in any thread
        self._lock = threading.Lock()

    def take(self, size: int) -> Array:
        """Return room for at least so many values."""
        with self._lock:
            while self._back:
                insort(self._kept, self._back.popleft(), key=len)
            while sum(room.nbytes for room in self._kept) > MOST:
                self._kept.pop(0)
            at = bisect_left(self._kept, size, key=len)
            if at < len(self._kept) and len(self._kept[at]) <= 2 * size:
                return self._kept.pop(at)
        return empty((size,), np.float32)

    def lend(self, shape: tuple[int, ...]) -> Array:
        """Return an array that brings its room back when it, and all views of it, are let go."""
        size = prod(shape)
        room = self.take(size)
        held = np.frombuffer(room.data, np.float32, size)  # views hold on to this one, not to the room
        weakref.finalize(held, self._back.append, room).atexit = False
        return held.reshape(shape)


_rooms: list[Rooms] = []  # one at most: of the training or prediction that is under way


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is let go until this ends; inside another it is that one's."""
    if _rooms:
        yield
        return
    _rooms.append(Rooms())
    try:
        yield
    finally:
        _rooms.clear()


def room(shape: tuple[int, ...]) -> Array:
    """Return an uninitialised float32 array that begins on a cache line."""
    keeping = _rooms[:1]  # looked at once: another thread may end it
    return keeping[0].lend(shape) if keeping else on_a_line(shape, np.float32)
