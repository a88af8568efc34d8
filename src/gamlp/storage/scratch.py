"""Folders for what is needed for a while: gone with what reads them, and after a kill with the next one that is made.

    folder = scratch_folder("gamlp-hops")     below TMPDIR, locked as long as this process lives
    sweep_scratch("gamlp-hops")               before free space is measured
    removed_with(array, folder)               when nobody reads the array any more
    remove_scratch(folder)                    now

They may fill half of a disk, and a process that is killed outright cannot remove its own.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from gamlp.errors import disk_errors
from gamlp.storage.locks import hold, sweep, temporary_name

_LOCKS: dict[Path, int] = {}  # folder → its descriptor, which holds the lock


def scratch_folder(name: str) -> Path:
    """Make a new folder, and remove those of the same name whose process is gone."""
    place = sweep_scratch(name)
    with disk_errors(f"{place.parent} could not be written", "Name another folder by TMPDIR."):
        while True:
            folder = temporary_name(place)
            folder.mkdir(mode=0o700)
            if os.name == "nt":
                return folder
            with suppress(FileNotFoundError):  # another process swept it before it was locked
                descriptor = os.open(folder, os.O_RDONLY)
                if hold(descriptor, wait=False) and folder.exists():
                    _LOCKS[folder] = descriptor
                    return folder
                os.close(descriptor)


def sweep_scratch(name: str) -> Path:
    """Remove what killed processes of this machine left; return where folders of that name are made."""
    machine = platform.node().replace(".", "-")  # a folder that several machines share: each knows its own locks alone
    place = Path(tempfile.gettempdir()) / f"{name}-{machine}"
    sweep(place)
    return place


def removed_with(owner: object, folder: Path) -> None:
    """Remove the folder when `owner` is gone, at the latest when Python ends."""
    weakref.finalize(owner, remove_scratch, folder)


def remove_scratch(folder: Path) -> None:
    """Remove the folder, and let its lock go."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(KeyError):
        os.close(_LOCKS.pop(folder))
