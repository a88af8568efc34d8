"""File locks: one process at a time works on a folder, and what a killed one left is recognised and removed.

    with locked(folder): …     refuses a folder on which another process works: .<name>.lock beside it is locked
    hold(descriptor)           locks a temporary file or folder while it is written
    sweep(path)                removes temporary files of `path` that no process holds any more

Locks are the system's (flock): they end with the process, however it ends. Where a file system has none, or on Windows,
nothing is refused and nothing is swept. The package filelock would serve `locked` alone, not the other two; it leaves
its file behind, and where there is no flock it falls back to a file whose mere presence locks, also after a kill.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gamlp.errors import StorageError, disk_errors

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

ENDINGS = (".tmp", ".old")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from working on `folder` while the block runs."""
    if fcntl is None:
        yield
        return
    folder = Path(folder).absolute()
    lock = folder.with_name(f".{folder.name}.lock")
    descriptor = _open_locked(lock, folder)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(descriptor)


def _open_locked(lock: Path, folder: Path) -> int:
    """Return the descriptor of the locked file; it may be gone by the time it is locked, then it is made again."""
    while True:
        with disk_errors(f"{folder} could not be written", "Choose a place that can be written to."):
            lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        if not hold(descriptor, wait=False):
            os.close(descriptor)
            raise StorageError(f"Another process works on {folder}.\nWait until it is done, or choose another folder.")
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def hold(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file or folder; False where another process has it, or the file was removed in the meantime."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return not isinstance(error, BlockingIOError)  # any other is that of a file system without locks
    return True


def temporary_name(path: Path, ending: str = ".tmp") -> Path:
    """Return a new name beside `path`, which `sweep` finds."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{ending}")


def sweep(path: Path) -> None:
    """Remove what killed processes left of their attempts to write `path`: .<name>.<random>.tmp and .old."""
    if fcntl is None:
        return
    beginning = f".{path.name}."
    with suppress(OSError), os.scandir(path.absolute().parent) as found:
        for entry in found:
            if entry.name.startswith(beginning) and entry.name.endswith(ENDINGS):
                _remove_unheld(Path(entry.path))


def is_bare(folder: Path) -> bool:
    """Say whether a folder holds nothing, or nothing but what a killed process left of its first file."""
    return folder.is_dir() and all(path.name.startswith(".") and path.suffix in ENDINGS for path in folder.iterdir())


def _remove_unheld(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)
