"""Write a generated graph in the shape of papers100M as OGB lays out the raw files of ogbn-papers100M.

    ROOT/ogbn_papers100M/raw/data.npz         edge_index (2, edges) int64, node_feat (N, 128) float32, num_nodes_list
    ROOT/ogbn_papers100M/raw/node-label.npz   node_label (N, 1) float32, NaN = unknown
    ROOT/ogbn_papers100M/split/time/*.csv.gz  node numbers

Everything is drawn and written a batch at a time; nothing is compressed but the split, as in the original.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gamlp.storage.files import array_header
from gamlp.synth.draw import BATCH, Drawing, shape_named

ROWS = 2**16  # of features, written at a time


def write_raw(root: Path, scale: float) -> dict[str, int]:
    """Write the files; return the numbers of nodes, edges and labelled nodes."""
    drawing = Drawing(shape_named("papers100M").scaled(scale))
    shape, folder = drawing.shape, root / "ogbn_papers100M"
    for name in ("raw", "split/time"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    edges, nodes = range(-(-shape.edges // BATCH)), range(-(-shape.nodes // BATCH))
    with zipfile.ZipFile(folder / "raw" / "data.npz", "w", zipfile.ZIP_STORED) as file:
        ends = (drawing.ends(batch)[end] for end in (0, 1) for batch in edges)
        member(file, "edge_index", (2, shape.edges), np.int64, ends)
        features = (part for batch in nodes for part in np.array_split(drawing.features(batch), BATCH // ROWS))
        member(file, "node_feat", (shape.nodes, shape.features), np.float32, features)
        member(file, "num_nodes_list", (1,), np.int64, [np.array([shape.nodes])])
    sets = [drawing.sets(batch) for batch in nodes]
    known = np.concatenate(sets) >= 0
    labels = np.where(known, drawing.labels(np.arange(shape.nodes)), np.nan).astype(np.float32)
    np.savez(folder / "raw" / "node-label.npz", node_label=labels[:, None])
    for number, name in enumerate(("train", "valid", "test")):
        with gzip.open(folder / "split" / "time" / f"{name}.csv.gz", "wt", compresslevel=1) as text:
            np.savetxt(text, np.flatnonzero(np.concatenate(sets) == number), fmt="%d")
    return {"nodes": shape.nodes, "edges": shape.edges, "rows": int(known.sum())}


def member(file: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: type, parts: Iterable[np.ndarray]) -> None:
    """Write one array of an .npz file, part by part."""
    with file.open(f"{name}.npy", "w", force_zip64=True) as target:
        target.write(array_header(shape, dtype))
        for part in parts:
            target.write(np.ascontiguousarray(part, dtype).tobytes())
