"""Make the n-th call that changes the disk go wrong, in this process.

Every opening for writing, write, truncation, sync, rename, making and removing of files below one folder counts as a
boundary, wherever in Python it comes from: files are opened with a raw layer of ours below Python's own buffers, so a
boundary is what the system would see, not what the program wrote. Compiled code that writes by itself would pass
unseen; numpy, the only such code here, is told to write through the file object.

    kill     the process is gone before the call            torn    … in the middle of a write, after it for other calls
    power    as kill, and what was never synced is lost      ENOSPC, EIO   the call fails
    short    a write takes half of what it was given and says so
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}
KILLS = ("kill", "torn", "power")
FAULTS = (*KILLS, *ERRORS, "short")
WRITES = ("write", "pwrite")


class Injector:
    """Counts boundaries below `folder`; at number `at` the fault happens, once. `seen` names all that were met."""

    def __init__(self, folder: Path, *, fault: str | None = None, at: int = -1) -> None:
        self.folder, self.fault, self.at = str(folder), fault, at
        self.seen: list[str] = []
        self.unsynced: dict[int, int] = {}  # inode → a descriptor that stays open
        self.real: dict[str, Callable[..., Any]] = {}

    def install(self) -> None:
        """Take the place of the calls; there is no way back, a process is meant to be forked for one fault."""
        for name in ("fsync", "write", "pwrite", "rename", "replace", "mkdir", "unlink", "rmdir", "open", "close"):
            self.real[name] = getattr(os, name)
        for name in ("rename", "replace", "mkdir", "unlink", "rmdir"):
            setattr(os, name, self._on_path(name))
        os.remove = os.unlink
        os.fsync = self._fsync
        os.write = self._on_descriptor("write")
        os.pwrite = self._on_descriptor("pwrite")
        builtins.open = io.open = self._open
        import numpy.lib._format_impl as npy

        from gamlp.storage import directories

        npy.isfileobj = lambda _: False
        self.real["exchange"] = directories.exchange
        directories.exchange = self._on_path("exchange")

    def meet(self, name: str) -> str | None:
        """Count a boundary; return the fault that is to happen here, or carry it out."""
        number = len(self.seen)
        self.seen.append(name)
        if number != self.at:
            return None
        if self.fault in ERRORS:
            raise OSError(ERRORS[self.fault], os.strerror(ERRORS[self.fault]))
        if self.fault in ("kill", "power"):
            self.die()
        return self.fault

    def die(self) -> None:
        """End the process as a kill or a power cut would."""
        if self.fault == "power":
            for descriptor in self.unsynced.values():
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

    def written(self, descriptor: int) -> None:
        """Remember that a file has content that was not synced."""
        inode = os.fstat(descriptor).st_ino
        if self.fault == "power" and inode not in self.unsynced:
            self.unsynced[inode] = self.real["open"](f"/proc/self/fd/{descriptor}", os.O_RDWR)

    def _here(self, path: Any) -> bool:
        return not isinstance(path, int) and os.path.abspath(os.fspath(path)).startswith(self.folder)  # noqa: PTH100

    def _of(self, descriptor: int) -> bool:
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}").startswith(self.folder)  # noqa: PTH115
        except OSError:
            return False

    def _on_path(self, name: str) -> Callable[..., Any]:
        def call(path: Any, *words: Any, **options: Any) -> Any:
            below = options.get("dir_fd")
            if not (self._of(below) if below is not None else self._here(path)):
                return self.real[name](path, *words, **options)
            fault = self.meet(name)
            try:
                return self.real[name](path, *words, **options)
            finally:
                if fault == "torn":
                    self.die()

        return call

    def _fsync(self, descriptor: int) -> None:
        if self._of(descriptor):
            fault = self.meet("fsync")
            self.real["fsync"](descriptor)
            kept = self.unsynced.pop(os.fstat(descriptor).st_ino, None)
            if kept is not None:
                self.real["close"](kept)
            if fault == "torn":
                self.die()

    def _on_descriptor(self, name: str) -> Callable[..., int]:
        def call(descriptor: int, content: Any, *words: Any) -> int:
            if not self._of(descriptor):
                return int(self.real[name](descriptor, content, *words))
            fault = self.meet(name)
            if fault is not None:
                content = memoryview(content).cast("B")[: (memoryview(content).nbytes + 1) // 2]
            self.written(descriptor)
            done = int(self.real[name](descriptor, content, *words))
            if fault == "torn":
                self.die()
            return done

        return call

    def _open(self, path: Any, mode: str = "r", buffering: int = -1, *words: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or not self._here(path):
            return io.open_code_real(path, mode, buffering, *words, **options)
        if self.meet("open") == "torn":
            self.real["close"](self.real["open"](path, os.O_CREAT | os.O_WRONLY))
            self.die()
        raw = RawFile(self, path, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *words, **options)


io.open_code_real = io.open  # type: ignore[attr-defined]


class RawFile(io.FileIO):
    """The layer below Python's buffers: what is written here goes to the system."""

    def __init__(self, injector: Injector, path: Any, mode: str) -> None:
        super().__init__(path, mode)
        self.injector = injector

    def write(self, content: Any) -> int:
        fault = self.injector.meet("write")
        view = memoryview(content).cast("B")
        self.injector.written(self.fileno())
        done = super().write(view[: (len(view) + 1) // 2] if fault is not None else view)
        if fault == "torn":
            self.injector.die()
        return done or 0

    def truncate(self, size: int | None = None) -> int:
        fault = self.injector.meet("truncate")
        done = super().truncate(size)
        if fault == "torn":
            self.injector.die()
        return done
