"""Every error that a user can cause, as one tree.

    GamlpError
    ├── InputError         what came in cannot be used; the command line ends with code 2
    │   ├── MissingFileError, FormatError, ShapeError, IdError, LabelError, SplitError, SettingsError
    │   └── NotFiniteError
    │       └── DivergedError
    └── Interrupted, MissingExtraError, AddressError, ClusterError, StorageError, VerificationError

A message has two parts: what was found, with numbers, and on the next line what was expected or what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class GamlpError(Exception):
    """The root: catch this to catch everything that gamlp raises on purpose."""


class InputError(GamlpError, ValueError):
    """What came in cannot be used."""


class MissingFileError(InputError):
    """A file or folder is not there."""


class FormatError(InputError):
    """A file is not what its name says, or is cut short."""


class ShapeError(InputError):
    """Sizes do not fit together."""


class IdError(InputError):
    """A node id is out of range, unknown or doubled."""


class NotFiniteError(InputError):
    """NaN or infinity where a number is needed."""


class DivergedError(NotFiniteError):
    """A training's loss is no longer a number."""


class LabelError(InputError):
    """Labels cannot be learned from."""


class SplitError(InputError):
    """Train, valid and test nodes do not make a split."""


class SettingsError(InputError):
    """An unknown or impossible setting, method or recipe."""


class Interrupted(GamlpError):  # noqa: N818  not an error
    """The user stopped it; what is finished is kept."""


class MissingExtraError(GamlpError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the optional part '{extra}', which is not installed.\n"
            f"Install it with: pip install 'gamlp[{extra}]'"
        )


class AddressError(GamlpError):
    """An address cannot be listened at."""


class ClusterError(GamlpError):
    """Machines of a cluster are not reached, lost again and again, or set up differently."""


class StorageError(GamlpError):
    """The disk is full, unwritable, or a stored file has changed."""


class VerificationError(GamlpError):
    """A result was computed again and came out otherwise (GAMLP_VERIFY=1)."""


@contextmanager
def disk_errors(what: str, remedy: str) -> Iterator[None]:
    """Raise what the system says of a file as a StorageError that begins with `what` and ends with `remedy`."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}.\n{remedy}") from error


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" or the list of what is known, to end a message with."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"Did you mean '{close[0]}'?" if close else "Known: " + ", ".join(known) + "."


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
