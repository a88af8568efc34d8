"""Run a command with too little memory, with a limit to the size of files, and stopped by signals; print what came.

A script of its own, because it forks (see `forks`).
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
from forks import Ended, command, forked, one_thread

one_thread()

from disturb import place_for_work  # noqa: E402
from scenarios import digest, files, settings, write_inputs  # noqa: E402


def main() -> None:
    """Try all limits on one small graph."""
    import torch

    torch.set_num_threads(1)
    base = place_for_work()
    write_inputs(base / "inputs")
    out = base / "out"
    words = ["train", *files(base / "inputs"), "--method", "gamlp-jk+rlu", "--seeds", "1", "--out", str(out), "--json"]
    words += settings("epochs=3,2", "threshold=0.4")
    assert command(words)["code"] == 0
    expected, found = digest(out), {}
    imported = ["import", *files(base / "inputs"), "--out", str(base / "graph")]
    np.save(base / "inputs" / "wide.npy", np.zeros((60, 2**18), np.float32))  # 60 MiB
    wide = [*imported, "--features", str(base / "inputs" / "wide.npy")]
    found["memory"] = told(forked(lambda: command(wide), memory=2**25))
    found["file size"] = told(forked(lambda: small_files(imported)))
    found["left"] = sorted(path.name for path in base.iterdir())
    for name in ("SIGINT", "SIGTERM"):
        for wait in (0.02, 0.1, 0.2):
            shutil.rmtree(out, ignore_errors=True)
            ended = forked(lambda name=name, wait=wait: stopped(words, getattr(signal, name), wait))
            begun = (out / "run.json").exists()
            again = forked(lambda begun=begun: command(["train", "--resume", str(out)] if begun else words))
            same = digest(out) == expected
            found[f"{name} after {wait} s"] = {**told(ended), "again": told(again), "same": same}
    shutil.rmtree(base)
    json.dump(found, sys.stdout)


def told(ended: Ended) -> dict[str, Any]:
    """Return how a command ended."""
    return {"code": ended.code, "said": ended.said}


def small_files(words: list[str]) -> dict[str, Any]:
    """Run a command that may write no file of more than 200 bytes: what a full disk is to it."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    return command(words)


def stopped(words: list[str], number: int, wait: float) -> dict[str, Any]:
    """Run a command that gets a signal after so many seconds; outside of it nothing comes of the signal."""
    signal.signal(number, lambda *_: None)
    threading.Timer(wait, os.kill, [os.getpid(), number]).start()
    return command(words)


if __name__ == "__main__":
    assert Path(__file__).is_file()
    main()
