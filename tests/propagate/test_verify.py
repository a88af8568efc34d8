"""GAMLP_VERIFY=1: nothing right is refused, whatever the options; what is wrong by more than rounding is found."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from gamlp.errors import VerificationError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate import LocalEngine, Normalization, Propagation, Restart
from gamlp.propagate import verify as checks
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.sources import SparseRows

OPTIONS = [
    {},
    {"normalization": Normalization(0.0, self_loops=False)},
    {"normalization": Normalization(1.0)},
    {"rows": np.array([7, 3, 3, 59])},
    {"keep": "last"},
    {"storage": "float16"},
    {"storage": "float16", "keep": "last", "normalization": Normalization(0.3)},
    {"restart": Restart(0.8)},
    {"restart": Restart(0.9, -1, 1), "normalization": Normalization(0.5, self_loops=False), "keep": "last"},
    {"restart": Restart(0.6, -np.inf, np.inf, fixed=np.array([2, 9, 30]))},
    {"restart": Restart(0.6, fixed=np.array([2, 9, 30])), "storage": "float16"},
    {"hops": 0},
]


def graph(*, weighted=False, nodes=60, seed=0):
    """Nodes 0–4 are isolated, node 5 is a hub."""
    random = np.random.default_rng(seed)
    source, target = random.integers(5, nodes, (2, 150))
    source, target = np.append(source, np.full(nodes - 6, 5)), np.append(target, np.arange(6, nodes))
    weights = random.uniform(0.1, 3, len(source)) if weighted else None
    return adjacency_from_edges(source, target, nodes=nodes, weights=weights)


def features(nodes=60, width=9):
    return np.random.default_rng(1).normal(size=(nodes, width)).astype(np.float32)


@dataclass(frozen=True)
class Wrong(LocalEngine):
    """Adds a share of itself to one value of the last hop."""

    name: ClassVar[str] = "wrong"
    share: float = 0.0

    def run(self, job, sink, budget, numbers):
        super().run(job, sink, budget, numbers)
        sink.values[31, -1, 0] *= 1 + self.share


@pytest.fixture
def verified(monkeypatch):
    """Switch it on, and count how often it looks."""
    monkeypatch.setenv("GAMLP_VERIFY", "1")
    looked, plain = [], checks.compare
    monkeypatch.setattr(checks, "compare", lambda *words: (looked.append(words), plain(*words))[1])
    return looked


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_is_right_passes(verified, options, weighted):
    options = {"hops": 4, **options}
    LocalEngine().propagate(graph(weighted=weighted), features(), Propagation(**options))
    assert len(verified) == (1 if options.get("keep") == "last" else options["hops"] + 1)


def test_within_a_memory_limit_from_the_cache_and_in_a_folder(verified, tmp_path):
    spec = Propagation(2)
    for engine in (LocalEngine(memory=3 * 2**20), *[LocalEngine(cache=tmp_path / "cache")] * 2):
        engine.propagate(graph(), features(), spec)
    for _ in range(2):
        LocalEngine().propagate_to(tmp_path / "hops", graph(), features(), spec)
    assert len(verified) == 5 * 3


@pytest.mark.parametrize("kind", ["none", "row", "unit", "standard"])
@pytest.mark.parametrize("components", [0, 40])
def test_features_that_are_made_where_they_are_read(verified, kind, components):
    """A rotation of 300 columns onto 40 rounds otherwise for one column than for all."""
    wide = np.abs(features(width=300))
    scaling = Scaling.fit(kind, wide, components=components)
    LocalEngine().propagate(graph(), scaling.seen(wide), Propagation(2))
    assert len(verified) == 3


def test_labels_are_looked_at_too(verified):
    labels = SparseRows(60, 3, np.array([8, 20, 41]), np.eye(3, dtype=np.float32))
    LocalEngine().propagate(graph(), labels, Propagation(3, keep="last"))
    assert len(verified) == 1


@pytest.mark.parametrize("options", [{}, {"keep": "last"}, {"restart": Restart(0.8, -9, 9)}], ids=str)
def test_a_wrong_value_is_found(verified, options):
    with pytest.raises(VerificationError, match=r"'wrong' gave .* hop 3 of node 31, column 0; .*float64") as raised:
        Wrong(share=1e-4).propagate(graph(), features(), Propagation(3, **options))
    assert "1 of" in str(raised.value) and "Do not use the result" in str(raised.value)


def test_a_wrong_value_of_float16_is_found_where_it_is_more_than_rounding(verified):
    with pytest.raises(VerificationError):
        Wrong(share=0.1).propagate(graph(), features(), Propagation(3, storage="float16"))


def test_a_value_that_is_no_number_is_found(verified):
    with pytest.raises(VerificationError, match="gave nan"):
        Wrong(share=np.nan).propagate(graph(), features(), Propagation(3))


def test_it_is_off_unless_asked_for(monkeypatch):
    for value in (None, "", "0"):
        monkeypatch.delenv("GAMLP_VERIFY", raising=False)
        if value is not None:
            monkeypatch.setenv("GAMLP_VERIFY", value)
        Wrong(share=1e-2).propagate(graph(), features(), Propagation(3))


def test_the_bound_is_that_of_the_equation_by_hand():
    """Two nodes with one edge and x = (1, 0), r = 0, no loops: each hop swaps them, d + 1 = 2 additions at most."""
    pair = adjacency_from_edges(np.array([0]), np.array([1]), nodes=2)
    from gamlp.propagate.spec import Job

    job = Job.of(pair, np.array([[1.0], [0.0]], np.float32), Propagation(2, Normalization(0.0, self_loops=False)))
    (first, none), (second, once), (third, twice) = checks.recomputed(job, np.array([0]))
    assert first.ravel().tolist() == third.ravel().tolist() == [1, 0]
    assert second.ravel().tolist() == [0, 1]
    step = 18 * 2.0**-24
    assert none.max() == 0
    assert once.ravel().tolist() == [0, step]
    assert twice.ravel().tolist() == [pytest.approx(step + step * (1 + step), rel=1e-12), 0]
