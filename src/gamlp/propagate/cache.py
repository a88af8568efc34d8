"""Keep hops on disk under a key made of their content, so that the same propagation never runs twice.

    <folder>/<key>/values.npy, rows.npy, stationary.npy, hops.json

The key is a hash of the adjacency, the features and every option: another graph, or the same graph changed, is another
key. A folder is written under a temporary name and renamed when it is whole, with hops.json written last. On load the
files are memory-mapped, their sizes and hashes compared with hops.json; what does not fit is computed
again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.errors import InputError, SettingsError, StorageError
from gamlp.graph.graph import Adjacency
from gamlp.progress import log
from gamlp.propagate.hops import Hops
from gamlp.propagate.hops_folder import is_hops_folder, load_hops, refuse_other_content, store_hops
from gamlp.propagate.normalize import Normalization
from gamlp.storage.files import Array, digest

FORMAT = 2

Writer = Callable[..., Hops]  # (folder, adjacency, features, …, memory=…): `disk.propagate_to`, or one like it


def cached_propagate(
    cache: Path | None,
    adjacency: Adjacency,
    features: Any,
    *,
    hops: int,
    normalization: Normalization = Normalization(),  # noqa: B008 — frozen
    memory: int | None = None,
    write: Writer | None = None,
    **options: Any,
) -> Hops:
    """Return what `propagate` returns, from the folder `cache` where it has been computed before; None = no cache.

    With `memory` the engine on disk computes them within that many bytes, straight into the cache, or `write` does.
    """
    from gamlp.propagate.engine import propagate

    def compute() -> Hops:
        return propagate(adjacency, whole(features), hops=hops, normalization=normalization, **options)

    if cache is None and memory is None:
        return compute()
    if cache is None:
        raise SettingsError("A limit of memory was given, and no folder for hops.\nName one with --cache.")
    key = hops_key(adjacency, features, hops=hops, normalization=normalization, **options)
    if memory is None:
        return HopsCache(cache).get_or_compute(key, compute)
    from gamlp.propagate.disk import propagate_to

    options.pop("device", None)
    if (found := HopsCache(cache).load(key)) is not None:
        return found
    shutil.rmtree(cache / key, ignore_errors=True)  # damaged
    options |= {"hops": hops, "normalization": normalization, "memory": memory, "key": key}
    return (write or propagate_to)(cache / key, adjacency, features, **options)


def propagate_into(
    folder: Path,
    adjacency: Adjacency,
    features: Any,
    *,
    memory: int | None = None,
    write: Writer | None = None,
    overwrite: bool = False,
    device: str = "cpu",
    **options: Any,
) -> Hops:
    """Return what `propagate` returns from a folder of their own; with `memory` the engine on disk writes them there.

    `write` may be another engine that writes, as `ray_engine.propagate_on_cluster`. Hops of another graph or of other
    options that are there are replaced only with `overwrite`.
    """
    if memory is not None:
        from gamlp.propagate.disk import propagate_to

        write = write or propagate_to
        return write(folder, adjacency, features, memory=memory, overwrite=overwrite, **options)
    from gamlp.propagate.engine import propagate

    key = hops_key(adjacency, features, device=device, **options)
    if is_hops_folder(folder) and not overwrite:
        return load_hops(folder, key)
    refuse_other_content(folder)
    store_hops(folder, key, propagate(adjacency, whole(features), device=device, **options))
    return load_hops(folder, key)


def whole(features: Any) -> Array:
    """Return features in memory; those that are made as they are read, all of them."""
    return features if isinstance(features, np.ndarray) else np.asarray(features[:])


def hops_key(
    adjacency: Adjacency,
    features: Any,
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
    content = getattr(features, "content", [features])  # of `disk.OneHot`, `scaling.ScaledFeatures`
    return digest(adjacency.fingerprint, words, wanted, *content)


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
        try:
            store_hops(self.folder / key, key, hops)
        except StorageError:
            if self.load(key) is None:  # unless another process was quicker
                raise
