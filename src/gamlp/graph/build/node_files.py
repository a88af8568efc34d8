"""The nodes of a graph larger than memory: ids, labels and split as columns, features a batch at a time.

Of the node table only one column beside the features stands in memory at a time; words that are ids never do: they are
hashed when they are read, and written as names in a second reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import MissingFileError, ShapeError
from gamlp.graph.build.assemble import named_split
from gamlp.graph.build.column_matrix import ColumnMatrix
from gamlp.graph.build.edge_streams import file_key, parquet_rows
from gamlp.graph.build.encode_labels import encode_labels
from gamlp.graph.build.growing_array import GrowingArray
from gamlp.graph.build.hashed_ids import HashedIds
from gamlp.graph.build.ids import id_values
from gamlp.graph.readers.columns import ROWS, TableFile, open_table
from gamlp.graph.readers.nodes import IDS, NO_FEATURES, NodeColumns, label_values, matrix, stack_columns
from gamlp.graph.splits import Split, SplitRule
from gamlp.storage.files import Array, read_array, write_array

BATCH_BYTES = 2**25


@dataclass(frozen=True)
class NodeFiles:
    """The files that describe the nodes, looked at far enough to know how many there are."""

    nodes: int
    table: TableFile | None
    features: Path | None
    columns: NodeColumns

    @classmethod
    def open(cls, table: Path | None, features: Path | None, columns: NodeColumns) -> NodeFiles:
        """Look at the files; what has no features is refused."""
        own = None if features is None else matrix(read_array(features, memory_map=True), features)
        opened = None if table is None else open_table(table)
        if opened is None and own is None:
            raise ShapeError(f"There are no features in the edge list.\n{NO_FEATURES}")
        nodes = len(own) if opened is None and own is not None else count_rows(opened)
        if own is not None and len(own) != nodes:
            raise ShapeError(
                f"{features} has {len(own):,} rows, {table} {nodes:,} nodes.\n"
                "Every node needs one row of features, in the order of the node table."
            )
        found = cls(nodes, opened, features, columns)
        if own is None and not found.feature_columns:
            raise ShapeError(f"There are no features in {table}.\n{NO_FEATURES}")
        return found

    @property
    def key(self) -> str:
        """Say what is read: another key, other nodes."""
        paths = [self.features, None if self.table is None else self.table.path]
        return f"{[None if path is None else file_key(path) for path in paths]} {self.columns}"

    @property
    def feature_columns(self) -> list[str]:
        """Return the columns of the table that are features."""
        if self.table is None:
            return []
        taken = {self._column("id"), self._column("label"), self._column("split")}
        return [name for name in self.table.names if name not in taken]

    def feature_names(self) -> tuple[str, ...] | None:
        """Return the names of the features; None where they are a matrix."""
        if self.features is not None or self.table is None:
            return None
        first = next(self.table.batches(self.feature_columns, dict.fromkeys(self.feature_columns, "float32")))
        import pyarrow as pa

        return stack_columns(pa.Table.from_batches([first.slice(0, 1)]), self.feature_columns, self.table)[1]

    def ids(self, memory: int) -> HashedIds | None:
        """Return the ids of the nodes; None where the row is the id."""
        name = self._column("id")
        if self.table is None or name is None:
            return None
        ids = HashedIds(self.nodes, are_words=not self.numbered, memory=memory)
        ids.fill(self._ids(name), path=self.table.path)
        return ids

    @cached_property
    def numbered(self) -> bool:
        """Say whether the ids are whole numbers, which text must write as such everywhere (007 is a word)."""
        import pyarrow as pa

        from gamlp.graph.build.ids import as_integers

        name = self._column("id")
        if self.table is None or name is None:
            return True
        kinds = (
            pa.types.is_integer((as_integers(part) if self.table.is_text else part).type) for part in self._ids(name)
        )
        return all(kinds)

    def labels(self) -> tuple[Array, tuple[str, ...]]:
        """Return the labels as numbers, and the classes."""
        name = self._column("label")
        if self.table is None or name is None:
            return np.full(self.nodes, -1, dtype=np.int64), ()
        return encode_labels(label_values(self._whole(name)))

    def split(self) -> Split | SplitRule:
        """Return the split that the table names, or the usual rule."""
        name, table = self._column("split"), self.table
        if table is None or name is None:
            return SplitRule()
        words = self._whole(name, "string").to_pylist()
        return named_split(words, place=lambda at: f"{table.path}, {table.line(at)}")

    def write_features(self, path: Path) -> None:
        """Write the features by columns."""
        with_width = iter(self._feature_rows())
        first = next(with_width)
        with ColumnMatrix(path, (self.nodes, first.shape[1])) as goal:
            goal.append(first)
            for rows in with_width:
                goal.append(rows)

    def write_names(self, path: Path) -> None:
        """Write the ids that came in: integers, or words as UTF-8 bytes of one length."""
        name = self._column("id")
        if self.table is None or name is None:
            return
        import pyarrow.compute as pc

        if self.numbered:
            kind: Any = np.int64
        else:
            longest = max((pc.max(pc.binary_length(part)).as_py() or 0 for part in self._ids(name)), default=0)
            kind = f"S{max(1, longest)}"
        with GrowingArray(path.with_name("names.tmp"), kind) as names:
            for part in self._ids(name):
                values = part.cast("int64").to_numpy(zero_copy_only=False) if self.numbered else part.to_pylist()
                names.append(np.array([word.encode() for word in values], kind) if kind != np.int64 else values)
            names.sync()
        path.with_name("names.tmp").replace(path)

    def write_columns(self, folder: Path) -> tuple[tuple[str, ...], Split | SplitRule]:
        """Write labels and a fixed split; return the classes and the split."""
        labels, classes = self.labels()
        split = self.split()
        write_array(folder / "labels.npy", labels)
        if isinstance(split, Split):
            split.check(len(labels))
            for name, part in (("train", split.train), ("valid", split.valid), ("test", split.test)):
                write_array(folder / f"{name}.npy", part)
        return classes, split

    def _feature_rows(self) -> Iterator[Array]:
        if self.features is not None:
            own = read_array(self.features, memory_map=True)
            step = max(1, BATCH_BYTES // max(1, own[:1].nbytes))
            yield from (np.asarray(own[first : first + step]) for first in range(0, len(own), step))
        elif self.table is not None:
            import pyarrow as pa

            types = dict.fromkeys(self.feature_columns, "float32")
            for batch in self.table.batches(self.feature_columns, types):
                rows = pa.Table.from_batches([batch])
                step = max(1, BATCH_BYTES // 4 // max(1, len(self.feature_columns)))
                for first in range(0, batch.num_rows, step):
                    yield stack_columns(rows.slice(first, step), self.feature_columns, self.table)[0]

    def _ids(self, name: str) -> Iterator[Any]:
        assert self.table is not None
        for batch in self.table.batches([name], {name: "string"}):
            for first in range(0, batch.num_rows, ROWS):
                yield id_values(batch.column(name).slice(first, ROWS), path=self.table.path)

    def _whole(self, name: str, kind: str | None = None) -> Any:
        import pyarrow as pa

        assert self.table is not None
        return pa.Table.from_batches(list(self.table.batches([name], {name: kind} if kind else {}))).column(name)

    def _column(self, role: str) -> str | None:
        if self.table is None:
            return None
        given = getattr(self.columns, role)
        return self.table.pick(given, IDS if role == "id" else (role,))


def count_rows(table: TableFile | None) -> int:
    """Return the number of rows of a table: what Parquet states, the lines of text."""
    if table is None:
        raise MissingFileError("There is no node table.\nName one, or a file of features.")
    if not table.is_text:
        return parquet_rows(table.path)
    first = table.names[0]
    return sum(batch.num_rows for batch in table.batches([first], {first: "string"}))
