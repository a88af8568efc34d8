"""Predictions group by group are those that are made at once, for any rows."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import SettingsError
from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split
from gamlp.methods import method_named, row_groups
from gamlp.pipeline import Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.runs.spec import RunSpec
from gamlp.settings import Settings
from gamlp.train import hop_source

NODES = 120
RNG = np.random.default_rng(2)
LABELS = np.where(np.arange(NODES) < 60, np.arange(NODES) % 3, -1)
GRAPH = Graph(
    adjacency_from_edges(*RNG.integers(0, NODES, (2, 300)), nodes=NODES),
    (np.eye(3)[np.arange(NODES) % 3] + RNG.normal(0, 0.5, (NODES, 3))).astype(np.float32),
    LABELS,
    ("a", "b", "c"),
    Split(np.arange(30), np.arange(30, 45), np.arange(45, 60)),
)
SMALL = {"hops": 2, "hidden": 8, "label_hops": 2, "epochs": [2, 2], "rows": "labelled"}
NAMES = ("rows", "probabilities", "embeddings")


@pytest.fixture(scope="module", params=["gamlp-jk", "gamlp-jk+rlu"])
def fitted(request):
    """Return a method that was fitted on the labelled rows, within a memory limit."""
    method = method_named(request.param)
    spec = RunSpec.of(GRAPH, request.param, "default", SMALL | ({"threshold": 0.1} if method.staged else {}))
    pipeline = Pipeline(method, method.settings_from(spec.settings), engine=LocalEngine(memory=2**24))
    return pipeline.fit(GRAPH, GRAPH.split, 0)


def together(parts):
    """Return how many parts there are, and rows, probabilities and embeddings of all."""
    found = list(parts)
    return len(found), *(np.concatenate([getattr(part, name) for part in found]) for name in NAMES)


@pytest.mark.parametrize("rows", [None, np.arange(NODES), np.array([3, 50, 51, 119])])
def test_groups_and_parts_say_what_one_prediction_says(fitted, monkeypatch, rows):
    asked = {"split": GRAPH.split, "embeddings": True}
    _, _, probabilities, embeddings = together(fitted.predict_parts(GRAPH, rows=np.arange(NODES), **asked))
    monkeypatch.setattr(row_groups, "needs_groups", lambda *_: True)
    monkeypatch.setattr(row_groups, "rows_a_group", lambda *_: 40)
    monkeypatch.setattr(row_groups, "ROWS_A_PART", 17)
    count, found, said, embedded = together(fitted.predict_parts(GRAPH, rows=rows, **asked))
    wanted = np.arange(60) if rows is None else rows
    assert count == sum(-(-min(40, len(wanted) - first) // 17) for first in range(0, len(wanted), 40))
    assert_array_equal(found, wanted)
    assert_allclose(said, probabilities[wanted], rtol=1e-4, atol=1e-6)
    assert_allclose(embedded, embeddings[wanted], rtol=1e-4, atol=1e-5)


def test_the_hops_of_a_group_are_gone_before_the_next_ones_are_made(fitted, monkeypatch, tmp_path):
    """Half of the free disk is for one group, and the memory that a propagation finds should be that of the first."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(row_groups, "needs_groups", lambda *_: True)
    monkeypatch.setattr(row_groups, "rows_a_group", lambda *_: 40)
    there, make = [], LocalEngine._in_scratch

    def in_scratch(engine, job, **how):
        there.append(len(list(tmp_path.iterdir())))
        return make(engine, job, **how)

    monkeypatch.setattr(LocalEngine, "_in_scratch", in_scratch)
    for said in fitted.predict_parts(GRAPH, split=GRAPH.split, rows=np.arange(NODES)):
        assert len(said.rows) == 40
    groups = there[-6:] if fitted.learned.settings.labels else there[-3:]  # features, and labels, of three groups
    assert groups == groups[: len(groups) // 3] * 3


def test_some_rows_depend_on_no_others(fitted):
    """Nodes that may become reliable pass all stages, whether they are asked for or not."""
    asked, rows = {"split": GRAPH.split, "embeddings": True}, np.array([2, 100])
    _, _, every, _ = together(fitted.predict_parts(GRAPH, rows=np.arange(NODES), **asked))
    _, _, some, _ = together(fitted.predict_parts(GRAPH, rows=rows, **asked))
    assert_allclose(some, every[rows], rtol=1e-4, atol=1e-6)


def test_too_many_candidates_are_refused():
    with pytest.raises(SettingsError, match=r"need 156\.\d KiB; 1\.0 KiB are left"):
        row_groups.check_candidates(1000, 10, 1024)
    row_groups.check_candidates(1000, 10, None)


FREE, PART = 2 * 10**9, 2**17


@pytest.mark.parametrize(
    ("change", "subsets", "width", "room", "row", "held"),
    [
        ({}, 0, 128, None, 2 * (3 * 128 + 2 * 10), 0),
        ({"storage": "float32"}, 0, 128, None, 4 * (3 * 128 + 2 * 10), 0),
        ({"labels": False}, 0, 128, None, 2 * 3 * 128, 0),
        ({"label_weights": "residual"}, 0, 128, None, 2 * (3 * 128 + 2 * 5 * 10), 0),
        ({"label_weights": "uniform"}, 0, 128, 10**8, 2 * (3 * 128 + 2 * 5 * 10), 4 * 4 * 10),
        ({"label_folds": 4}, 0, 128, 10**8, 2 * (3 * 128 + 2 * 10), 4 * 4 * 10),
        ({"combiner": "smoothing"}, 0, 128, 10**9, 2 * (3 * 128 + 2 * 10), 4 * 128),
        ({}, 3, 64, None, 2 * (4 * 3 * 64 + 2 * 10), 0),
        ({}, 0, 257, None, 2 * (3 * 257 + 2 * 10), 0),
    ],
)
def test_how_many_rows_a_group_has(monkeypatch, change, subsets, width, room, row, held):
    """Half of the disk is for hops; a quarter of the memory for what is made of them for all rows of a group."""
    settings = Settings(**{"hops": 2, "label_hops": 4, "label_folds": 1, "storage": "float16"} | change)
    monkeypatch.setattr(row_groups.shutil, "disk_usage", lambda _: SimpleNamespace(free=FREE))
    network, context = SimpleNamespace(features=width), SimpleNamespace(classes=10)
    like = SimpleNamespace(settings=settings, networks=[network], context=context, subsets=range(subsets))
    expected = FREE // 2 // row
    if held:
        expected = min(expected, room // 4 // held)
    assert row_groups.rows_a_group(like, room) == max(PART, expected // PART * PART)
    assert expected > PART


@pytest.mark.parametrize("method", ["gamlp-jk", "gamlp-jk+rlu"])
def test_features_of_the_structure_are_made_once_for_all_groups(monkeypatch, method):
    bare, made = replace(GRAPH, features=np.zeros((NODES, 0), np.float32)), []
    how = method_named(method)
    settings = how.settings_from({**SMALL, "threshold": 0.1, "components": 0})
    fitted = Pipeline(how, settings, engine=LocalEngine(memory=2**24)).fit(bare, GRAPH.split, 0)
    make = hop_source.filled_features
    monkeypatch.setattr(
        hop_source, "filled_features", lambda *asked, **named: (made.append(1), make(*asked, **named))[1]
    )
    fitted.learned.context.source._kept.clear()
    monkeypatch.setattr(row_groups, "needs_groups", lambda *_: True)
    monkeypatch.setattr(row_groups, "rows_a_group", lambda *_: 40)
    assert sum(len(said.rows) for said in fitted.predict_parts(bare, split=GRAPH.split, rows=np.arange(NODES))) == NODES
    assert made == [1]


def test_how_many_rows_are_held():
    assert not row_groups.needs_groups(None, 10**9, 100)
    assert not row_groups.needs_groups(2**30, 10**5, 100)  # fewer than a part
    assert not row_groups.needs_groups(2**33, 10**6, 100)  # 1.6 GB of 8 GiB
    assert row_groups.needs_groups(2**32, 10**6, 100)
    assert row_groups.rows_a_part(100, 2**20) == 2**20 // 8 // 1600
    assert row_groups.rows_a_part(100, None) == 2**17
