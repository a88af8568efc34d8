"""Graphs that tests share: small, generated, with planted classes."""

from pathlib import Path

import numpy as np
import pytest

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split

SLOW = (  # folders and files whose tests start processes, train often, or read every page
    "browser", "cli", "contract", "docs", "explain", "faults", "runs", "machine/test_doctor.py",
    "labels/test_label_leaks.py", "propagate/test_engine_contract.py", "propagate/test_memory_limit.py",
    "propagate/test_ray_engine.py", "properties/test_estimator_properties.py", "recipes/test_default_recipe.py",
    "storage/test_numba_cache.py", "test_estimator_checks.py", "train/test_distributed.py", "train/test_rlu_helps.py",
)  # fmt: skip
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark what `make check` leaves out."""
    for item in items:
        place = item.path.relative_to(HERE).as_posix()
        if place.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def planted_graph(nodes=240, classes=3, features=12, degree=6, noise=2.0, seed=0, labelled=8) -> Graph:
    """Edges mostly within a class, features that tell the class only faintly, `labelled` training nodes a class."""
    random = np.random.default_rng(seed)
    labels = np.arange(nodes) % classes
    source = np.repeat(np.arange(nodes), degree)
    same = random.random(len(source)) < 0.8
    target = random.integers(0, nodes, len(source))
    target[same] = target[same] // classes * classes + labels[source[same]]
    target = np.minimum(target, nodes - 1)
    centres = random.normal(size=(classes, features))
    values = (centres[labels] + noise * random.normal(size=(nodes, features))).astype(np.float32)
    order = random.permutation(nodes)
    train = np.concatenate([order[labels[order] == label][:labelled] for label in range(classes)])
    rest = np.setdiff1d(order, train)
    rest = random.permutation(rest)
    return Graph(
        adjacency=adjacency_from_edges(source, target, nodes=nodes),
        features=values,
        labels=labels.astype(np.int64),
        classes=tuple("abcdefgh"[:classes]),
        split=Split(np.sort(train), np.sort(rest[:45]), np.sort(rest[45:])),
        name="planted",
    ).check()


@pytest.fixture
def planted() -> Graph:
    return planted_graph()


@pytest.fixture(scope="session")
def make_planted():
    return planted_graph


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Run torch on one thread: tests are small, and several may run at once."""
    import torch

    torch.set_num_threads(1)
