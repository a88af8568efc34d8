"""What is shown: results on standard output, progress and notes on standard error.

A pipe or a file has no width: lines may be long there, so that no table is cut. rich follows NO_COLOR and FORCE_COLOR:
without a terminal there are no colours, unless FORCE_COLOR asks for them (`FORCE_COLOR=1 gamlp … | less -R`).

Names come out of files: control characters in them are shown, never sent to the terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gamlp.errors import printable
from gamlp.progress import Advance, Reporter, report_to

PIPE_WIDTH = 160


class SafeConsole(Console):
    """A console on which no text can move the cursor, change the title or draw in colours of its own."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn text, however it came, into what is drawn."""
        return super().render_str(printable(text), **options)


console = SafeConsole(stderr=True)


def note(text: str) -> None:
    """Print what is worth knowing beside the result."""
    console.print(f"Note: {text}", markup=False, highlight=False, soft_wrap=True)


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
def shown_progress() -> Iterator[None]:
    """Show progress bars with the time left while the block runs; nothing where standard error is no terminal."""
    hidden = not console.file.isatty() or os.environ.get("RANK", "0") != "0"  # FORCE_COLOR asks for colours, not bars
    try:
        with nullcontext() if hidden else bars() as reporter:
            report_to(reporter)
            yield
    finally:
        report_to(None)


@contextmanager
def bars() -> Iterator[Reporter]:
    """Yield a reporter that draws one bar per piece of work, nested ones beneath."""
    from rich import progress as rich

    words = rich.TextColumn("{task.description}"), rich.BarColumn(bar_width=24), rich.MofNCompleteColumn()
    times = rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn()
    columns = *words, *times, rich.TextColumn("{task.fields[note]}")
    with rich.Progress(*columns, console=console, transient=True) as drawn:

        @contextmanager
        def bar(description: str, total: float | None) -> Iterator[Advance]:
            task = drawn.add_task(description, total=total, note="")
            try:
                yield lambda steps=1, note="": drawn.update(task, advance=steps, **({"note": note} if note else {}))
            finally:
                drawn.remove_task(task)

        yield bar
