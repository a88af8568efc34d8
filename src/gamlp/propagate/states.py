"""The states of a propagation, kept for a graph that goes on living: new and changed rows are computed from them alone.

    y^(0) = D^(−r) X c,    y^(l) = D^(−1) A y^(l−1),    X^(l) = D^r y^(l) / c             (see `block`)

An engine hands y on from hop to hop and keeps X^(l), from which y cannot be had back to the last bit. Row i of y^(l)
follows from row i of A and the rows y^(l−1) of its neighbours: whoever has all y can compute any row again, alone, to
the same bits. They are the hops of y^(0) with r = 0, by whatever engine: a folder of hops like any other, states-KEY in
a cache, of N·(K+1)·F values, as many as the hops of all rows. Hops that are asked for where their states are kept are
made of them by one multiplication (`derived`): nothing is propagated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency
from gamlp.propagate.hops import Hops, load_cached, load_hops, write_arrays
from gamlp.propagate.normalize import Normalization, degrees, power
from gamlp.propagate.scaling import ScaledFeatures, Scaling
from gamlp.propagate.sinks import as_stored, too_large
from gamlp.propagate.sources import MappedSource, by_name, opened_again
from gamlp.propagate.spec import Job, Propagation
from gamlp.storage.checksums import write_hashed
from gamlp.storage.directories import making
from gamlp.storage.files import Array, array_header, read_json, write_json
from gamlp.storage.threads import ranges

if TYPE_CHECKING:
    from gamlp.propagate.engines.base import Engine

PREFIX = "states-"
ABOUT = "states.json"
BYTES_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class States:
    """y^(0) … y^(K) of all nodes, and what makes hops of them."""

    adjacency: Adjacency
    columns: Any  # X (N, F), see `sources`
    spec: Propagation  # of X^(l), of all rows
    values: Array  # (N, K+1, F), in memory or mapped
    factors: Array  # c (F,), powers of two; ones with float32
    limit: Array | None = None  # (N, F) D^(−r) X^(∞) c: one row for each connected component, where X^(∞) was asked for
    key: str = ""

    @cached_property
    def degree(self) -> Array:
        """D of all nodes (N,) float64."""
        return degrees(self.adjacency, self_loops=self.spec.normalization.self_loops)

    @cached_property
    def scale(self) -> Array:
        """d^r of all nodes (N,)."""
        return power(self.degree, self.spec.normalization.r).astype(np.float32)

    def hops(self, rows: Array) -> Array:
        """Return X^(0) … X^(K) of some nodes, (n, K+1, F): the very bits that propagating all of them gives."""
        values = np.asarray(self.values[rows])
        found = hops_of(values, self.scale[rows], self.factors)
        found[:, 0] = as_stored(np.asarray(self.columns[rows, :], np.float32), self.spec.storage)
        return found


class StateColumns(MappedSource):
    """y^(0) = D^(−r) X c, made of X (N, F) where it is read."""

    def __init__(self, base: Any, scale: Array, factors: Array) -> None:
        super().__init__(base)
        self.shape, self.scale, self.factors = tuple(base.shape), scale, factors
        self.content = ["states", *getattr(base, "content", [base]), scale, factors]

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        return np.asarray(self._read(rows, columns) * self.scale[rows, None] * self.factors[columns])

    def __reduce__(self) -> Any:
        return opened_again, (StateColumns, by_name(self.base), self.scale, self.factors)


def keep_states(engine: Engine, adjacency: Adjacency, columns: Any, spec: Propagation) -> States:
    """Return the states of a propagation, from the engine's cache where they have been computed before.

    Cost: that of the propagation, once; without a cache they are kept as long as somebody holds them.
    """
    spec = check_spec(spec)
    job = state_job(adjacency, columns, spec)
    if engine.cache is None:
        found = engine.propagate(adjacency, job.columns, job.spec)
    else:
        place = engine.cache / f"{PREFIX}{job.key(engine.key_device)}"
        found = engine.propagate_to(place, adjacency, job.columns, job.spec, overwrite=True)
        write_about(place, adjacency, columns, spec)
    return states_from(found, job, columns, spec)


def states_from(found: Hops, job: Job, columns: Any, spec: Propagation) -> States:
    """Return the states that hops of `state_job` hold."""
    factors = job.columns.factors
    return States(job.adjacency, columns, spec, found.values, factors, found.stationary, found.key)


def state_job(adjacency: Adjacency, columns: Any, spec: Propagation) -> Job:
    """Return the propagation whose hops are the states of `spec`, for all rows."""
    own = spec.normalization
    scale = power(degrees(adjacency, self_loops=own.self_loops), -own.r).astype(np.float32)
    source = StateColumns(columns, scale, column_factors(columns, scale, spec.storage))
    return Job.of(adjacency, source, replace(spec, normalization=Normalization(0.0, own.self_loops), keep="all"))


def write_about(place: Path, adjacency: Adjacency, columns: Any, spec: Propagation) -> None:
    """Say beside the states of a graph's features, once, what they are: they can then follow a graph that changes."""
    scaling = getattr(columns, "scaling", Scaling())
    if (place / ABOUT).exists():
        return
    if scaling.directions is None and isinstance(columns, np.ndarray | ScaledFeatures):
        own = {name: values.tolist() for name, values in scaling.arrays().items()}
        words = {"hops": spec.hops, "r": spec.normalization.r, "self_loops": spec.normalization.self_loops}
        kind = {"storage": spec.storage, "stationary": spec.stationary, "scaling": {"kind": scaling.kind, **own}}
        write_json(place / ABOUT, {"adjacency": adjacency.fingerprint, **words, **kind})


def states_in(cache: Path, adjacency: Adjacency, features: Array, device: str = "cpu") -> Iterator[States]:
    """Yield all states of a graph's features that a cache keeps; those of other graphs, and damaged ones, are not."""
    for path in sorted(cache.glob(f"{PREFIX}*/{ABOUT}")):
        about = read_json(path)
        if about["adjacency"] != adjacency.fingerprint:
            continue
        own = about["scaling"]
        measured = {name: np.array(own[name], np.float32) for name in ("mean", "scale") if name in own}
        columns = Scaling(own["kind"], **measured).seen(features)
        kept = {name: about[name] for name in ("stationary", "storage")}
        spec = Propagation(about["hops"], Normalization(about["r"], about["self_loops"]), **kept)
        job = state_job(adjacency, columns, spec)
        name = job.key(device)
        found = load_cached(path.parent, name, newer=True) if path.parent.name == f"{PREFIX}{name}" else None
        if found is not None:
            yield states_from(found, job, columns, spec)


def check_spec(spec: Propagation) -> Propagation:
    """Return the specification for all rows and hops; one with a restart has no states to be kept."""
    if spec.restart is not None:
        raise SettingsError("A propagation that returns to its start keeps no states.\nPropagate all of it again.")
    return replace(spec, rows=None, keep="all")


def column_factors(columns: Any, scale: Array, storage: str) -> Array:
    """Return c (F,): 1 with float32; with float16 what `block` takes, from one look at all features."""
    if storage == "float32":
        return np.ones(columns.shape[1], np.float32)
    from gamlp.propagate import layout

    found = np.zeros(columns.shape[1], np.float32)
    for first, last in ranges(len(scale), rows_at_once(4 * columns.shape[1])):
        values = np.ascontiguousarray(columns[first:last, :], dtype=np.float32)
        found = np.maximum(found, layout.peaks(values, scale[first:last]))
    return layout.column_scales(found)


def hops_of(values: Array, scale: Array, factors: Array) -> Array:
    """Return d^r y / c of some rows, as the kernels round it: values (n, K+1, F), scale (n,)."""
    with np.errstate(over="ignore"):
        found = (values.astype(np.float32) * scale[:, None, None] * (1 / factors)).astype(values.dtype)
    if found.dtype == np.float16 and not np.isfinite(found).all():
        raise too_large("Some hops")
    return np.asarray(found)


def derived(engine: Engine, job: Job, folder: Path, key: str) -> Hops | None:
    """Write the hops of a job into `folder`, made of its states if the cache has them; None where it has not."""
    cache, spec = engine.cache, job.spec
    if cache is None or spec.restart is not None or engine.key_device != "cpu" or isinstance(job.columns, StateColumns):
        return None
    if not any(cache.glob(f"{PREFIX}*")):
        return None
    own = state_job(job.adjacency, job.columns, check_spec(spec))
    name = own.key(engine.key_device)
    found = load_cached(cache / f"{PREFIX}{name}", name)
    if found is None:
        return None
    states = states_from(found, own, job.columns, spec)
    with making(folder) as new:
        joined = write_hashed(new / "values.npy", written(states, job))
        write_arrays(new, key, {"values.npy": joined}, rows=spec.rows, stationary=job.stationary(engine.memory))
    return load_hops(folder, key, verify=False)


def written(states: States, job: Job) -> Iterator[bytes | memoryview]:
    """Yield the bytes of values.npy of the wanted rows and hops, a few MiB at a time."""
    kept = job.spec.kept_hops
    yield array_header((job.rows, len(kept), job.width), job.spec.storage)
    for first, last in ranges(job.rows, rows_at_once(8 * len(kept) * job.width)):
        rows = np.arange(first, last) if job.spec.rows is None else job.spec.rows[first:last]
        part = np.ascontiguousarray(states.hops(rows)[:, kept])
        yield part.reshape(-1).view(np.uint8).data


def rows_at_once(bytes_a_row: int) -> int:
    """Return how many rows are worked on together."""
    return max(1, BYTES_AT_ONCE // max(1, bytes_a_row))
