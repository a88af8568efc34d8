"""Features that are mostly zeros: triples (node, feature, value), and scipy's .npz of a sparse matrix.

Triples are a table with a column of nodes, one of features, numbers or words, and perhaps one of values, else 1; a
node without any has zeros, and a value that is given twice is added. They are held in memory, 12 bytes an entry. Where
N × F are too many numbers, they are rotated onto their main directions (`graph.encode.bag`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.build.ids import NodeIds, as_integers
from gamlp.graph.encode import Columns
from gamlp.graph.encode.bag import LARGEST, Bag, fit_bag
from gamlp.graph.encode.values import as_numbers, as_words
from gamlp.graph.readers.columns import place_of
from gamlp.graph.readers.npz_arrays import members, read_member
from gamlp.graph.readers.table import Table

NODES = ("node", "id", "node_id", "name")
FEATURES = ("feature", "feature_id", "word", "word_id", "term", "token", "attribute", "tag", "column", "key")
VALUES = ("value", "count", "weight", "score", "tf", "tfidf")
SCIPY = {"format", "shape", "data"}  # arrays of scipy.sparse.save_npz


@dataclass(frozen=True, eq=False)
class Triples:
    """A table of triples; which rows its nodes are is known when the node table is."""

    table: Table
    columns: tuple[str, ...]  # of nodes, of features, perhaps of values

    def read(self, ids: NodeIds, encoding: Columns | None) -> tuple[Bag, Any]:
        """Return the features, as those of `encoding` or all that there are, and a sparse matrix (N, features)."""
        from scipy.sparse import csr_array

        node, feature, *value = self.columns
        rows, words, values = [], [], []
        for start, batch in self.table.chunks(self.columns, {node: "string", feature: "string"}):
            place = partial(place_of, self.table, start)
            rows.append(ids.rows(batch.column(node), path=self.table.path, place=place))
            words.append(as_words(batch.column(feature)))
            values.append(as_numbers(batch.column(value[0])) if value else np.ones(batch.num_rows))
        found = pa.chunked_array(words, pa.string()).combine_chunks()
        known = None if encoding is None else bag_of(encoding)
        names = known.vocabulary if known is not None else sorted_words(found)
        at = pc.fill_null(pc.index_in(found, pa.array(names, pa.string())), -1).to_numpy(zero_copy_only=False)
        amount = np.concatenate([np.empty(0), *values])
        kept = (at >= 0) & np.isfinite(amount)
        cells = (np.concatenate([np.empty(0, np.int64), *rows])[kept], at[kept])
        matrix = csr_array((amount[kept].astype(np.float32), cells), shape=(ids.nodes, len(names)))
        return known or fit_bag(feature, names, matrix), matrix


@dataclass(frozen=True, eq=False)
class SparseFile:
    """A sparse matrix (N, F) of scipy's that is too large to be written out."""

    matrix: Any

    def read(self, ids: NodeIds, encoding: Columns | None) -> tuple[Bag, Any]:
        """Return the features, by their places, and the matrix."""
        width = self.matrix.shape[1]
        known = None if encoding is None else bag_of(encoding)
        if known is not None and len(known.vocabulary) != width:
            raise ShapeError(
                f"The matrix has {width:,} features, that of training {len(known.vocabulary):,}.\nGive the same ones."
            )
        return known or fit_bag("features", tuple(map(str, range(width))), self.matrix), self.matrix


def triples_of(table: Table) -> Triples | None:
    """Return a table as triples, where its columns are called so."""
    if len(table.names) not in (2, 3):
        return None
    picked = [table.pick(None, usual) for usual in (NODES, FEATURES, VALUES)[: len(table.names)]]
    columns = tuple(name for name in picked if name is not None)
    return Triples(table, columns) if len({*columns}) == len(table.names) else None


def is_scipy(path: Path) -> bool:
    """Say whether an .npz is one of scipy.sparse.save_npz."""
    return members(path) >= SCIPY


def open_scipy(path: Path) -> Any:
    """Return a matrix written out, (N, F), or a SparseFile where that would be too large."""
    matrix = read_scipy(path)
    return SparseFile(matrix) if matrix.shape[0] * matrix.shape[1] > LARGEST else matrix.toarray()


def read_scipy(path: Path) -> Any:
    """Read scipy's .npz of a sparse matrix without unpickling."""
    from scipy import sparse

    form = read_member(path, "format").item()
    form = form.decode() if isinstance(form, bytes) else str(form)
    shape = tuple(int(size) for size in read_member(path, "shape"))
    names = {"coo": ("row", "col"), "csr": ("indices", "indptr"), "csc": ("indices", "indptr")}.get(form)
    if names is None or len(shape) != 2:
        raise FormatError(f"{path} holds a matrix of {len(shape)} dimensions as {form}.\nSave it as csr, csc or coo.")
    data, first, second = (read_member(path, part) for part in ("data", *names))
    try:
        content = (data, (first, second)) if form == "coo" else (data, first, second)
        matrix = getattr(sparse, f"{form}_array")(content, shape=shape).tocsr()
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, MemoryError) as error:
        raise FormatError(f"{path}: its parts do not make a matrix ({error}).\nSave it again.") from error
    return matrix.astype(np.float32)


def bag_of(encoding: Columns) -> Bag:
    """Return the features of training, which must have been sparse ones."""
    if len(encoding.columns) != 1 or not isinstance(encoding.columns[0], Bag):
        raise ShapeError(
            "The features are triples (node, feature, value), those of training were columns.\n"
            "Give features of the same kind."
        )
    return encoding.columns[0]


def sorted_words(words: Any) -> tuple[str, ...]:
    """Return every different word, numbers in numeric order."""
    found = as_integers(words.drop_null().unique())
    return tuple(str(word) for word in found.take(pc.array_sort_indices(found)).to_pylist())
