"""One place for progress and messages: the library reports here, the command line decides what shows.

    with progress("propagate", total=hops) as advance:
        for hop in range(hops):
            ...
            advance()

Without a reporter nothing is shown and nothing is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

log = logging.getLogger("gamlp")
log.addHandler(logging.NullHandler())
NOTICE = (logging.INFO + logging.WARNING) // 2  # what a user wants to know and need not act on

Advance = Callable[..., None]  # advance(steps=1, note="…")
Reporter = Callable[[str, float | None], AbstractContextManager[Advance]]  # of a description and its steps in all

_reporter: list[Reporter] = []  # one at most


def report_to(reporter: Reporter | None) -> None:
    """Send progress to `reporter` from now on; None is silence."""
    _reporter[:] = [] if reporter is None else [reporter]


def progress(description: str, *, total: float | None = None) -> AbstractContextManager[Advance]:
    """Report the steps of some long work."""
    return _reporter[0](description, total) if _reporter else nullcontext(lambda steps=1, note="": None)
