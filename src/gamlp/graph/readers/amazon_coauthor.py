"""The Amazon co-purchase and Coauthor graphs from their .npz files: CSR parts of adjacency and attributes.

Keys adj_{data,indices,indptr,shape}, attr_{…} and labels; anything else in the file, pickled names among it, is not
read. Features stay as they are in the file. There is no fixed split: 20 nodes of each class train, 30 validate, the
rest test, drawn anew for each seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import FormatError
from gamlp.graph.build.assemble import assemble
from gamlp.graph.graph import Graph
from gamlp.graph.readers.npz_arrays import read_member
from gamlp.graph.splits import SplitRule

RULE = SplitRule(train=20, valid=30)


def read_npz(path: Path, name: str) -> Graph:
    """Read one .npz graph."""
    adjacency = sparse_matrix(path, "adj").tocoo()
    return assemble(
        adjacency.row,
        adjacency.col,
        features=sparse_matrix(path, "attr"),
        labels=read_member(path, "labels"),
        split=RULE,
        name=name,
    )


def sparse_matrix(path: Path, prefix: str) -> Any:
    """Build the matrix whose CSR parts have this prefix."""
    from scipy.sparse import csr_array

    data, indices, indptr, shape = (
        read_member(path, f"{prefix}_{part}") for part in ("data", "indices", "indptr", "shape")
    )
    try:
        matrix = csr_array((data, indices, indptr), shape=tuple(int(size) for size in np.atleast_1d(shape)))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, MemoryError) as error:
        raise FormatError(
            f"{path}: the parts {prefix}_… do not make a matrix ({error}).\n"
            "Expected CSR form. Fetch the file again from its source."
        ) from error
    return matrix
