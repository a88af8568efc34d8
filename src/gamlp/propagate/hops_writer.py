"""Write hops to a folder block by block, so that a run which was killed goes on where it was.

    <out>.partial/            finished blocks (`block_files`), joined when all are there
    <out>/                    the hops (`hops_folder`), there whole or not at all

The wanted rows alone are written. Twice the result in disk space is needed while blocks are joined.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gamlp.errors import StorageError
from gamlp.propagate.block_files import BlockFiles, check_space
from gamlp.propagate.budget import Budget
from gamlp.propagate.hops import Hops
from gamlp.propagate.hops_folder import load_hops, write_contents
from gamlp.propagate.job import Job
from gamlp.storage.directories import put_in_place
from gamlp.storage.files import Array, write_array
from gamlp.storage.locks import locked

RunMissing = Callable[[BlockFiles, Budget, list[int]], None]  # computes the blocks of these numbers


def write_hops(job: Job, folder: Path, key: str, budget: Budget, stationary: Array | None, run: RunMissing) -> Hops:
    """Compute the blocks that are missing and put the whole in its place; `key` names what is computed."""
    check_space(folder, 2 * job.bytes)
    buffer = None if budget.chunk_bytes is None else budget.chunk_bytes // 8
    files = BlockFiles(folder.with_name(f"{folder.name}.partial"), job, buffer_bytes=buffer)
    try:
        with locked(folder):
            budget = replace(budget, blocks=files.open(key, budget.blocks))
            missing = [number for number in range(len(budget.blocks)) if not files.is_finished(number)]
            if missing:
                run(files, budget, missing)
            _join(job, files, budget.blocks, stationary, key, folder)
    except OSError as error:
        raise StorageError(
            f"{folder} could not be written: {error.strerror or error}.\n"
            "What was there before is untouched, and finished blocks are kept: free some space and run again."
        ) from error
    return load_hops(folder, key, verify=False)  # just written, and hashed


def _join(job: Job, files: BlockFiles, blocks: list[slice], stationary: Array | None, key: str, folder: Path) -> None:
    """Join the blocks, and put the whole in its place."""
    whole = files.folder / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    _, order = job.spec.sorted_rows
    joined = files.join(whole / "values.npy", blocks, None if order is None else np.argsort(order))
    for name, array in (("rows", job.spec.rows), ("stationary", stationary)):
        if array is not None:
            write_array(whole / f"{name}.npy", array)
    write_contents(whole, key, {"values.npy": joined})
    put_in_place(whole, folder)
    shutil.rmtree(files.folder, ignore_errors=True)
