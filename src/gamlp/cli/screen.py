"""What is shown: results on standard output, progress and notes on standard error.

A pipe or a file has no width: lines may be long there, so that no table is cut. rich follows NO_COLOR and FORCE_COLOR:
without a terminal there are no colours, unless FORCE_COLOR asks for them (`FORCE_COLOR=1 gamlp … | less -R`).

Names come out of files: control characters in them are shown, never sent to the terminal.

All that is told goes through the logger `gamlp`: standard error shows notes and what is above NOTICE, `--verbose` more,
`--quiet` errors alone, and `--log FILE` keeps all. Progress is bars on a terminal, and a line now and then elsewhere.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gamlp.errors import disk_errors, printable
from gamlp.progress import NOTICE, Advance, Reporter, log, report_to

PIPE_WIDTH = 160
steps = log.getChild("progress")


class SafeConsole(Console):
    """A console on which no text can move the cursor, change the title or draw in colours of its own."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn text, however it came, into what is drawn."""
        return super().render_str(printable(text), **options)


console = SafeConsole(stderr=True)


def note(text: str) -> None:
    """Tell what is worth knowing beside the result."""
    log.warning("%s", text)


class Notes(logging.Handler):
    """Shows what the library and the commands tell on standard error: warnings as notes, all else as it is."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one; lines of progress stand in for bars, where these cannot be drawn."""
        if record.name == steps.name and draws_bars():
            return
        text = f"Note: {record.getMessage()}" if record.levelno >= logging.WARNING else record.getMessage()
        console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def talking(*, quiet: bool = False, verbose: bool = False, file: Path | None = None) -> Iterator[None]:
    """Show progress and notes while the block runs, as much as is asked for; a log file gets all of it, with times."""
    shown = logging.ERROR if quiet else logging.INFO if verbose else NOTICE
    handlers: list[logging.Handler] = [Notes(shown)]
    if file is not None:
        with disk_errors(f"--log {file} could not be opened", "Choose a file that can be written to."):
            handlers.append(logging.FileHandler(file, encoding="utf-8"))
        handlers[-1].setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        handlers[-1].setLevel(logging.INFO)
    before = log.level
    log.setLevel(min(handler.level for handler in handlers))
    alone = os.environ.get("RANK", "0") == "0"  # of several processes, the first speaks
    for handler in handlers if alone else ():
        log.addHandler(handler)
    try:
        with ExitStack() as stack:
            drawn = stack.enter_context(bars()) if alone and draws_bars() and not quiet else None
            written = lines(5 if verbose else 30) if alone and (file is not None or not (quiet or drawn)) else None
            report_to(together([reporter for reporter in (drawn, written) if reporter is not None]))
            yield
    finally:
        report_to(None)
        log.setLevel(before)
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()


def draws_bars() -> bool:
    """Say whether standard error is a terminal; FORCE_COLOR asks for colours, not bars."""
    return console.file.isatty()


def together(reporters: Sequence[Reporter]) -> Reporter | None:
    """Return one reporter that tells all of these."""
    if len(reporters) < 2:
        return reporters[0] if reporters else None

    @contextmanager
    def reporter(description: str, total: float | None) -> Iterator[Advance]:
        with ExitStack() as stack:
            advances = [stack.enter_context(one(description, total)) for one in reporters]

            def advance(steps: float = 1, note: str = "") -> None:
                for one in advances:
                    one(steps, note=note)

            yield advance

    return reporter


@dataclass
class Work:
    """A piece of work under way."""

    what: str
    total: float | None
    start: float
    done: float = 0.0
    note: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.done:,.0f}" + (f" of {self.total:,.0f}" if self.total else "")

    def left(self, now: float) -> float:
        """Return how many seconds it may still take; 0 where nobody knows."""
        known = self.total and self.done
        return (now - self.start) * (self.total - self.done) / self.done if known and self.total else 0.0


def lines(every: float, clock: Callable[[], float] = time.monotonic) -> Reporter:
    """Return a reporter that logs a line every so many seconds, the first after a third of that.

    seeds 1 of 3 · stage 2 40 of 100, valid 83.20 %, about 2 min left
    """
    under_way: list[Work] = []
    last = clock() - every * 2 / 3

    @contextmanager
    def reporter(description: str, total: float | None) -> Iterator[Advance]:
        work = Work(description, total, clock())
        under_way.append(work)

        def advance(some: float = 1, note: str = "") -> None:
            nonlocal last
            work.done, work.note, now = work.done + some, note or work.note, clock()
            if now - last >= every:
                last, left = now, work.left(now)
                words = [" · ".join(map(str, under_way)), work.note, f"about {duration(left)} left" if left else ""]
                steps.log(NOTICE, "%s", ", ".join(word for word in words if word))

        try:
            yield advance
        finally:
            under_way.remove(work)

    return reporter


def duration(seconds: float) -> str:
    """Say how long in one number: 8 s, 12 min, 3 h, 2 days.

    >>> [duration(seconds) for seconds in (0.2, 59, 90, 4000, 200_000)]
    ['1 s', '59 s', '2 min', '1.1 h', '2.3 days']
    """
    for size, name in ((86_400, "days"), (3_600, "h")):
        if seconds >= size:
            return f"{seconds / size:.1f} {name}"
    return f"{round(seconds / 60)} min" if seconds >= 60 else f"{max(1, round(seconds))} s"


def screen() -> Console:
    """Return the console of standard output; COLUMNS, where it is set, is always obeyed."""
    console = SafeConsole(highlight=False)
    if not console.file.isatty() and "COLUMNS" not in os.environ:
        console.width = max(console.width, PIPE_WIDTH)
    return console


def say(text: str) -> None:
    """Print lines as they are, whatever their length."""
    screen().print(text, markup=False, soft_wrap=True)


def table(
    title: str, columns: Sequence[str], *, left: Collection[str] = (), whole: Collection[str] = (), **style: Any
) -> Table:
    """Return a table without rows: `left` columns, or the first, to the left; columns of `whole` are never wrapped."""
    made = Table(title=escape(title), title_justify="left", **style)
    for name in columns:
        justify: Any = "left" if name in (left or columns[:1]) else "right"
        made.add_column(name, justify=justify, no_wrap=name in whole, overflow="ellipsis" if name in whole else "fold")
    return made


def print_json(content: Any) -> None:
    """Write the one result; numbers that are not finite become null, as JSON has no word for them."""
    finite = json.loads(json.dumps(content), parse_constant=lambda word: None)
    sys.stdout.write(json.dumps(finite, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def bars() -> Iterator[Reporter]:
    """Yield a reporter that draws one bar per piece of work, nested ones beneath."""
    from rich import progress as rich

    words = rich.TextColumn("{task.description}", markup=False), rich.BarColumn(bar_width=24), rich.MofNCompleteColumn()
    times = rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn()
    columns = *words, *times, rich.TextColumn("{task.fields[note]}", markup=False)
    with rich.Progress(*columns, console=console, transient=True) as drawn:

        @contextmanager
        def bar(description: str, total: float | None) -> Iterator[Advance]:
            task = drawn.add_task(printable(description), total=total, note="")
            try:
                yield lambda steps=1, note="": drawn.update(task, advance=steps, **({"note": note} if note else {}))
            finally:
                drawn.remove_task(task)

        yield bar
