"""Keep hops on disk under a key made of their content, so that the same propagation never runs twice.

    <folder>/<key>/values.npy, rows.npy, stationary.npy, hops.json

The key is a hash of the adjacency, the columns and the specification (`Job.key`): another graph, or the same graph
changed, is another key. A folder is written under a temporary name and renamed when it is whole, with hops.json written
last. On load the files are memory-mapped, their sizes and hashes compared with hops.json; what does not fit is computed
again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from gamlp.errors import InputError, StorageError
from gamlp.progress import log
from gamlp.propagate.hops import Hops
from gamlp.propagate.hops_folder import load_hops


class HopsCache:
    """A folder of hops, one subfolder for each key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get_or_write(self, key: str, write: Callable[[Path, str], Hops]) -> Hops:
        """Return the hops stored under `key`, or have them written there; either way memory-mapped from the disk."""
        found = self.load(key)
        if found is not None:
            return found
        shutil.rmtree(self.folder / key, ignore_errors=True)  # damaged
        try:
            return write(self.folder / key, key)
        except StorageError:
            found = self.load(key)
            if found is None:  # unless another process was quicker
                raise
            return found

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
