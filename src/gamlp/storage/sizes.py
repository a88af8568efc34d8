"""Amounts of memory as text: 8GiB, 512 MB, or plain bytes; pydantic's ByteSize, with our error."""

from __future__ import annotations

import re

from pydantic import ByteSize, TypeAdapter, ValidationError

from gamlp.errors import SettingsError


def parse_size(text: str, option: str = "--memory") -> int:
    """Return the bytes that a text such as 8GiB means."""
    try:
        size = TypeAdapter(ByteSize).validate_python(text if re.fullmatch(r"\s*[\d.]+\s*\w*\s*", text) else "")
    except ValidationError:  # ByteSize itself reads 8,5GiB as 8 bytes
        size = ByteSize(0)
    if size < 1:
        raise SettingsError(f"{option} {text}: this is no amount of memory.\nWrite a number and a unit, as 8GiB.")
    return int(size)


def format_size(size: float) -> str:
    """Return bytes as people read them: 1.5 GiB."""
    return ByteSize(size).human_readable(separator=" ")
