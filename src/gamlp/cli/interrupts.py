"""Ctrl-C, and SIGTERM and SIGHUP taken as Ctrl-C: a command that is told to stop does stop, wherever it is.

Python raises KeyboardInterrupt between two instructions, in whatever runs there. Two things may become of it that are
not a stop: code in C that calls back, a plotting library's say, answers it with an error of its own; and where no
exception can be raised, in a weak reference's callback or a destructor, it is dropped. So it is remembered that a
signal came, and what was dropped is raised again a moment later.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = tuple(  # SIGTERM is how systems end a job, SIGHUP how a terminal does that is closed
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
MOMENT = 0.01  # seconds until a dropped KeyboardInterrupt is raised again


class Interrupts:
    """Whether the command that is running was told to stop."""

    asked = False
    number = int(signal.SIGTERM)
    again: threading.Timer | None = None

    def came(self, number: int, _: object) -> None:
        """Remember a signal, and stop what is running: a signal handler."""
        self.asked, self.number = True, number
        raise KeyboardInterrupt

    def dropped(self) -> None:
        """Raise it again in a moment, as Python dropped it."""
        self.again = threading.Timer(MOMENT, _thread.interrupt_main, [self.number])
        self.again.start()


interrupts = Interrupts()


@contextmanager
def listening() -> Iterator[None]:
    """Stop the block at a signal, unless it is ignored here (nohup); only the main thread can."""
    interrupts.asked = False
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    tell = sys.unraisablehook
    sys.unraisablehook = lambda lost: interrupts.dropped() if lost.exc_type is KeyboardInterrupt else tell(lost)
    before = [signal.signal(number, interrupts.came) for number in told]
    try:
        yield
    finally:
        if interrupts.again is not None:
            interrupts.again.cancel()
        for number, handler in zip(told, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)  # None: not set by Python
        sys.unraisablehook = tell
