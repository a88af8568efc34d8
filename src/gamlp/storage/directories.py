"""Atomic writes of whole folders: filled under a temporary name, then renamed in one step.

Where an older folder is in the place, the two are exchanged (Linux: renameat2), so that at every moment one of them is
whole and in place; elsewhere the older one is renamed out of the way first.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gamlp.errors import disk_errors
from gamlp.storage.files import UNTOUCHED, sync_folder
from gamlp.storage.locks import hold, sweep, temporary_name

HERE, EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


@contextmanager
def making(place: Path) -> Iterator[Path]:
    """Yield a new folder; when the block ends without an error it takes the place of whatever is at `place`."""
    place = place.absolute()
    temporary, descriptor = temporary_name(place), None
    with disk_errors(f"{place} could not be written", UNTOUCHED):
        sweep(place)
        try:
            temporary.mkdir(parents=True)
            if os.name != "nt":
                descriptor = os.open(temporary, os.O_RDONLY)
                hold(descriptor)
            yield temporary
            put_in_place(temporary, place)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if descriptor is not None:
                os.close(descriptor)


def put_in_place(whole: Path, place: Path) -> None:
    """Rename a finished folder to its place; an older one that is there goes once the new one is safe."""
    place = place.absolute()
    old = whole
    if not place.exists():
        whole.rename(place)
    elif not exchange(whole, place):
        old = temporary_name(place, ".old")
        place.rename(old)
        try:
            whole.rename(place)
        except OSError:
            old.rename(place)
            raise
    sync_folder(place.parent)
    shutil.rmtree(old, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; False where the system cannot."""
    with suppress(AttributeError, OSError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        return int(rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE)) == 0
    return False
