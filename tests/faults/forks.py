"""Run a command in a fork of this process: everything heavy is imported once, a fault costs milliseconds.

Forking is safe while this process has one thread: call `warm` first, and start no pools.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import resource
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

TIMEOUT = 60.0  # seconds; on an idle machine no command here takes one
HUNG = -signal.SIGALRM
ARENAS = -8  # M_ARENA_MAX of glibc


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, or minus a signal; what it sent before; the most memory it had, in bytes."""

    code: int
    sent: Any
    memory: int

    @property
    def said(self) -> str:
        """Return its standard error, where it got so far as to send it."""
        return str(self.sent["err"]) if isinstance(self.sent, dict) else ""


def one_thread() -> None:
    """Keep every library of this process to one thread; call before any of them is imported."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    ctypes.CDLL(None).mallopt(ARENAS, 1)  # or every thread reserves address space, which is limited here


def forked(work: Callable[[], Any], *, timeout: float = TIMEOUT, memory: int | None = None) -> Ended:
    """Return how `work` ended in a child; it may not take more address space than `memory` bytes beyond what is had."""
    assert threading.active_count() == 1, [thread.name for thread in threading.enumerate()]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _live(work, writing, memory)
    os.close(writing)
    return _wait(child, reading, timeout)


def command(words: list[str]) -> dict[str, Any]:
    """Run the command line; return its code and what it said, a traceback included."""
    from gamlp.cli import main

    code: Any = 0
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(words)
        except SystemExit as left:
            code = left.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def _live(work: Callable[[], Any], writing: int, memory: int | None) -> None:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if memory is not None:
            limit = _address_space() + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        sent = work()
        with os.fdopen(writing, "w") as pipe:
            json.dump(sent, pipe)
        code = sent["code"] if isinstance(sent, dict) and "code" in sent else 0
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


def _wait(child: int, reading: int, timeout: float) -> Ended:
    content, hung = b"", False
    while True:
        ready, _, _ = select.select([reading], [], [], timeout)
        if not ready:
            os.kill(child, signal.SIGKILL)
            hung = True
            break
        part = os.read(reading, 2**16)
        if not part:
            break
        content += part
    os.close(reading)
    _, status, used = os.wait4(child, 0)
    code = HUNG if hung else os.waitstatus_to_exitcode(status)
    try:
        sent = json.loads(content) if content else None
    except ValueError:
        sent = None
    return Ended(code, sent, used.ru_maxrss * 1024)


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * resource.getpagesize()
