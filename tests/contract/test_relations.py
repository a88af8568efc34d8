"""Relations between results that need no expected value: what must not matter does not.

Every graph goes the whole way: tables on disk, the reader, the pipeline, probabilities.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from paths import edges_of, nodes_of
from pyarrow import parquet

from gamlp.graph import read_graph
from gamlp.methods import method_named
from gamlp.pipeline import Pipeline

SETTINGS = {"hidden": 8, "hops": 3, "epochs": 15, "head_layers": 2, "label_layers": 1, "learning_rate": 0.02,
            "dropout": 0.0, "label_folds": 1}  # fmt: skip
METHODS = ["gamlp-jk", "sgc+cs", "label-propagation"]


@pytest.fixture(scope="module")
def tables(make_planted):
    graph = make_planted(nodes=90, features=4, degree=4, labelled=6)
    ids = np.array([f"n{at:03}" for at in range(graph.nodes)])
    return edges_of(graph, ids, weighted=True), nodes_of(graph, ids)


def probabilities(folder, edges, nodes, method="gamlp-jk", **change):
    """Return each node's probabilities by its id."""
    parquet.write_table(edges, folder / "edges.parquet")
    parquet.write_table(nodes, folder / "nodes.parquet")
    graph = read_graph([folder / "edges.parquet", folder / "nodes.parquet"])
    chosen = method_named(method)
    settings = chosen.settings_from(
        {**{key: value for key, value in SETTINGS.items() if chosen.takes(key)}, **chosen.fixed, **change}
    )
    said = Pipeline(chosen, settings).fit(graph, graph.split, 0).prediction
    return dict(zip(graph.names.tolist(), said.probabilities, strict=True))


def assert_alike(found, expected, *, within):
    for name, row in expected.items():
        np.testing.assert_allclose(found[name], row, atol=within, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_nodes_does_not_matter(tables, tmp_path, method):
    edges, nodes = tables
    order = np.random.default_rng(0).permutation(nodes.num_rows)
    found = probabilities(tmp_path, edges, nodes.take(pa.array(order)), method)
    assert_alike(found, probabilities(tmp_path, edges, nodes, method), within=2e-3)  # sums run in another order


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_edges_does_not_matter(tables, tmp_path, method):
    edges, nodes = tables
    order = np.random.default_rng(0).permutation(edges.num_rows)
    found = probabilities(tmp_path, edges.take(pa.array(order)), nodes, method)
    assert_alike(found, probabilities(tmp_path, edges, nodes, method), within=0)


@pytest.mark.parametrize("method", METHODS)
def test_repeated_and_reversed_edges_are_one_edge(tables, tmp_path, method):
    edges, nodes = tables
    plain = edges.drop_columns(["weight"])
    reverse = plain.rename_columns(["target", "source"]).select(["source", "target"])
    found = probabilities(tmp_path, pa.concat_tables([plain, plain, reverse]), nodes, method)
    assert_alike(found, probabilities(tmp_path, plain, nodes, method), within=0)


@pytest.mark.parametrize("method", METHODS)
def test_an_isolated_node_changes_nothing_for_the_others(tables, tmp_path, method):
    edges, nodes = tables
    lonely = nodes.slice(0, 1).to_pydict() | {"id": ["zzz"], "label": [None], "split": [""]}
    more = pa.concat_tables([nodes, pa.table(lonely, schema=nodes.schema)])
    found = probabilities(tmp_path, edges, more, method)
    assert_alike(found, probabilities(tmp_path, edges, nodes, method), within=0)
    assert np.isfinite(found["zzz"]).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_second_graph_beside_it_changes_nothing(tables, tmp_path, method):
    edges, nodes = tables
    other = nodes.set_column(0, "id", pc.binary_join_element_wise("other", nodes["id"], "-"))
    nothing = pa.array([None] * nodes.num_rows, pa.string())
    other = other.set_column(1, "label", nothing).set_column(2, "split", nothing).cast(nodes.schema)
    ends = [pc.binary_join_element_wise("other", edges[name], "-") for name in ("source", "target")]
    twin = edges.set_column(0, "source", ends[0]).set_column(1, "target", ends[1])
    both = pa.concat_tables([nodes, other])
    found = probabilities(tmp_path, pa.concat_tables([edges, twin]), both, method)
    apart = probabilities(tmp_path, edges, both, method)  # the same nodes, of which the others have no edges
    assert_alike(apart, {name: found[name] for name in nodes["id"].to_pylist()}, within=0)
    # a product of another number of rows may be rounded otherwise: Intel's library has several kernels for it
    assert_alike(found, probabilities(tmp_path, edges, nodes, method), within=1e-6 if method == "gamlp-jk" else 0)


@pytest.mark.parametrize("method", METHODS)
def test_all_weights_times_a_constant_change_nothing_without_self_loops(tables, tmp_path, method):
    edges, nodes = tables
    change = {"self_loops": False} if method_named(method).takes("self_loops") else {}
    double = edges.set_column(2, "weight", pc.multiply(edges["weight"], pa.scalar(4, pa.float32())))
    found = probabilities(tmp_path, double, nodes, method, **change)
    assert_alike(found, probabilities(tmp_path, edges, nodes, method, **change), within=0)


def test_with_self_loops_weights_are_measured_against_1(tables, tmp_path):
    edges, nodes = tables
    double = edges.set_column(2, "weight", pc.multiply(edges["weight"], pa.scalar(4, pa.float32())))
    found, before = (probabilities(tmp_path, one, nodes, self_loops=True) for one in (double, edges))
    assert any(not np.allclose(found[name], before[name], atol=1e-4) for name in before)
