"""Text tables in a stream of batches, through pyarrow: what goes wrong is reported with the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError, MissingFileError
from gamlp.progress import progress
from gamlp.storage.files import Array

MEGABYTE = 10**6
BLOCK = 2**24  # bytes of text parsed at a time


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every way a file can be broken into one FormatError that names it."""
    import pyarrow as pa

    if not path.is_file():
        raise MissingFileError(f"{path} is not there.\nA file was expected at this place.")
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{path} could not be read to its end ({first_line(error)}).\n"
            "It may be cut short, damaged, or not what its name says; copy or make it again."
        ) from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without the full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def read_matrix(path: Path, kind: Any) -> Array:
    """Read a text table without header, plain or gzipped, as (rows, columns) of one number type."""
    import pyarrow as pa
    from pyarrow import csv

    layout = csv.ReadOptions(autogenerate_column_names=True, block_size=BLOCK)
    with reading(path):
        with csv.open_csv(path, read_options=layout) as peek:
            names = peek.schema.names
        types = csv.ConvertOptions(column_types={name: pa.from_numpy_dtype(kind) for name in names})
        with (
            pa.OSFile(str(path)) as file,
            csv.open_csv(plain_text(file, path), read_options=layout, convert_options=types) as batches,
            progress(f"read {path.name}, MB", total=file.size() // MEGABYTE + 1) as advance,
        ):
            blocks, done = [], 0
            for batch in batches:
                blocks.append(stack(batch, kind))
                advance(file.tell() // MEGABYTE - done)
                done = file.tell() // MEGABYTE
        return np.concatenate([np.empty((0, len(names)), dtype=kind), *blocks])


def plain_text(file: Any, path: Path) -> Any:
    """Return the stream of a file's text, unpacked where its name ends in .gz."""
    import pyarrow as pa

    return pa.CompressedInputStream(file, "gzip") if path.suffix == ".gz" else file


def stack(batch: Any, kind: Any) -> Array:
    """Turn the columns of one batch into rows of one array; an empty field is NaN."""
    rows = np.empty((batch.num_rows, batch.num_columns), dtype=kind)
    for at, column in enumerate(batch.columns):
        if column.null_count and np.dtype(kind).kind in "iu":
            raise OSError("a field is empty where a whole number is needed")
        rows[:, at] = column.to_numpy(zero_copy_only=False)
    return rows
