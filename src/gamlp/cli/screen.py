"""Where results are printed: standard output, in the width it has.

A pipe or a file has no width: lines may be long there, so that no table is cut. rich follows NO_COLOR and FORCE_COLOR:
without a terminal there are no colours, unless FORCE_COLOR asks for them (`FORCE_COLOR=1 gamlp … | less -R`).

Names come out of files: control characters in them are shown, never sent to the terminal.
"""

from __future__ import annotations

import os
import re
from typing import Any

from rich.console import Console
from rich.text import Text

PIPE_WIDTH = 160
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline


def visible(text: str) -> str:
    """Return the text with control characters written out by their number."""
    return CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class SafeConsole(Console):
    """A console on which no text can move the cursor, change the title or draw in colours of its own."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn text, however it came, into what is drawn."""
        return super().render_str(visible(text), **options)


def screen() -> Console:
    """Return the console of standard output; COLUMNS, where it is set, is always obeyed."""
    console = SafeConsole(highlight=False)
    if not console.file.isatty() and "COLUMNS" not in os.environ:
        console.width = max(console.width, PIPE_WIDTH)
    return console


def say(text: str) -> None:
    """Print lines as they are, whatever their length."""
    screen().print(text, markup=False, soft_wrap=True)
