"""The built-in heterogeneous graph: the packages are those of debian, the numbers those of docs/debian.md."""

import numpy as np

from gamlp.graph.readers.datasets import describe_datasets, load_dataset
from gamlp.graph.readers.debian import load_debian, read_parts


def test_debian_hetero_is_debian_with_more():
    graph, plain, parts = load_dataset("debian-hetero"), load_debian(), read_parts()
    assert {kind.name: kind.nodes for kind in graph.types} == {
        "package": 63_436,
        "maintainer": 2_093,
        "source": 34_169,
        "tag": 598,
    }
    np.testing.assert_array_equal(graph.features[: plain.nodes], plain.features)
    assert not graph.features[plain.nodes :].any()
    np.testing.assert_array_equal(graph.labels[: plain.nodes], plain.labels)
    np.testing.assert_array_equal(graph.split.test, plain.split.test)
    counts = {one.name: len(one.heads) for one in graph.relations}
    assert (counts["depends"], counts["has_tag"], counts["maintained_by"]) == (
        270_364,
        112_118,
        63_436,
    )
    needed = graph.joined(["depends", "recommends", "suggests"])
    assert needed.entries == plain.adjacency.entries  # the same pairs
    package = int(np.flatnonzero(graph.names == "bash")[0])
    maintainer = graph.relation("maintained_by").tails[package]
    assert graph.names[maintainer] == parts.names["maintainer"][parts.relations["maintained_by"][1][package]]
    info = next(one for one in describe_datasets() if one.name == "debian-hetero")
    assert (info.nodes, info.edges, info.built_in) == (graph.nodes, graph.adjacency.entries // 2, True)
