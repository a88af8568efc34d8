"""Where results are printed: standard output, in the width it has.

A pipe or a file has no width: lines may be long there, so that no table is cut. rich follows NO_COLOR and FORCE_COLOR:
without a terminal there are no colours, unless FORCE_COLOR asks for them (`FORCE_COLOR=1 gamlp … | less -R`).

Names come out of files: control characters in them are shown, never sent to the terminal.
"""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.text import Text

from gamlp.errors import printable

PIPE_WIDTH = 160


class SafeConsole(Console):
    """A console on which no text can move the cursor, change the title or draw in colours of its own."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn text, however it came, into what is drawn."""
        return super().render_str(printable(text), **options)


def screen() -> Console:
    """Return the console of standard output; COLUMNS, where it is set, is always obeyed."""
    console = SafeConsole(highlight=False)
    if not console.file.isatty() and "COLUMNS" not in os.environ:
        console.width = max(console.width, PIPE_WIDTH)
    return console


def say(text: str) -> None:
    """Print lines as they are, whatever their length."""
    screen().print(text, markup=False, soft_wrap=True)
