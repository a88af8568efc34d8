"""Two processes that train together: the same gradient, the same accuracy, one run directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from gamlp.errors import SettingsError
from gamlp.graph.store import save_graph
from gamlp.storage.files import read_json
from gamlp.train.distributed import ALONE, Ranks, launched, ranks


def by_two_ranks(*what: str, fails: bool = False, **options) -> str:
    """Run a module or a script in two processes and return what they print."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD"))}
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *what],
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )
    assert bool(done.returncode) == fails, done.stderr[-3000:]
    return done.stdout


def test_rows_are_shared_out_once_each():
    ids = np.arange(11)
    parts = [Ranks(rank, 3).share(ids) for rank in range(3)]
    assert [len(part) for part in parts] == [3, 4, 4]
    assert_array_equal(np.concatenate(parts), ids)


def test_one_process_is_alone_and_sends_nothing():
    assert ranks() is ALONE
    assert not launched()
    assert ALONE.from_first("x") == "x"
    assert ALONE.total(2.5) == 2.5
    assert_array_equal(ALONE.gather(np.arange(3)), [0, 1, 2])
    Ranks(0, 2).check(4)
    with pytest.raises(SettingsError, match=r"3 rows for 2 processes"):
        Ranks(0, 2).check(3)


PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import torch
sys.path.insert(0, sys.argv[2])
from conftest import planted_graph
from gamlp.model import build_network
from gamlp.propagate import Propagation, propagate
from gamlp.settings import Settings
from gamlp.train.batches import batches
from gamlp.train.distributed import ALONE, joined
from gamlp.train.inputs import Inputs
from gamlp.train.stage import StageData, stage_loss

torch.set_num_threads(1)
graph = planted_graph()
settings = Settings(hops=2, hidden=16, labels=False, batch_norm=False, dropout=0, batch_size=21, gamma=0.7)
reliable = graph.split.test[:17]
teacher = np.random.default_rng(0).dirichlet(np.ones(3), 17).astype(np.float32)
data = StageData(graph.split.train, graph.labels[graph.split.train], graph.split.valid,
                graph.labels[graph.split.valid], reliable, teacher)
inputs = Inputs(propagate(graph.adjacency, graph.features, Propagation(2)), None)

def gradients(together):
    network = build_network(settings, features=12, classes=3, subsets=0, seed=1)
    network.train()
    for whole in batches([data.train, data.reliable], settings.batch_size, key=[0, 1, 2]):
        parts = [together.share(ids) for ids in whole]
        logits = network(*inputs.gather(np.concatenate(parts))).logits
        stage_loss(logits, parts, data, settings, whole=whole).backward()
    together.add_gradients(network)
    return torch.cat([p.grad.reshape(-1) for p in network.parameters()])

with joined() as together:
    assert together.count == 2
    shared = gradients(together)
    assert together.from_first(together.rank) == 0
    assert together.gather(np.full(together.rank + 1, together.rank)).tolist() == [0, 1, 1]
    torch.save({"shared": shared, "alone": gradients(ALONE)}, f"{sys.argv[1]}/{together.rank}.pt")
    import torch.distributed.nn  # as optimisers do, some time

threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
assert not [name for name in threads if "gloo" in name], threads  # one that outlives the interpreter aborts it
"""


def test_without_batch_norm_the_gradient_is_that_of_one_process(tmp_path, pytestconfig):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    by_two_ranks(str(tmp_path / "program.py"), str(tmp_path), str(pytestconfig.rootpath / "tests"))
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    assert first["alone"].abs().max() > 1e-3
    assert_allclose(first["shared"], first["alone"], rtol=1e-4, atol=1e-6)
    assert_array_equal(first["shared"], second["shared"])


SETTINGS = ("hidden=32", "hops=3", "epochs=40", "batch_size=40", "dropout=0.2", "labels=false", "head_layers=2")


def train_command(graph, out, *more: str) -> list[str]:
    chosen = [word for setting in SETTINGS for word in ("--set", setting)]
    method = ["--method", "gamlp-jk", "--recipe", "default", "--seeds", "3"]
    return ["train", str(graph), "--out", str(out), "--json", *method, *chosen, *more]


def test_two_ranks_are_as_good_as_one_and_leave_one_run(make_planted, tmp_path):
    from typer.testing import CliRunner

    from gamlp.cli.app import app

    graph = make_planted(nodes=600, labelled=40)
    save_graph(replace(graph, name="planted"), tmp_path / "graph")
    printed = by_two_ranks("-m", "gamlp", *train_command(tmp_path / "graph", tmp_path / "two"))
    two = json.loads(printed)  # one object: the second rank is silent
    one = json.loads(CliRunner().invoke(app, train_command(tmp_path / "graph", tmp_path / "one")).stdout)
    spread = max(one["test_accuracy_std"], two["test_accuracy_std"], 0.01)
    assert abs(two["test_accuracy"] - one["test_accuracy"]) <= 2 * spread
    assert two["test_accuracy"] > 0.7  # a third by chance
    assert [run["seed"] for run in two["runs"]] == [0, 1, 2]
    names = {path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*")}
    assert {path.relative_to(tmp_path / "two") for path in (tmp_path / "two").rglob("*")} == names
    assert read_json(tmp_path / "two" / "run.json")["result"]["test_accuracy"] == two["test_accuracy"]


KILLED = """
import os, signal, sys
from gamlp.train import stage
from gamlp.train.checkpoint import Checkpoint

Checkpoint.due = lambda self: self.path is not None  # after every epoch
plain = stage.run_epoch

def run_epoch(*words, key, **options):
    if key == [0, 1, 3] and os.environ["RANK"] == "1":  # the second stage, its fourth epoch, the second process
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*words, key=key, **options)

stage.run_epoch = run_epoch
from gamlp.cli import main
main(sys.argv[1:])
"""


def test_two_ranks_that_were_killed_go_on_to_the_same_bits(make_planted, tmp_path):
    save_graph(replace(make_planted(nodes=600, labelled=40), name="planted"), tmp_path / "graph")
    more = ("--method", "gamlp-jk+rlu", "--seeds", "1", "--set", "epochs=[6,6]", "--set", "threshold=0.3")
    by_two_ranks("-m", "gamlp", *train_command(tmp_path / "graph", tmp_path / "whole", *more))
    (tmp_path / "killed.py").write_text(KILLED, encoding="utf-8")
    by_two_ranks(
        str(tmp_path / "killed.py"), *train_command(tmp_path / "graph", tmp_path / "killed", *more), fails=True
    )
    assert (tmp_path / "killed" / "seed-0" / "stage-2.checkpoint").exists()
    by_two_ranks("-m", "gamlp", "train", "--resume", str(tmp_path / "killed"), "--json")
    for name in ("probabilities.npy", "attention.npy"):
        found, expected = (np.load(tmp_path / run / "seed-0" / name) for run in ("killed", "whole"))
        assert_array_equal(found, expected)


def test_ranks_share_one_network_where_no_method_is_named(make_planted):
    """A portfolio trains in one process: with several, the default is the one network of the recipe."""
    from gamlp.runs.spec import RunSpec

    graph = make_planted(nodes=60, features=3, degree=4, labelled=6)
    assert RunSpec.of(graph).method == "portfolio"
    assert RunSpec.of(graph, network=True).method.startswith("gamlp-recursive")
