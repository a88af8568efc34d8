"""Files of older versions are read, and say what they said: graph, hops, run, model and classifier of each."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet

from gamlp import GAMLPClassifier, read_graph
from gamlp.cli import main
from gamlp.errors import FormatError
from gamlp.explain.finished_run import open_run
from gamlp.explain.report import render
from gamlp.model_file import load_fitted
from gamlp.propagate.hops import load_hops
from gamlp.runs.record import read_run
from gamlp.storage.files import write_json

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
RUNS = [(version, run.name) for version in VERSIONS for run in sorted((GOLDEN / version).glob("run*"))]


@pytest.fixture
def opened(tmp_path):
    """Copy the files of a version; its runs find the graph where it is now."""

    def copy(version: str) -> Path:
        folder = tmp_path / version
        shutil.copytree(GOLDEN / version, folder)
        for file in folder.glob("run*/run.json"):
            record = json.loads(file.read_text().replace('"GRAPH"', json.dumps(str(folder / "graph"))))
            record.pop("checksum", None)
            write_json(file, record)
        return folder

    return copy


def test_every_version_is_there():
    assert VERSIONS == ["0.1.0", "0.2"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_graph_is_read(version):
    graph = read_graph(GOLDEN / version / "graph")
    assert (graph.nodes, graph.adjacency.entries, graph.features.shape, graph.classes) == (24, 76, (24, 3), ("a", "b"))
    assert graph.labels.tolist() == [0, 1] * 12
    assert [len(ids) for ids in graph.split.sets.values()] == [8, 6, 10]
    assert graph.names[:2].tolist() == ["n0", "n1"]


@pytest.mark.parametrize("version", VERSIONS)
def test_hops_are_read_and_are_those_of_the_graph(version):
    graph, hops = read_graph(GOLDEN / version / "graph"), load_hops(GOLDEN / version / "hops")
    assert hops.values.shape == (24, 3, 3)
    dense = np.zeros((24, 24))
    for node in range(24):
        dense[node, graph.adjacency.indices[graph.adjacency.indptr[node] : graph.adjacency.indptr[node + 1]]] = 1
    dense += np.eye(24)
    scale = 1 / np.sqrt(dense.sum(axis=1))
    step = scale[:, None] * dense * scale
    assert_allclose(hops.values[:, 1], step @ hops.values[:, 0], atol=1e-6)
    assert_allclose(hops.values[:, 2], step @ hops.values[:, 1], atol=1e-6)


@pytest.mark.parametrize(("version", "name"), RUNS)
def test_a_run_is_explained_and_its_predictions_are_written(version, name, opened, tmp_path):
    folder = opened(version)
    run = folder / name
    record = read_run(run)
    assert record.result["best_seed"] in record.seeds
    graph = read_graph(folder / "graph")
    assert f"{record.method} on" in render(open_run(graph, run))
    with pytest.raises(SystemExit) as left:
        main(["predict", str(run), "--out", str(tmp_path / "p.parquet"), "--quiet"])
    assert left.value.code == 0
    told, kept = (
        parquet.read_table(file).to_pylist() for file in (tmp_path / "p.parquet", run / "predictions.parquet")
    )
    for new, old in zip(told, kept, strict=True):
        assert (new["id"], new["predicted"], new["confidence"]) == (old["id"], old["predicted"], old["confidence"])


@pytest.mark.parametrize(("version", "name"), RUNS)
def test_a_model_says_what_it_said_or_why_it_cannot(version, name):
    graph = read_graph(GOLDEN / version / "graph")
    for seed in sorted((GOLDEN / version / name).glob("seed-*")):
        if (version, name) == ("0.1.0", "run-stages"):
            with pytest.raises(FormatError, match="did not keep the networks of its earlier stages"):
                load_fitted(seed)
            continue
        fitted = load_fitted(seed)
        said = fitted.predict(graph, split=graph.split)
        assert_array_equal(said.rows, np.load(seed / "rows.npy"))
        assert_allclose(said.probabilities, np.load(seed / "probabilities.npy"), atol=1e-5)
        assert (fitted.trust is None) == (version == "0.1.0")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_classifier_says_what_it_said(version):
    from gamlp.train.checkpoint import load_tensors

    graph, folder = read_graph(GOLDEN / version / "graph"), GOLDEN / version / "classifier"
    model = GAMLPClassifier.load(folder)
    kept = load_tensors(folder / "fitted.safetensors")[0]["probabilities"].numpy()
    assert model.classes_.tolist() == ["a", "b"]
    said = model.predict_proba(graph)
    assert_allclose(said, kept, atol=1e-6)
    known = np.array(["a", "b"], dtype=object)[graph.labels]
    known[np.setdiff1d(np.arange(24), graph.split.train)] = ""
    again = model.predict_proba(graph, y=known)  # not from what was kept
    assert_allclose(again, kept, atol=1e-5)


def test_sets_are_promised_by_the_kept_scores():
    """Six calibration nodes: a coverage of 0.8 takes the ⌈7·0.8⌉ = 6th smallest score, the largest."""
    graph, seed = read_graph(GOLDEN / "0.2" / "graph"), GOLDEN / "0.2" / "run" / "seed-0"
    fitted = load_fitted(seed)
    assert len(fitted.trust.conformal.scores) == 6
    assert fitted.trust.conformal.threshold(0.8) == pytest.approx(float(fitted.trust.conformal.scores.max()))
    assert fitted.trust.calibration.degree.tolist() == np.diff(graph.adjacency.indptr)[graph.split.valid].tolist()
