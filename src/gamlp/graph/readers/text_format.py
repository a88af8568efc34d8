"""How a text file writes a table: which sign stands between its columns, whether its first line names them.

The first lines tell. A sign that stands equally often in each of them, outside of quotes, parts the columns: the one
that the suffix promises, else comma, semicolon, tab, or a blank in .txt. Lines at the top that begin with # are left
out, as edge lists from the web have them. Between semicolons a comma may be the decimal point. A first line of numbers
only is no header.
"""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gamlp.errors import FormatError

TEXT = {
    ".csv": ",;\t",
    ".tsv": "\t,;",
    ".txt": "\t,; ",
    "": "\t,; ",
}  # suffixes, and what may part columns, usual first
LINES = 20  # that are looked at
LONGEST = 2**20  # characters of a line that are looked at
QUOTED = re.compile(r'"[^"]*"?')
COMMA, POINT = re.compile(r"[-+]?\d*,\d+"), re.compile(r"[-+]?\d*\.\d+")


@dataclass(frozen=True)
class TextFormat:
    """What a parser must know of a text file."""

    delimiter: str
    skip: int = 0  # lines of comments at the top
    decimal: str = "."


def kind_of(path: Path) -> str:
    """Return the suffix that tells the format, without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def is_text(path: Path) -> bool:
    """Say whether a file's name is that of text: .csv, .tsv, .txt, gzipped or not, or .gz alone."""
    return kind_of(path) in TEXT and path.suffix != ""


def text_format(path: Path) -> TextFormat:
    """Look at the first lines of a file."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace") as file:
            skip, first = 0, file.readline(LONGEST)
            while first.startswith("#"):
                skip, first = skip + 1, file.readline(LONGEST)
            lines = [first, *islice(iter(lambda: file.readline(LONGEST), ""), LINES)]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(
            f"{path} cannot be unpacked: {error}.\nIt may be cut short; fetch or make it again."
        ) from error
    usual = TEXT[kind_of(path)]
    counts = [[QUOTED.sub("", line).count(sign) for line in lines if line.strip()] for sign in usual]
    even = [sign for sign, found in zip(usual, counts, strict=True) if found and found[0] and len({*found}) == 1]
    some = [sign for sign, found in zip(usual, counts, strict=True) if found and found[0]]
    delimiter = (even or some or [usual[0]])[0]
    fields = [field.strip() for line in lines for field in line.split(delimiter)] if delimiter == ";" else []
    comma = any(map(COMMA.fullmatch, fields)) and not any(map(POINT.fullmatch, fields))
    return TextFormat(delimiter, skip, "," if comma else ".")
