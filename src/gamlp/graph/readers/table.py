"""Tables with named columns, in chunks of rows. Whatever reads a table, a file or an object, reads it here.

    .parquet .pq          a file, or a folder of such files, which together are one table, in the order of their names
    .csv .tsv .txt (.gz)  text (`text_format`); without a header the columns are f0, f1, …
    FILE/TABLE            a table of a SQLite or DuckDB file (`databases`)
    an object             whatever gives Arrow's C stream: a data frame of pandas or Polars, a DuckDB relation, …

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
from gamlp.graph.readers.databases import is_database_table, read_database_table
from gamlp.graph.readers.text_format import is_text, kind_of, text_format
from gamlp.storage.files import Array, release_pages

PARQUET = (".parquet", ".pq")
INDEX = re.compile(r"__index_level_\d+__")  # of a pandas frame, which has no name
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
    numbers: tuple[str, ...] = ()  # columns of text that begin with numbers only

    @abstractmethod
    def chunks(self, columns: Sequence[str], types: Mapping[str, str], *, skip: int = 0) -> Iterator[Chunk]:
        """Read some columns, chunk by chunk, from row `skip` on; text becomes `types`."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are; text is read to its end."""

    @abstractmethod
    def held(self, columns: Sequence[str], types: Mapping[str, str]) -> Table:
        """Return some columns in memory: a table that need not be read again."""

    @property
    def is_text(self) -> bool:
        """Say whether the types of the columns are guesses."""
        return self.delimiter is not None

    @property
    def is_held(self) -> bool:
        """Say whether it is in memory, of the types that it has."""
        return False

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
        words = {
            name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^a-zA-Z0-9]+", "_", name.strip()).lower() for name in self.names
        }
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
    def is_held(self) -> bool:
        """It is in memory."""
        return True

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.arrays[0]) if self.arrays else 0

    def held(self, columns: Sequence[str], types: Mapping[str, str]) -> Table:
        """Return some of the columns, as they are."""
        return replace(self, names=tuple(columns), arrays=tuple(self.arrays[self.names.index(one)] for one in columns))

    def chunks(self, columns: Sequence[str], types: Mapping[str, str], *, skip: int = 0) -> Iterator[Chunk]:
        """Give slices, of the types that are there."""
        wanted = [self.arrays[self.names.index(name)] for name in columns]
        step = ROWS if isinstance(wanted[0], np.ndarray) else max(1, self.rows)  # Arrow's are cut without a copy
        for start in range(skip, self.rows, step):
            part = pa.table([as_arrow(array[start : start + step]) for array in wanted], list(columns))
            yield from numbered(part.to_batches(max_chunksize=ROWS), start)
            for array in wanted:
                release_pages(array)


@dataclass(frozen=True)
class TableFile(Table):
    """A text file, a Parquet file or a folder of these, opened far enough to know its columns."""

    comments: int = 0  # lines at the top of a text file that are no table
    decimal: str = "."  # point of its numbers

    @property
    def rows(self) -> int:
        """How many rows there are: what Parquet states, the lines of text."""
        if self.is_text:
            first = self.names[0]
            return sum(batch.num_rows for _, batch in self.chunks([first], {first: "string"}))
        with reading(self.path):
            return sum(int(parquet.read_metadata(file).num_rows) for file in parquet_files(self.path))

    def held(self, columns: Sequence[str], types: Mapping[str, str]) -> Table:
        """Read some columns into memory, on all cores: a table that need not be read again."""
        with reading(self.path):
            if self.is_text:
                content = csv.read_csv(self.path, **self._text_options(columns, types))
            else:
                parts = [parquet.read_table(file, columns=list(columns)) for file in parquet_files(self.path)]
                content = valid(pa.concat_tables(parts))
        names, arrays = tuple(columns), tuple(content.columns)
        return ArrayTable(self.path, names, arrays, header=self.header, delimiter=self.delimiter, numbers=self.numbers)

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
        before = 0  # rows of the files before
        for path in parquet_files(self.path):
            with parquet.ParquetFile(path, pre_buffer=False) as file:
                counts = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
                ends = before + np.cumsum(counts, dtype=np.int64)
                first = int(np.searchsorted(ends, skip, side="right"))
                start = int(ends[first - 1]) if first else before
                groups = list(range(first, len(counts)))
                batches = file.iter_batches(batch_size=ROWS, row_groups=groups, columns=list(columns))
                yield from numbered(map(valid, batches), start)
                before += sum(counts)

    def _text_options(self, columns: Sequence[str], types: Mapping[str, str]) -> dict[str, Any]:
        kinds = {name: pa.type_for_alias(kind) for name, kind in types.items()}
        return {
            "read_options": csv.ReadOptions(
                autogenerate_column_names=not self.header, block_size=BLOCK, skip_rows=self.comments
            ),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter),
            "convert_options": csv.ConvertOptions(
                column_types=kinds, include_columns=list(columns), decimal_point=self.decimal
            ),
        }


def numbered(batches: Iterable[Any], start: int) -> Iterator[Chunk]:
    """Give each batch the number of its first row."""
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def is_table(given: Any) -> bool:
    """Say whether this is something that `open_table` reads: an object, or a path with the name of a table."""
    if not isinstance(given, Path):
        return isinstance(given, Table) or is_stream(given)
    if given.is_dir():
        return bool(parquet_files(given))
    return is_database_table(given) or kind_of(given) in PARQUET or is_text(given)


def open_table(given: Any, name: str = "the table") -> Table:
    """Look at the columns of a table: a path, or an object, which errors call `name`."""
    if isinstance(given, Table):
        return given
    if not isinstance(given, Path):
        table: Table = as_table(stream_content(given, name), Path(name))
    elif is_database_table(given):
        table = as_table(read_database_table(given), given)
    else:
        table = open_file(given)
    doubled = [name for at, name in enumerate(table.names) if name in table.names[:at]]
    if doubled:
        raise FormatError(f"{table.path} has two columns '{doubled[0]}'.\nRename one of them.")
    return table


def open_file(path: Path) -> TableFile:
    """Look at the columns of a file, or of the files of a folder."""
    if kind_of(path) not in PARQUET and not is_text(path) and not path.is_dir():
        raise FormatError(
            f"{path} has the suffix '{kind_of(path)}'.\n"
            "Expected .parquet, .csv, .tsv or .txt (.gz too), .npy, .npz, a folder of Parquet files, or FILE/TABLE of "
            "a SQLite (.sqlite, .db) or DuckDB (.duckdb) file."
        )
    with reading(path):
        if not is_text(path):
            return open_parquet(path)
        form = text_format(path)
        options = csv.ReadOptions(block_size=BLOCK, skip_rows=form.skip)
        parsing = csv.ParseOptions(delimiter=form.delimiter)
        point = csv.ConvertOptions(decimal_point=form.decimal)
        with csv.open_csv(path, read_options=options, parse_options=parsing, convert_options=point) as stream:
            names, kinds = tuple(stream.schema.names), map(str, stream.schema.types)
        numbers = tuple(name for name, kind in zip(names, kinds, strict=True) if kind in ("int64", "double"))
        table = TableFile(
            path, names, delimiter=form.delimiter, comments=form.skip, decimal=form.decimal, numbers=numbers
        )
        if all(is_number(name) for name in names):
            places = tuple(f"f{at}" for at in range(len(names)))
            table = replace(table, names=places, header=False, numbers=places)
        return table


def open_parquet(path: Path) -> TableFile:
    """Look at the columns of a Parquet file, or of a folder of them, which must be the same in all."""
    first, *others = parquet_files(path) or [path]
    schema = parquet.read_schema(first)
    for other in others:
        if not parquet.read_schema(other).equals(schema):
            raise FormatError(f"{other} has other columns, or types, than {first.name}.\nWrite all files alike.")
    return TableFile(path, tuple(schema.names))


def parquet_files(path: Path) -> list[Path]:
    """Return the files of a table: the file itself, or those of the folder by name."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix.lower() in PARQUET and file.is_file())


def is_stream(given: Any) -> bool:
    """Say whether an object gives its rows by Arrow's C stream, as data frames and relations do."""
    return hasattr(given, "__arrow_c_stream__")


def stream_content(given: Any, name: str) -> Any:
    """Read an object into an Arrow table."""
    name = f"{name[:1].upper()}{name[1:]}"
    if not is_stream(given):
        raise FormatError(
            f"{name}: an object of type {type(given).__name__} is no table.\n"
            "Expected a path, a pandas or Polars data frame (a lazy one after .collect()), a DuckDB relation or an "
            "Arrow table."
        )
    try:
        return pa.RecordBatchReader.from_stream(given).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = str(error).strip().splitlines()[0].rstrip(".")
        raise FormatError(
            f"{name} cannot be read as a table ({what}).\nExpected named columns, each of one type."
        ) from error


def as_table(content: Any, path: Path) -> ArrayTable:
    """Hold an Arrow table; strings become one kind of strings, and an index without a name is none of the columns."""
    kept = [name for name in content.column_names if not INDEX.fullmatch(name)]
    arrays = tuple(plain_strings(content.column(name)) for name in kept)
    return ArrayTable(path, tuple(kept), arrays)


def plain_strings(column: Any) -> Any:
    """Return strings of any layout, those of categories too, as the usual ones; other columns as they are."""
    categories = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if categories else column.type
    if not (pa.types.is_string_view(kind) or pa.types.is_large_string(kind)):
        return column
    if not categories:
        return column.cast(pa.string())
    parts = [(chunk.indices, chunk.dictionary.cast(pa.string())) for chunk in column.chunks]
    chunks = [pa.DictionaryArray.from_arrays(*part) for part in parts]
    return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, pa.string()))


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
    if not path.is_file() and not (path.is_dir() and parquet_files(path)):
        there = "is not a regular file" if path.exists() else "is not there"
        raise MissingFileError(f"{path} {there}.\nA file was expected at this place.")
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError, CsvError) as error:
        what = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        hint = "It may be cut short, damaged, or not what its name says; copy or make it again."
        if is_text(path) and ("UTF8" in what or is_utf16(path)):
            hint = "It is not written in UTF-8: save it so, from Excel as CSV UTF-8, elsewhere with iconv -t UTF-8."
        raise FormatError(f"{path} could not be read to its end ({what}).\n{hint}") from error


def is_utf16(path: Path) -> bool:
    """Say whether a file begins as text in UTF-16 does."""
    with path.open("rb") as file:
        return file.read(2) in (b"\xff\xfe", b"\xfe\xff")


def file_key(path: Path) -> str:
    """Return what tells a file from another, and from itself after a change; of a folder, its files."""
    found = [(file.resolve(), file.stat()) for file in parquet_files(path)]
    return " ".join(f"{file} {about.st_size} {about.st_mtime_ns}" for file, about in found)


def as_arrow(values: Any) -> Any:
    """Return an array of numbers or strings as an Arrow array; what is one already stays as it is."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if values.dtype.kind in "biuf":
        return pa.array(np.require(values, requirements=["C", "ALIGNED"]))
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
