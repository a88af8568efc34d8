"""Tables with named columns, from Parquet or text, whole or as a stream of batches.

Text is .csv or .tsv, gzipped or not. A first line of numbers only is no header: the columns are then f0, f1, ….
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError, did_you_mean
from gamlp.graph.readers.streams import BLOCK, reading

PARQUET = (".parquet", ".pq")
TEXT = {".csv": ",", ".tsv": "\t"}
ROWS = 2**20  # of a Parquet batch


@dataclass(frozen=True)
class TableFile:
    """A table on disk, opened far enough to know its columns."""

    path: Path
    names: tuple[str, ...]
    header: bool = True
    delimiter: str | None = None  # None = Parquet

    @property
    def is_text(self) -> bool:
        """Say whether the types of the columns are guesses."""
        return self.delimiter is not None

    def line(self, row: int) -> str:
        """Name the place of a row (from 0) as an editor or a reader would."""
        return f"line {row + 1 + self.header:,}" if self.is_text else f"row {row:,}"

    def pick(self, given: str | None, usual: Sequence[str]) -> str | None:
        """Return the column `given`, which must be there, or the first with a usual name, or None."""
        if given is not None and given not in self.names:
            raise FormatError(f"{self.path} has no column '{given}'.\n{did_you_mean(given, self.names)}")
        return given or next((name for name in self.names if name.lower() in usual), None)

    def read(self, *, words: Sequence[str] = ()) -> Any:
        """Read the whole table; text columns among `words` stay text."""
        from pyarrow import csv, parquet

        with reading(self.path):
            if not self.is_text:
                return valid(parquet.read_table(self.path))
            options = self._text_options(dict.fromkeys(words, "string"))
            return csv.read_csv(self.path, **options)

    def batches(self, columns: Sequence[str], types: dict[str, str]) -> Iterator[Any]:
        """Read some columns batch by batch; text becomes `types`."""
        from pyarrow import csv, parquet

        with reading(self.path):
            if not self.is_text:
                with parquet.ParquetFile(self.path) as file:
                    yield from map(valid, file.iter_batches(batch_size=ROWS, columns=list(columns)))
                return
            with csv.open_csv(self.path, **self._text_options(types, columns)) as stream:
                yield from stream

    def _text_options(self, types: dict[str, str], columns: Sequence[str] = ()) -> dict[str, Any]:
        import pyarrow as pa
        from pyarrow import csv

        kinds = {name: pa.type_for_alias(kind) for name, kind in types.items()}
        return {
            "read_options": csv.ReadOptions(autogenerate_column_names=not self.header, block_size=BLOCK),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter),
            "convert_options": csv.ConvertOptions(column_types=kinds, include_columns=list(columns)),
        }


def is_table(path: Path) -> bool:
    """Say whether a file is a table by its name."""
    return kind_of(path) in (*PARQUET, *TEXT)


def kind_of(path: Path) -> str:
    """Return the suffix that tells the format, without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def open_table(path: Path) -> TableFile:
    """Look at the columns of a table."""
    from pyarrow import csv, parquet

    kind = kind_of(path)
    if kind not in (*PARQUET, *TEXT):
        raise FormatError(f"{path} has the suffix '{kind}'.\nExpected .parquet, .csv, .tsv (.gz too), .npy or .npz.")
    with reading(path):
        if kind in PARQUET:
            table = TableFile(path, tuple(parquet.read_schema(path).names))
        else:
            parsing = csv.ParseOptions(delimiter=TEXT[kind])
            with csv.open_csv(path, read_options=csv.ReadOptions(block_size=BLOCK), parse_options=parsing) as stream:
                names = tuple(stream.schema.names)
            header = not all(is_number(name) for name in names)
            names = names if header else tuple(f"f{at}" for at in range(len(names)))
            table = TableFile(path, names, header, TEXT[kind])
    doubled = [name for at, name in enumerate(table.names) if name in table.names[:at]]
    if doubled:
        raise FormatError(f"{path} has two columns '{doubled[0]}'.\nRename one of them.")
    return table


def valid(part: Any) -> Any:
    """Refuse Parquet content that Arrow takes on trust, such as words that are not UTF-8."""
    part.validate(full=True)
    return part


def is_number(text: str) -> bool:
    """Say whether a word of the first line is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
