"""A run that was killed goes on to the same bits."""

import json
import subprocess
import sys

import numpy as np

KILLED = """
import os, signal, sys
import torch
from gamlp.train import stage
from gamlp.train.checkpoint import Checkpoint

torch.set_num_threads(1)
Checkpoint.due = lambda self: self.path is not None  # after every epoch
plain = stage.run_epoch

def run_epoch(*words, key, **options):
    if key == [1, 1, 3]:  # the second seed, its second stage, the fourth epoch
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*words, key=key, **options)

stage.run_epoch = run_epoch
from gamlp.cli import main
main(sys.argv[1:])
"""


def test_a_killed_run_resumes_to_the_same_bits(gamlp, quick, files, tmp_path):
    words = [files.edges, files.nodes, *quick, "--method", "gamlp-jk+rlu+scr", "--seeds", 2]
    words += ["--set", "epochs=4,6,3", "--set", "threshold=0.4", "--set", "batch_size=32"]
    whole = gamlp("train", *words, "--out", tmp_path / "whole", "--json")
    assert whole.code == 0, whole.err
    result = json.loads(whole.out)
    assert min(stage["reliable"] for stage in result["runs"][1]["stages"][1:]) > 0

    command = [sys.executable, "-c", KILLED, "train", *map(str, words), "--out", str(tmp_path / "killed")]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    left = tmp_path / "killed" / "seed-1"
    assert (left / "stage-1.json").exists()
    assert (left / "stage-2.checkpoint").exists()
    assert not (left / "result.json").exists()

    resumed = gamlp("train", "--resume", tmp_path / "killed", "--json")
    assert resumed.code == 0, resumed.err
    for seed in ("seed-0", "seed-1"):
        for name in ("probabilities.npy", "attention.npy"):
            expected = np.load(tmp_path / "whole" / seed / name)
            np.testing.assert_array_equal(np.load(tmp_path / "killed" / seed / name), expected)
        both = [(tmp_path / run / seed / "history.json").read_text() for run in ("whole", "killed")]
        assert both[0] == both[1]
    assert not list((tmp_path / "killed").rglob("stage-*"))
    assert json.loads(resumed.out)["test_accuracy"] == result["test_accuracy"]


def test_an_interrupted_run_says_how_to_go_on(gamlp, quick, files, tmp_path, monkeypatch):
    from gamlp.train import stage

    plain = stage.run_epoch

    def run_epoch(*words, key, **options):
        if key[2] == 2:
            raise KeyboardInterrupt
        return plain(*words, key=key, **options)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(stage, "run_epoch", run_epoch)
        done = gamlp("train", files.edges, files.nodes, *quick, "--seeds", 1, "--out", run)
    assert (done.code, done.out) == (130, "")
    assert f"gamlp train --resume {run}" in done.err
    assert gamlp("train", "--resume", run).code == 0
