"""What a notebook shows: public names, and one line for a graph or a run."""

from types import SimpleNamespace

import gamlp
from gamlp.runs.record import Record


def test_dir_is_what_is_public():
    assert dir(gamlp) == sorted(gamlp.__all__)


def test_a_graph_is_one_line(planted):
    entries, features = planted.adjacency.entries, planted.features.shape[1]
    known = int((planted.labels >= 0).sum())
    assert repr(planted) == (
        f"Graph '{planted.name}': {planted.nodes:,} nodes, {entries:,} entries, {features} features, "
        f"{len(planted.classes)} classes; {known:,} labels known"
    )


def test_a_run_is_one_line():
    run = SimpleNamespace(method="sgc", dataset="cora", seeds=[0, 1], result=None)
    assert Record.__repr__(run) == "Run of sgc on cora, 2 seeds: not finished"
    run.result = {"valid_accuracy": 0.8123, "test_accuracy": 0.8}
    assert Record.__repr__(run) == "Run of sgc on cora, 2 seeds: valid 81.23 %, test 80.00 %"
