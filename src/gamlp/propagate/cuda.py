"""The engine on a graphics card, or any device of torch: the same hops through torch's sparse product.

    y^(l) = D^(−1) (A y^(l−1) [+ y^(l−1)]),    X^(l) = D^r y^(l)

Columns go in blocks so that the two states of a block and the adjacency fit the device; sums are float32, and results
are rounded to their storage when they leave.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import torch

from gamlp.errors import SettingsError
from gamlp.graph.graph import Adjacency
from gamlp.progress import progress
from gamlp.propagate.hops import too_large
from gamlp.propagate.normalize import Normalization, degrees, power
from gamlp.storage.files import Array

VALUES_A_BLOCK = 2**28  # 1 GiB of float32 for each of the states


def compute(
    adjacency: Adjacency,
    normalization: Normalization,
    features: Array,
    *,
    hops: int,
    rows: Array | None,
    last_only: bool,
    storage: str,
    device: str,
) -> Array:
    """Return X, ÂX, …, ÂᴷX for `rows`, (R, K+1, F), or ÂᴷX alone, (R, 1, F)."""
    place = torch_device(device)
    tensor = partial(torch.tensor, device=place)
    degree = degrees(adjacency, self_loops=normalization.self_loops)
    enter, inverse, leave = (
        tensor(power(degree, exponent).astype(np.float32))[:, None]
        for exponent in (-normalization.r, -1, normalization.r)
    )
    matrix = _matrix(adjacency, place)
    wanted = slice(None) if rows is None else tensor(rows)
    count, width = len(features) if rows is None else len(rows), features.shape[1]
    values = np.empty((count, 1 if last_only else hops + 1, width), storage)
    if not last_only or hops == 0:
        with np.errstate(over="ignore"):
            values[:, 0] = features if rows is None else features[rows]
    step = max(1, VALUES_A_BLOCK // adjacency.nodes)
    with progress("propagate", total=-(-width // step) * hops) as advance, np.errstate(over="ignore"):
        for start in range(0, width if hops else 0, step):
            y = enter * tensor(np.ascontiguousarray(features[:, start : start + step], dtype=np.float32))
            for hop in range(1, hops + 1):
                y = inverse * (matrix @ y + y if normalization.self_loops else matrix @ y)
                if not last_only or hop == hops:
                    values[:, 0 if last_only else hop, start : start + step] = (leave * y)[wanted].cpu().numpy()
                advance()
    if storage == "float16" and not np.isfinite(values).all():
        raise too_large("Some propagated features")
    return values


def torch_device(name: str) -> torch.device:
    """Return torch's device of this name, or say that it is not there; "torch-cpu" is the processor through torch."""
    try:
        device = torch.device(name.removeprefix("torch-"))
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise SettingsError(
            f"The device {name!r} cannot be used: {reason}.\nUse 'cpu', or 'cuda' where there is one."
        ) from error
    return device


def _matrix(adjacency: Adjacency, device: torch.device) -> torch.Tensor:
    ones = np.ones(adjacency.entries, np.float32)
    parts = (adjacency.indptr, adjacency.indices, ones if adjacency.weights is None else adjacency.weights)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
        return torch.sparse_csr_tensor(
            torch.tensor(parts[0], device=device),
            torch.tensor(parts[1].astype(np.int64), device=device),
            torch.tensor(parts[2], device=device),
            size=(adjacency.nodes, adjacency.nodes),
            check_invariants=False,
        )
