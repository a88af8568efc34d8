"""Tables of a database file: SQLite, which Python reads itself, and DuckDB (extra `duckdb`).

A database stands where a folder would: `graph.sqlite/edges` is its table `edges`. A table, or a view, is read by one
query and held in memory: two queries need not give its rows in one order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pyarrow as pa

from gamlp.errors import FormatError, MissingExtraError, did_you_mean


class Database(Protocol):
    """An open database file."""

    def names(self) -> list[str]:
        """Return the names of its tables and views."""

    def read(self, name: str) -> Any:
        """Read one of them as an Arrow table."""


def is_database(path: Path) -> bool:
    """Say whether a path is a database file."""
    return path.suffix.lower() in DATABASES and path.is_file()


def is_database_table(path: Path) -> bool:
    """Say whether a path names a table of a database file."""
    return is_database(path.parent)


def table_names(file: Path) -> list[str]:
    """Return the names of the tables and views of a database file."""
    with opened(file) as database:
        return database.names()


def read_database_table(path: Path) -> Any:
    """Read FILE/TABLE as an Arrow table; one that is not there is refused with the names of those that are."""
    file, name = path.parent, path.name
    with opened(file) as database:
        names = database.names()
        if name not in names:
            there = did_you_mean(name, names) if names else "It has no tables."
            raise FormatError(f"{file} has no table '{name}'.\n{there} Name one as {file.name}/TABLE.")
        return database.read(name)


@contextmanager
def opened(file: Path) -> Iterator[Database]:
    """Open a file for reading; whatever is wrong with it is one error that names it."""
    try:
        with DATABASES[file.suffix.lower()](file) as database:
            yield database
    except (OSError, UnicodeError, sqlite3.Error) as error:  # duckdb's errors become one of these
        raise FormatError(
            f"{file} could not be read ({(str(error).splitlines() or [''])[0]}).\n"
            "It may be in use by another process, damaged, or not what its name says."
        ) from error


class SqliteFile:
    """A SQLite file. Every value has a type of its own there: a column gets the most general one."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self.connection, self.file = connection, file

    def names(self) -> list[str]:
        """Return the names of its tables and views."""
        found = self.connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        return [row[0] for row in found]

    def read(self, name: str) -> Any:
        """Read a table."""
        cursor = self.connection.execute(f"SELECT * FROM {quoted(name)}")  # noqa: S608 — a name that is there
        columns = [column[0] for column in cursor.description]
        values = list(zip(*cursor, strict=True)) or [()] * len(columns)
        return pa.table([self.column(*one, table=name) for one in zip(columns, values, strict=True)], columns)

    def column(self, name: str, values: tuple[Any, ...], *, table: str) -> Any:
        """Return values as an Arrow array of one type."""
        kinds = {type(value) for value in values} - {type(None)}
        if bytes in kinds:
            place = f"{self.file}/{table}: column '{name}'"
            raise FormatError(f"{place} holds binary data.\nExpected numbers or text: read a view without it.")
        if str in kinds:
            return pa.array([None if value is None else str(value) for value in values], pa.string())
        return pa.array(values, pa.float64() if float in kinds else pa.int64() if kinds else pa.null())


@contextmanager
def open_sqlite(file: Path) -> Iterator[SqliteFile]:
    """Open a SQLite file."""
    with closing(sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)) as connection:
        yield SqliteFile(connection, file)


class DuckFile:
    """A DuckDB file."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def names(self) -> list[str]:
        """Return the names of its tables and views."""
        return [
            row[0] for row in self.connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        ]

    def read(self, name: str) -> Any:
        """Read a table."""
        return pa.RecordBatchReader.from_stream(self.connection.table(quoted(name))).read_all()


@contextmanager
def open_duckdb(file: Path) -> Iterator[DuckFile]:
    """Open a DuckDB file."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", f"Reading {file}") from None
    try:
        with duckdb.connect(str(file), read_only=True) as connection:
            yield DuckFile(connection)
    except duckdb.Error as error:
        raise OSError(str(error)) from error


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


DATABASES: dict[str, Callable[[Path], AbstractContextManager[Database]]] = {
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), open_sqlite),
    **dict.fromkeys((".duckdb", ".ddb"), open_duckdb),
}
