"""A reader of one's own: a graph in GraphML, as many tools export it; attributes are features, `label` is the class.

Register it by one line in DATASETS of `gamlp/graph/readers/datasets.py`:

    Dataset("flights", 0, 0, 0, 0, (0, 0, 0), ("flights",), (("graph.graphml",),), read=read_graphml),

and use it: gamlp train flights --root data        (the file is data/flights/graph.graphml)
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from gamlp.errors import FormatError
from gamlp.graph.build.assemble import assemble
from gamlp.graph.graph import Graph

SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def read_graphml(folder: Path) -> Graph:
    """Read graph.graphml below a folder: nodes with data of the keys `label` and any numbers, and edges."""
    path = Path(folder) / "graph.graphml"
    try:
        root = ElementTree.parse(path).getroot()  # noqa: S314 — expat expands no external entities
    except ElementTree.ParseError as error:
        raise FormatError(f"{path} is no GraphML ({error}).\nExport the graph again.") from error
    keys = {key.get("id"): key.get("attr.name") for key in root.iter(f"{SPACE}key")}
    nodes = [
        (node.get("id"), {keys[data.get("key")]: data.text for data in node}) for node in root.iter(f"{SPACE}node")
    ]
    number = {name: at for at, (name, _) in enumerate(nodes)}
    ends = [(number[edge.get("source")], number[edge.get("target")]) for edge in root.iter(f"{SPACE}edge")]
    names = sorted({name for _, data in nodes for name in data} - {"label"})
    source, target = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return assemble(
        source,
        target,
        features=np.array([[float(data[name]) for name in names] for _, data in nodes], dtype=np.float32),
        feature_names=tuple(names),
        labels=np.array([data.get("label", "") for _, data in nodes], dtype=object),
        names=np.array([name for name, _ in nodes]),
        name=folder.name,
    )
