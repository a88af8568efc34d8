"""Amounts of memory in words: 8GiB, 512 MB, or plain bytes."""

from __future__ import annotations

import re

from gamlp.errors import SettingsError

UNITS = {"": 1, "b": 1}
UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)}
UNITS |= {letter: 1024**power for power, letter in enumerate("kmgt", start=1)}
UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)}


def parse_size(text: str, option: str = "--memory") -> int:
    """Return the bytes that a word such as 8GiB means; 8G is 8GiB."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    size = int(float(found[1]) * UNITS.get(found[2].lower(), 0)) if found else 0
    if size < 1:
        raise SettingsError(f"{option} {text}: this is no amount of memory.\nWrite a number and a unit, as 8GiB.")
    return size


def in_words(size: float) -> str:
    """Return bytes as people read them: 1.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
