"""Tables with named columns, in chunks of rows: Parquet, text, or arrays. Whatever reads a file of ours reads it here.

Text is .csv or .tsv, gzipped or not. A first line of numbers only is no header: the columns are then f0, f1, ….
A chunk is an Arrow record batch; chunks can begin after some rows, and a table can be held in memory as a whole.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import Error as CsvError
from dataclasses import KW_ONLY, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from gamlp.errors import FormatError, MissingFileError, did_you_mean
from gamlp.storage.files import Array

PARQUET = (".parquet", ".pq")
TEXT = {".csv": ",", ".tsv": "\t"}
ROWS = 2**20  # of a chunk
BLOCK = 2**24  # bytes of text parsed at a time

Chunk = tuple[int, Any]  # the number of its first row, a record batch


@dataclass(frozen=True)
class Table(ABC):
    """Named columns of equal length."""

    path: Path
    names: tuple[str, ...]
    _: KW_ONLY
    header: bool = True  # whether the names are the file's own
    delimiter: str | None = None  # of text; None = Parquet or arrays
    booleans: tuple[str, ...] = ()  # columns of text that say true and false

    @abstractmethod
    def chunks(self, columns: Sequence[str], types: Mapping[str, str], *, skip: int = 0) -> Iterator[Chunk]:
        """Read some columns, chunk by chunk, from row `skip` on; text becomes `types`."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are; text is read to its end."""

    @property
    def is_text(self) -> bool:
        """Say whether the types of the columns are guesses."""
        return self.delimiter is not None

    def line(self, row: int) -> str:
        """Name the place of a row (from 0) as an editor or a reader would."""
        return f"line {row + 1 + self.header:,}" if self.is_text else f"row {row:,}"

    def pick(self, given: str | None, usual: Sequence[str]) -> str | None:
        """Return the column `given`, which must be there, or the one with the first of the usual names, or None."""
        if given is not None and given not in self.names:
            raise FormatError(f"{self.path} has no column '{given}'.\n{did_you_mean(given, self.names)}")
        return given or next(iter(self.named(usual)), None)

    def named(self, usual: Sequence[str]) -> list[str]:
        """Return the columns with these names, written in any way (node_id, nodeId), or such an end ("*_id")."""
        words = {name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^a-zA-Z0-9]+", "_", name).lower() for name in self.names}
        return list(
            dict.fromkeys(
                name for one in usual for name, word in words.items() if word == one or fnmatchcase(word, one)
            )
        )

    def column(self, name: str) -> Any:
        """Read one column whole; text becomes strings."""
        parts = [batch.column(0) for _, batch in self.chunks([name], {name: "string"})]
        return pa.chunked_array(parts or [pa.array([], pa.string())]).combine_chunks()


@dataclass(frozen=True)
class ArrayTable(Table):
    """Columns in memory, or mapped: arrays (rows,) of whole numbers, strings or weights, or Arrow's."""

    arrays: tuple[Any, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.arrays[0])

    def chunks(self, columns: Sequence[str], types: Mapping[str, str], *, skip: int = 0) -> Iterator[Chunk]:
        """Give slices, of the types that are there."""
        wanted = [self.arrays[self.names.index(name)] for name in columns]
        step = ROWS if isinstance(wanted[0], np.ndarray) else max(1, self.rows)  # Arrow's are cut without a copy
        for start in range(skip, self.rows, step):
            part = pa.table([as_arrow(array[start : start + step]) for array in wanted], list(columns))
            yield from numbered(part.to_batches(max_chunksize=ROWS), start)


@dataclass(frozen=True)
class TableFile(Table):
    """A Parquet or text file, opened far enough to know its columns."""

    @property
    def rows(self) -> int:
        """How many rows there are: what Parquet states, the lines of text."""
        if self.is_text:
            first = self.names[0]
            return sum(batch.num_rows for _, batch in self.chunks([first], {first: "string"}))
        with reading(self.path):
            return int(parquet.read_metadata(self.path).num_rows)

    def held(self, columns: Sequence[str], types: Mapping[str, str]) -> Table:
        """Read some columns into memory, on all cores: a table that need not be read again."""
        with reading(self.path):
            if self.is_text:
                content = csv.read_csv(self.path, **self._text_options(columns, types))
            else:
                content = valid(parquet.read_table(self.path, columns=list(columns)))
        names, arrays = tuple(columns), tuple(content.columns)
        return ArrayTable(self.path, names, arrays, header=self.header, delimiter=self.delimiter)

    def chunks(self, columns: Sequence[str], types: Mapping[str, str], *, skip: int = 0) -> Iterator[Chunk]:
        """Read chunk by chunk; whole row groups of a Parquet file are skipped, lines of text are read and dropped."""
        with reading(self.path):
            for start, batch in self._text(columns, types) if self.is_text else self._parquet(columns, skip):
                rest = batch.slice(max(0, skip - start))
                if rest.num_rows:
                    yield max(start, skip), rest

    def _text(self, columns: Sequence[str], types: Mapping[str, str]) -> Iterator[Chunk]:
        with csv.open_csv(self.path, **self._text_options(columns, types)) as stream:
            yield from numbered(stream, 0)

    def _parquet(self, columns: Sequence[str], skip: int) -> Iterator[Chunk]:
        with parquet.ParquetFile(self.path, pre_buffer=False) as file:
            counts = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
            ends = np.cumsum(counts, dtype=np.int64)
            first = int(np.searchsorted(ends, skip, side="right"))
            start = int(ends[first - 1]) if first else 0
            groups = list(range(first, len(counts)))
            batches = file.iter_batches(batch_size=ROWS, row_groups=groups, columns=list(columns))
            yield from numbered(map(valid, batches), start)

    def _text_options(self, columns: Sequence[str], types: Mapping[str, str]) -> dict[str, Any]:
        kinds = {name: pa.type_for_alias(kind) for name, kind in types.items()}
        return {
            "read_options": csv.ReadOptions(autogenerate_column_names=not self.header, block_size=BLOCK),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter),
            "convert_options": csv.ConvertOptions(column_types=kinds, include_columns=list(columns)),
        }


def numbered(batches: Iterable[Any], start: int) -> Iterator[Chunk]:
    """Give each batch the number of its first row."""
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def kind_of(path: Path) -> str:
    """Return the suffix that tells the format, without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def is_table(path: Path) -> bool:
    """Say whether a file's name is that of a table."""
    return kind_of(path) in (*PARQUET, *TEXT)


def open_table(path: Path) -> TableFile:
    """Look at the columns of a table."""
    suffix = kind_of(path)
    if not is_table(path):
        raise FormatError(f"{path} has the suffix '{suffix}'.\nExpected .parquet, .csv, .tsv (.gz too), .npy or .npz.")
    with reading(path):
        if suffix in PARQUET:
            table = TableFile(path, tuple(parquet.read_schema(path).names))
        else:
            parsing = csv.ParseOptions(delimiter=TEXT[suffix])
            with csv.open_csv(path, read_options=csv.ReadOptions(block_size=BLOCK), parse_options=parsing) as stream:
                names, kinds = tuple(stream.schema.names), map(str, stream.schema.types)
            booleans = tuple(name for name, kind in zip(names, kinds, strict=True) if kind == "bool")
            table = TableFile(path, names, delimiter=TEXT[suffix], booleans=booleans)
            if all(is_number(name) for name in names):
                table = replace(table, names=tuple(f"f{at}" for at in range(len(names))), header=False)
    doubled = [name for at, name in enumerate(table.names) if name in table.names[:at]]
    if doubled:
        raise FormatError(f"{path} has two columns '{doubled[0]}'.\nRename one of them.")
    return table


def read_matrix(path: Path, kind: str) -> Array:
    """Read a table of numbers as (rows, columns) of one type; an empty field is NaN where the type has one."""
    table = open_table(path)
    parts = [np.empty((0, len(table.names)), dtype=kind)]
    for start, batch in table.chunks(table.names, dict.fromkeys(table.names, kind)):
        if np.dtype(kind).kind in "iu" and any(column.null_count for column in batch.columns):
            raise FormatError(f"{path} has an empty field after {table.line(start)}.\nExpected whole numbers only.")
        parts.append(np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns]))
    return np.concatenate(parts, dtype=kind)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every way a file can be broken into one error that names it; pipes and devices, which never end, too."""
    if not path.is_file():
        there = "is not a regular file" if path.exists() else "is not there"
        raise MissingFileError(f"{path} {there}.\nA file was expected at this place.")
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError, CsvError) as error:
        what = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise FormatError(
            f"{path} could not be read to its end ({what}).\n"
            "It may be cut short, damaged, or not what its name says; copy or make it again."
        ) from error


def file_key(path: Path) -> str:
    """Return what tells a file from another, and from itself after a change."""
    found = path.stat()
    return f"{path.resolve()} {found.st_size} {found.st_mtime_ns}"


def as_arrow(values: Any) -> Any:
    """Return an array of numbers or strings as an Arrow array; what is one already stays as it is."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if values.dtype.kind in "biuf":
        return pa.array(np.ascontiguousarray(values))
    return pa.array([value.decode("utf-8") if isinstance(value, bytes) else str(value) for value in values.tolist()])


def valid(part: Any) -> Any:
    """Refuse Parquet content that Arrow takes on trust, such as strings that are not UTF-8."""
    part.validate(full=True)
    return part


def is_number(text: str) -> bool:
    """Say whether a word of the first line is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
