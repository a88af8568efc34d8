"""Keep hops on disk under a key made of their content, so that the same propagation never runs twice.

    <folder>/<key>/values.npy, rows.npy, stationary.npy, hops.json

The key is a hash of the adjacency, the features and every option: another graph, or the same graph changed, is another
key. A folder is written under a temporary name and renamed when it is whole, with hops.json written last. On load the
files are memory-mapped, their sizes and a sample of their bytes compared with hops.json; what does not fit is computed
again.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import InputError, SettingsError, StorageError
from gamlp.files import Array, digest, sync_folder, write_array
from gamlp.graph.graph import Adjacency
from gamlp.progress import log
from gamlp.propagate.hops import Hops
from gamlp.propagate.hops_folder import load_hops, write_contents
from gamlp.propagate.normalize import Normalization

FORMAT = 1


def cached_propagate(
    cache: Path | None,
    adjacency: Adjacency,
    features: Array,
    *,
    hops: int,
    normalization: Normalization = Normalization(),  # noqa: B008 — frozen
    memory: int | None = None,
    **options: Any,
) -> Hops:
    """Return what `propagate` returns, from the folder `cache` where it has been computed before; None = no cache.

    With `memory` the engine on disk computes them within that many bytes, straight into the cache.
    """
    from gamlp.propagate.engine import propagate

    def compute() -> Hops:
        return propagate(adjacency, features, hops=hops, normalization=normalization, **options)

    if cache is None and memory is None:
        return compute()
    if cache is None:
        raise SettingsError("A limit of memory was given, and no folder for hops.\nName one with --cache.")
    key = hops_key(adjacency, features, hops=hops, normalization=normalization, **options)
    if memory is None:
        return HopsCache(cache).get_or_compute(key, compute)
    from gamlp.propagate.disk import propagate_to

    options.pop("device", None)
    if HopsCache(cache).load(key) is None:
        shutil.rmtree(cache / key, ignore_errors=True)  # damaged
    options |= {"hops": hops, "normalization": normalization, "memory": memory, "key": key}
    return propagate_to(cache / key, adjacency, features, **options)


def hops_key(
    adjacency: Adjacency,
    features: Array,
    *,
    hops: int,
    normalization: Normalization,
    rows: Array | None = None,
    keep: str = "all",
    stationary: bool = False,
    storage: str = "float32",
    device: str = "cpu",
) -> str:
    """Return the hash of everything that the result depends on; devices differ in the last bits."""
    words = f"{FORMAT} {normalization.r!r} {normalization.self_loops} {hops} {keep} {stationary} {storage} {device}"
    wanted = "all rows" if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
    labels = getattr(features, "labels", None)  # ones and zeros that are made of them (`disk.OneHot`)
    values = features if labels is None else labels
    return digest(adjacency.fingerprint, values, words, wanted, *([] if labels is None else [f"{features.shape}"]))


class HopsCache:
    """A folder of hops, one subfolder for each key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get_or_compute(self, key: str, compute: Callable[[], Hops]) -> Hops:
        """Return the hops stored under `key`, or compute and store them; either way memory-mapped from the disk."""
        found = self.load(key)
        if found is not None:
            return found
        self.store(key, compute())
        stored = self.load(key)
        if stored is None:
            raise StorageError(
                f"{self.folder / key} changed while it was written.\nRun again, or choose another folder."
            )
        return stored

    def load(self, key: str) -> Hops | None:
        """Return the hops stored under `key`, or None where there are none, or damaged ones."""
        place = self.folder / key
        if not place.is_dir():
            return None
        try:
            return load_hops(place, key)
        except (InputError, StorageError, OSError, KeyError, TypeError, AttributeError) as error:
            log.warning("The stored hops in %s are damaged and will be computed again: %s", place, error)
            return None

    def store(self, key: str, hops: Hops) -> None:
        """Write `hops` under `key`, whole or not at all, in place of damaged ones."""
        place = self.folder / key
        temporary = self.folder / f".{key}.{secrets.token_hex(4)}.tmp"
        arrays = {"values": hops.values, "rows": hops.rows, "stationary": hops.stationary}
        try:
            temporary.mkdir(parents=True)
            for name, array in arrays.items():
                if array is not None:
                    write_array(temporary / f"{name}.npy", array)
            write_contents(temporary, key)
            if place.exists():
                shutil.rmtree(place)
            os.rename(temporary, place)  # noqa: PTH104 — the system call is meant
            sync_folder(self.folder)
        except OSError as error:
            if self.load(key) is not None:  # another process was quicker
                return
            raise StorageError(
                f"{place} could not be written: {error.strerror or error}.\nFree some space or choose another folder."
            ) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
