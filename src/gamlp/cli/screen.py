"""Where results are printed: standard output, in the width it has.

A pipe or a file has no width: lines may be long there, so that no table is cut. rich follows NO_COLOR and FORCE_COLOR:
without a terminal there are no colours, unless FORCE_COLOR asks for them (`FORCE_COLOR=1 gamlp … | less -R`).
"""

from __future__ import annotations

import os

from rich.console import Console

PIPE_WIDTH = 160


def screen() -> Console:
    """Return the console of standard output; COLUMNS, where it is set, is always obeyed."""
    console = Console(highlight=False)
    if not console.file.isatty() and "COLUMNS" not in os.environ:
        console.width = max(console.width, PIPE_WIDTH)
    return console
