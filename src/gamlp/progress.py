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

    def start(self, description: str, total: float | None) -> object:
        """Begin some work; the answer names it in the calls below."""

    def advance(self, task: object, steps: float, note: str) -> None:
        """Say that steps of it are done."""

    def stop(self, task: object) -> None:
        """Say that it is over."""


_reporter: list[Reporter] = []  # one at most


def report_to(reporter: Reporter | None) -> None:
    """Send progress to `reporter` from now on; None is silence."""
    _reporter[:] = [] if reporter is None else [reporter]


@contextmanager
def progress(description: str, *, total: float | None = None) -> Iterator[Advance]:
    """Report the steps of some long work."""
    if not _reporter:
        yield lambda steps=1, note="": None
        return
    reporter = _reporter[0]
    task = reporter.start(description, total)

    def advance(steps: float = 1, note: str = "") -> None:
        reporter.advance(task, steps, note)

    try:
        yield advance
    finally:
        reporter.stop(task)
