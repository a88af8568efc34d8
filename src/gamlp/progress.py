"""One place for progress and messages: the library reports here, the command line decides what shows.

    with progress("propagate", total=hops) as advance:
        for hop in range(hops):
            ...
            advance()

Without a reporter nothing is shown and nothing is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

log = logging.getLogger("gamlp")
log.addHandler(logging.NullHandler())

Advance = Callable[..., None]  # advance(steps=1, note="…")


class Reporter(Protocol):
    """Shows progress: rich bars on a terminal, or nothing."""

    def start(self, description: str, total: float | None) -> object: ...

    def advance(self, task: object, steps: float, note: str) -> None: ...

    def stop(self, task: object) -> None: ...


_reporter: Reporter | None = None


def report_to(reporter: Reporter | None) -> None:
    """Send progress to `reporter` from now on; None is silence."""
    global _reporter
    _reporter = reporter


@contextmanager
def progress(description: str, *, total: float | None = None) -> Iterator[Advance]:
    """Report the steps of one piece of long work."""
    reporter = _reporter
    if reporter is None:
        yield lambda steps=1, note="": None
        return
    task = reporter.start(description, total)

    def advance(steps: float = 1, note: str = "") -> None:
        reporter.advance(task, steps, note)

    try:
        yield advance
    finally:
        reporter.stop(task)
