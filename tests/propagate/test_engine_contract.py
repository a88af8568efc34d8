"""Every engine of the registry against hand-computed numbers, a float64 loop written from the equation, scipy and PyG.

An engine that is registered is found here by itself: without a memory limit, and within one if it takes one.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import gamlp.propagate
from gamlp.errors import IdError, NotFiniteError, SettingsError, ShapeError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency
from gamlp.propagate import EngineChoice, LocalEngine, Normalization, Propagation, Restart
from gamlp.propagate.engines import ENGINES
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.sources import SparseRows, WithRows

LITTLE = 3 * 2**20  # so that there are many chunks and blocks
RANDOM_WALK = Normalization(r=0.0)


def opened(name, memory=None):
    """Return an engine; "torch-cpu" stands for the device of those that have one."""
    return EngineChoice(name=name, memory=memory).open(device="torch-cpu")


def takes_a_limit(name):
    try:
        opened(name, LITTLE)
    except SettingsError:
        return False
    return True


VARIANTS = [(name, memory) for name in ENGINES for memory in (None, LITTLE) if memory is None or takes_a_limit(name)]
VARIANTS = [(name, memory) for name, memory in VARIANTS if memory or opened(name).memory is None]


@pytest.fixture(params=VARIANTS, ids=lambda variant: f"{variant[0]}{'-limited' if variant[1] else ''}")
def engine(request):
    """A function (adjacency, columns, **options of a Propagation) → Hops for each engine."""
    name, memory = request.param
    if name == "ray":
        request.getfixturevalue("ray_here")
    here = opened(name, memory)

    def run(adjacency, columns, **options):
        return here.propagate(adjacency, columns, Propagation(**options))

    run.engine, run.exact = here, here.key_device == "cpu"
    return run


def propagate(adjacency, features, **options):
    return LocalEngine().propagate(adjacency, features, Propagation(**options))


def path_graph(nodes: int) -> Adjacency:
    return adjacency_from_edges(np.arange(nodes - 1), np.arange(1, nodes), nodes=nodes)


def random_graph(nodes=60, edges=150, *, weighted=False, seed=0) -> Adjacency:
    """Nodes 0–4 are isolated."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(5, nodes, (2, edges))
    weights = rng.uniform(0.1, 3, edges) if weighted else None
    return adjacency_from_edges(source, target, nodes=nodes, weights=weights)


def slow(adjacency: Adjacency, features, hops: int, r: float, self_loops: bool, restart: Restart | None = None):
    """Â = D^(r−1) A D^(−r), entry by entry in float64, and x ← clip(α Âx + (1 − α) x⁰) with a restart."""
    n = adjacency.nodes
    dense = np.zeros((n, n))
    for i in range(n):
        for k in range(adjacency.indptr[i], adjacency.indptr[i + 1]):
            dense[i, adjacency.indices[k]] += 1 if adjacency.weights is None else float(adjacency.weights[k])
        dense[i, i] += self_loops
    d = dense.sum(axis=1)
    normal = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if dense[i, j] and d[j]:
                normal[i, j] = d[i] ** (r - 1) * dense[i, j] * d[j] ** -r
    result = [np.asarray(features, dtype=np.float64)]
    for _ in range(hops):
        x = normal @ result[-1]
        if restart is not None:
            x = (restart.alpha * x + (1 - restart.alpha) * result[0]).clip(restart.low, restart.high)
            for node in [] if restart.fixed is None else restart.fixed:
                x[node] = result[0][node]
        result.append(x)
    return np.stack(result, axis=1)


def test_two_hops_on_a_path_by_hand(engine):
    hops = engine(path_graph(3), np.array([[1.0], [0.0], [0.0]]), hops=2, normalization=RANDOM_WALK)
    assert_allclose(hops.values[:, 1], [[1 / 2], [1 / 3], [0]], rtol=1e-6)
    assert_allclose(hops.values[:, 2], [[5 / 12], [5 / 18], [1 / 6]], rtol=1e-6)
    assert hops.count == 2


def test_symmetric_and_transition_form_on_a_path_by_hand(engine):
    features = np.array([[1.0], [0.0], [0.0]])  # degrees with self-loops 2, 3, 2
    symmetric = engine(path_graph(3), features, hops=1, normalization=Normalization(r=0.5)).values[:, 1, 0]
    assert_allclose(symmetric, [1 / 2, 1 / np.sqrt(6), 0], rtol=1e-6)
    transition = engine(path_graph(3), features, hops=1, normalization=Normalization(r=1)).values[:, 1, 0]
    assert_allclose(transition, [1 / 2, 1 / 2, 0], rtol=1e-6)
    plain = engine(path_graph(3), features, hops=1, normalization=Normalization(r=0, self_loops=False)).values[:, 1, 0]
    assert_allclose(plain, [0, 1 / 2, 0], rtol=1e-6)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_every_form_equals_the_equation(engine, r, self_loops, weighted):
    adjacency = random_graph(weighted=weighted)
    features = np.random.default_rng(1).normal(size=(60, 5))
    hops = engine(adjacency, features, hops=3, normalization=Normalization(r, self_loops))
    assert hops.values.dtype == np.float32
    assert_allclose(hops.values, slow(adjacency, features, 3, r, self_loops), rtol=2e-5, atol=1e-6)


def test_isolated_nodes_keep_their_features_or_get_zeros(engine):
    features = np.full((60, 2), 3.0)
    with_loops = engine(random_graph(), features, hops=2, normalization=Normalization(r=0.5)).values
    assert_allclose(with_loops[:5], 3.0, rtol=1e-6)
    without = engine(random_graph(), features, hops=2, normalization=Normalization(r=0.5, self_loops=False)).values
    assert_array_equal(without[:5, 0], 3.0)
    assert_array_equal(without[:5, 1:], 0.0)


@pytest.mark.parametrize("self_loops", [True, False])
def test_a_graph_of_one_node_and_one_without_edges(engine, self_loops):
    none = np.zeros(0, np.int64)
    for nodes in (1, 3):
        adjacency = adjacency_from_edges(none, none, nodes=nodes)
        values = engine(
            adjacency, np.full((nodes, 1), 2.0), hops=2, normalization=Normalization(0.5, self_loops)
        ).values
        assert_array_equal(values[:, 0], 2.0)
        assert_array_equal(values[:, 1:], 2.0 if self_loops else 0.0)


def test_wide_features_agree_with_scipy(engine):
    adjacency = random_graph(300, 2000)
    features = np.random.default_rng(2).normal(size=(300, 250)).astype(np.float32)
    matrix = sparse.csr_array((np.ones(adjacency.entries), adjacency.indices, adjacency.indptr), shape=(300, 300))
    scale = sparse.diags_array((matrix.sum(axis=1) + 1) ** -0.5)
    normal = scale @ (matrix + sparse.eye_array(300)) @ scale
    values = engine(adjacency, features, hops=2).values
    assert_allclose(values[:, 2], normal @ (normal @ features.astype(np.float64)), atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # PyG's own warnings are none of ours
def test_pyg_sign_and_sgconv_agree(engine):
    torch = pytest.importorskip("torch")
    transforms = pytest.importorskip("torch_geometric.transforms")
    from torch_geometric.data import Data
    from torch_geometric.nn import SGConv

    adjacency = random_graph(40, 100)
    source = np.repeat(np.arange(40), np.diff(adjacency.indptr))
    edges = torch.tensor(np.stack([source, adjacency.indices]), dtype=torch.int64)
    features = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    data = transforms.SIGN(3)(Data(x=torch.tensor(features), edge_index=edges, num_nodes=40))
    signed = engine(adjacency, features, hops=3, normalization=Normalization(0.5, self_loops=False)).values
    for hop in (1, 2, 3):
        assert_allclose(signed[:, hop], data[f"x{hop}"].numpy(), atol=1e-5)
    layer = SGConv(6, 4, K=3)
    with torch.no_grad():
        expected = layer(torch.tensor(features), edges)
        ours = layer.lin(torch.tensor(engine(adjacency, features, hops=3).values[:, 3]))
    assert_allclose(ours.numpy(), expected.numpy(), atol=1e-5)


def test_wanted_rows_in_their_order(engine):
    features = np.random.default_rng(4).normal(size=(60, 20)).astype(np.float32)
    whole = engine(random_graph(), features, hops=2)
    part = engine(random_graph(), features, hops=2, rows=np.array([7, 3, 59, 3]), stationary=True)
    assert_array_equal(part.values, whole.values[[7, 3, 59, 3]])
    assert_array_equal(part.rows, [7, 3, 59, 3])
    assert part.stationary.shape == (4, 20)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("restart", [None, Restart(0.7, -1, 1, fixed=np.array([3, 6, 2000]))], ids=["", "restart"])
def test_engines_on_processors_agree_to_the_last_bit(engine, weighted, storage, restart):
    adjacency = random_graph(3000, 30_000, weighted=weighted)
    features = np.random.default_rng(10).normal(size=(3000, 150)).astype(np.float32)
    options = {"hops": 3, "normalization": Normalization(0.3, False), "storage": storage, "restart": restart}
    options["rows"] = np.arange(2999, 0, -7)
    expected = propagate(adjacency, features, **options).values
    found = engine(adjacency, features, **options).values
    if engine.exact:
        assert_array_equal(found.view(np.uint8), expected.view(np.uint8))
    else:
        assert_allclose(found, expected, atol=1e-5 if storage == "float32" else 2e-2)


def test_last_hop_alone_and_no_hops(engine):
    features = np.random.default_rng(5).normal(size=(60, 3)).astype(np.float32)
    whole = engine(random_graph(), features, hops=2)
    assert_array_equal(engine(random_graph(), features, hops=2, keep="last").values[:, 0], whole.values[:, 2])
    assert_array_equal(engine(random_graph(), features, hops=0).values[:, 0], features)
    assert_array_equal(engine(random_graph(), features, hops=0, keep="last").values[:, 0], features)


def test_float16_is_near_float32(engine):
    features = np.random.default_rng(6).normal(size=(60, 20)).astype(np.float32)
    exact = slow(random_graph(), features, 3, 0.5, True)
    stored = engine(random_graph(), features, hops=3, storage="float16")
    assert stored.values.dtype == np.float16
    assert_allclose(stored.values, exact, atol=6 * 2.0**-11 * np.abs(exact).max())


def test_float16_keeps_small_features_precise():
    features = 1e-4 * np.random.default_rng(7).uniform(1, 2, (60, 3)).astype(np.float32)
    adjacency = path_graph(60)
    exact = slow(adjacency, features, 3, 0.0, True)[:, 3]
    values = propagate(adjacency, features * 2**-3, hops=3, normalization=RANDOM_WALK, storage="float16").values[:, 3]
    assert_allclose(values.astype(float) * 2**3, exact, rtol=5e-3)  # float16 steps near 1e-5 are 6e-8: 0.5 %


def test_float16_refuses_what_it_cannot_hold(engine):
    with pytest.raises(NotFiniteError, match="65,504"):
        engine(path_graph(3), np.array([[1e6], [0], [0]]), hops=1, storage="float16")
    star = adjacency_from_edges(np.zeros(99, np.int64), np.arange(1, 100), nodes=100)
    with pytest.raises(NotFiniteError, match="65,504"):  # r = 1 adds the 99 leaves up at the centre
        engine(star, np.full((100, 1), 5e4), hops=1, normalization=Normalization(1.0), storage="float16")


RESTARTS = {
    "labels": Restart(0.9),
    "errors": Restart(0.6, -1, 1),
    "fixed": Restart(0.8, -np.inf, np.inf, fixed=np.array([0, 7, 31])),
}


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize(
    "normalization", [Normalization(0.5, False), Normalization(0.0, True), Normalization(1.0, False)]
)
@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_restarts_equal_the_equation(engine, restart, normalization, storage):
    """Nodes 0–4 are isolated: without self-loops they keep (1 − α) of what they began with, or all of it if fixed."""
    adjacency, features = random_graph(weighted=True), 3 * np.random.default_rng(11).normal(size=(60, 20))
    options = {"normalization": normalization, "storage": storage, "restart": RESTARTS[restart]}
    exact = slow(adjacency, features, 4, normalization.r, normalization.self_loops, RESTARTS[restart])
    rows = np.array([59, 2, 0, 31, 7])
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if storage == "float32" else {"atol": 8 * 2.0**-11 * np.abs(exact).max()}
    assert_allclose(engine(adjacency, features, hops=4, **options).values, exact, **tolerance)
    last = engine(adjacency, features, hops=4, keep="last", rows=rows, **options).values
    assert_allclose(last, exact[rows, 4:], **tolerance)


def test_a_restart_by_hand(engine):
    """A path of three: the middle gets the mean of the ends; α = 1/2."""
    mean = Normalization(0.0, self_loops=False)
    labels = SparseRows(3, 1, np.array([0, 2]), np.array([[1.0], [4.0]]))
    found = engine(path_graph(3), labels, hops=2, normalization=mean, restart=Restart(0.5, 0, 3)).values[:, :, 0]
    # one step: ends ½·0 + ½·(1, 4), middle ½·2.5; another: ends ½·1.25 + ½·(1, 4), middle ½·1.25
    assert_allclose(found, [[1, 0.5, 1.125], [0, 1.25, 0.625], [4, 2, 2.625]])


@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("restart", [None, Restart(0.5, -9, 9)], ids=["", "restart"])
def test_directed_graphs_equal_the_equation(engine, storage, restart):
    """Some nodes have no row of their own and yet are neighbours: with r > 0 they pass nothing on."""
    rng = np.random.default_rng(12)
    adjacency = adjacency_from_edges(*rng.integers(0, 40, (2, 60)), nodes=40, symmetric=False)
    assert (np.diff(adjacency.indptr) == 0).any()
    features = rng.normal(size=(40, 7))
    options = {"normalization": Normalization(0.5, self_loops=False), "storage": storage, "restart": restart}
    exact = slow(adjacency, features, 3, 0.5, False, restart)
    tolerance = 1e-5 if storage == "float32" else 2e-2
    assert_allclose(engine(adjacency, features, hops=3, **options).values, exact, atol=tolerance)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_hubs_equal_scipy(engine, storage):
    """A node with 20,000 neighbours is summed in segments."""
    nodes = 20_001
    star = adjacency_from_edges(np.zeros(nodes - 1, np.int64), np.arange(1, nodes), nodes=nodes)
    features = np.random.default_rng(13).uniform(1, 2, (nodes, 3)).astype(np.float32)
    found = engine(
        star, features, hops=1, normalization=Normalization(0.0, False), rows=np.array([0, 5]), storage=storage
    )
    expected = [features[1:].astype(np.float64).mean(axis=0), features[0]]
    assert_allclose(found.values[:, 1], expected, rtol=1e-5 if storage == "float32" else 1e-3)


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_the_stationary_state_is_what_many_hops_tend_to(engine, storage):
    adjacency, features = random_graph(30, 200), np.random.default_rng(14).normal(size=(30, 3))
    rows = np.array([29, 3, 7])
    found = engine(adjacency, features, hops=1, rows=rows, stationary=True, storage=storage)
    assert found.stationary.dtype == storage
    far = slow(adjacency, features, 400, 0.5, True)[rows, -1]
    assert_allclose(found.stationary, far, atol=1e-5 if storage == "float32" else 2e-3)


def test_the_stationary_state_of_a_directed_graph_is_refused(engine):
    circle = adjacency_from_edges(np.array([0, 1, 2]), np.array([1, 2, 0]), nodes=3, symmetric=False)
    with pytest.raises(SettingsError, match="symmetric"):
        engine(circle, np.ones((3, 1)), hops=1, stationary=True)


def test_sources_are_read_like_their_matrix(engine):
    features = np.random.default_rng(15).normal(size=(60, 20)).astype(np.float32)
    sparse_rows = SparseRows(60, 20, np.array([2, 40]), features[:2])
    scaled = Scaling.fit("unit", features).seen(features)
    replaced = [WithRows(base, np.array([9, 5]), features[:2]) for base in (features, scaled)]
    for source in (sparse_rows, scaled, *replaced):
        found = engine(random_graph(), source, hops=2, rows=np.array([40, 2, 9, 1])).values
        assert_array_equal(found, engine(random_graph(), source[:], hops=2, rows=np.array([40, 2, 9, 1])).values)


def test_the_second_time_is_read_from_the_cache(engine, tmp_path, monkeypatch):
    from dataclasses import replace

    cached = replace(engine.engine, cache=tmp_path)
    given = (random_graph(), np.random.default_rng(16).normal(size=(60, 3)), Propagation(2, rows=np.array([4, 9])))
    first = cached.propagate(*given)
    assert_array_equal(first.values, engine(given[0], given[1], hops=2, rows=given[2].rows).values)
    monkeypatch.setattr(type(cached), "run", None)
    assert_array_equal(cached.propagate(*given).values, first.values)


def test_features_from_a_memory_map_and_in_other_types(tmp_path):
    features = np.random.default_rng(9).integers(0, 9, (60, 3))
    np.save(tmp_path / "x.npy", features.astype(np.float64))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    expected = propagate(random_graph(), features.astype(np.float32), hops=2).values
    assert_array_equal(propagate(random_graph(), mapped, hops=2).values, expected)
    assert_array_equal(propagate(random_graph(), np.asfortranarray(features), hops=2).values, expected)


def test_what_cannot_be_propagated_is_refused():
    features = np.ones((3, 1))
    with pytest.raises(SettingsError, match="-1"):
        propagate(path_graph(3), features, hops=-1)
    with pytest.raises(ShapeError, match=r"\(2, 1\).*3 nodes"):
        propagate(path_graph(3), features[:2], hops=1)
    with pytest.raises(IdError, match="3"):
        propagate(path_graph(3), features, hops=1, rows=np.array([0, 3]))
    with pytest.raises(SettingsError, match="bfloat16"):
        propagate(path_graph(3), features, hops=1, storage="bfloat16")
    with pytest.raises(SettingsError, match="restart"):
        propagate(path_graph(3), features, hops=1, stationary=True, restart=Restart(0.5))
    with pytest.raises(SettingsError, match="exponent r"):
        Normalization(r=1.5)
    with pytest.raises(SettingsError, match="nowhere"):
        EngineChoice(name="cuda").open(device="nowhere").propagate(path_graph(3), features, Propagation(1))
    with pytest.raises(SettingsError, match="Did you mean 'local'"):
        EngineChoice(name="loca").open()
    with pytest.raises(SettingsError, match="--engine ray"):
        EngineChoice(address="head:6379").open()
    with pytest.raises(SettingsError, match="memory limit"):
        EngineChoice(name="cuda", memory=LITTLE).open()


def test_nothing_heavy_is_imported_before_it_is_used():
    program = """
import sys
import gamlp.graph.build.csr, gamlp.propagate, gamlp.propagate.hops
assert not {"numba", "scipy", "torch"} & set(sys.modules)
assert gamlp.propagate.Normalization().r == 0.5 and gamlp.propagate.LocalEngine() and gamlp.propagate.Propagation(1)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        gamlp.propagate.nothing_of_this_name  # noqa: B018
