"""Text that came from outside, before it is shown or kept."""

from __future__ import annotations

from gamlp.errors import InputError


def printable(text: str) -> str:
    r"""Return text that a terminal shows and does not obey: escape sequences and broken UTF-8 as \x1b, \udcff, ….

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode()
        for letter in text
    )


def check_utf8(name: str) -> None:
    """Refuse a path that no file of ours could name: they are written as UTF-8."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"The name {printable(name)} is not UTF-8.\nRename the file or folder.") from None
