"""Train on some relation subsets at a time, in turns, where the hops of all of them do not fit in memory (NARS).

In a turn of some epochs p of the S subsets are open, drawn anew by (seed, stage, turn). Of the closed ones the sum
Σ_s weight_s · hops_s is worked out once, when the turn begins; their weights rest, so the network's output is that of
all subsets at every step, and only the gradient of the closed weights is missing. Memory: p + 1 subsets for the rows
that train. Evaluation reads its rows of all subsets from disk.

Of a trained network, what each relation subset, and each relation, has in what it reads is

    share[l, s] = Σ_f |weight_s[l, f]| · rms_s[l, f]  /  the same summed over the subsets

rms is the root mean square of the hop over (at most a thousand) training nodes, so that a large weight of a hop that is
nearly zero counts little. A relation has an equal part of the share of each of its subsets: all relations together have
1, as all subsets have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from gamlp.errors import SettingsError
from gamlp.model import Network
from gamlp.model.combiners import shares_beforehand
from gamlp.model.mixer import SubsetMixer
from gamlp.propagate.hops import Hops
from gamlp.propagate.subsets import Shelf, Subset, shelf_of, subsets_at_a_time
from gamlp.settings import Settings
from gamlp.storage.files import Array
from gamlp.storage.threads import ranges
from gamlp.train.inputs import CombinedInputs, Inputs

ROWS_A_STEP = 4096
SHARE_NODES = 1000


def inputs_for(
    hops: Hops, labels: Array | None, device: str, settings: Settings, *, memory: int | None = None
) -> Inputs:
    """Return the rows a network reads, in memory or, in turns, from disk; `memory` is the limit of the process."""
    shelf, shares = shelf_of(hops), shares_beforehand(settings)
    if shelf is None and shares is not None:
        return CombinedInputs(hops, labels, device, shares=shares.numpy(), memory=memory)
    if shelf is None:
        return Inputs(hops, labels, device, memory=memory)
    return TurnInputs(hops, shelf, labels, device, settings, memory=memory)


class TurnInputs(Inputs):
    """Rows of subsets that stay on disk; in training, of the open ones and the sum over the others."""

    def __init__(
        self,
        hops: Hops,
        shelf: Shelf,
        labels: Array | None,
        device: str,
        settings: Settings,
        *,
        memory: int | None = None,
    ) -> None:
        super().__init__(hops, labels, device, memory=memory)
        self.shelf, self.settings = shelf, settings
        self.turn: tuple[object, ...] = ()
        self.open: list[int] = []
        self.place = np.zeros(0, np.int64)  # of each row of the hops among the loaded ones
        self.loaded = np.zeros(0, np.float32)  # (rows, p+1, K+1, F)
        self.training = False

    def begin_epoch(self, network: Network, ids: Array, key: list[int]) -> None:
        """Open the subsets of this epoch's turn; key is (seed, stage, epoch), ids are the nodes that train."""
        assert network.mixer is not None
        if self.settings.consistency:
            raise SettingsError(
                "The consistency loss (+scr) needs all relation subsets in memory.\n"
                "Raise subset_memory, or leave it out."
            )
        turn = (*key[:2], key[2] // self.settings.subset_turn)
        if turn != self.turn:
            self.turn, self.loaded = turn, np.zeros(0, np.float32)
            random, count = np.random.default_rng([*turn, 0x7042]), self.shelf.shape[1]
            at_once = subsets_at_a_time(self.shelf.shape, self.settings.subset_memory)
            self.open = sorted(random.permutation(count)[:at_once].tolist())
            self._load(network.mixer, self.rows_of(ids))
        network.mixer.read(self.open)
        self.training = True

    @contextmanager
    def reading_all(self, network: Network) -> Iterator[None]:
        """Read all subsets within the block."""
        assert network.mixer is not None
        before, network.mixer.open, self.training = network.mixer.open, None, False
        try:
            yield
        finally:
            network.mixer.read(before)
            self.training = before is not None

    @torch.no_grad()
    def _load(self, mixer: SubsetMixer, rows: Array) -> None:
        closed = [subset for subset in range(self.shelf.shape[1]) if subset not in self.open]
        self.place = np.full(self.shelf.shape[0], -1, np.int64)
        self.place[rows] = np.arange(len(rows))
        self.loaded = np.zeros((len(rows), len(self.open) + 1, *self.shelf.shape[2:]), np.float32)
        for first, last in ranges(len(rows), ROWS_A_STEP):
            self.loaded[first:last, :-1] = self.shelf.take(rows[first:last], self.open)
            if closed:
                there = self._tensor(self.shelf.take(rows[first:last], closed))
                self.loaded[first:last, -1] = mixer.weighted(there, closed).cpu().numpy()

    def _hop_rows(self, rows: Array) -> Array:
        return np.take(self.loaded, self.place[rows], axis=0) if self.training else self.shelf.take(rows)


def subset_shares(network: Network, hops: Hops, train: Array, subsets: Sequence[Subset]) -> dict[str, Any]:
    """Return the subsets and relations by name, and their shares in each hop; nothing where there are no subsets."""
    if network.mixer is None:
        return {}
    chosen = train[:: max(1, len(train) // SHARE_NODES)]
    rows = chosen if hops.rows is None else np.searchsorted(hops.rows, chosen)
    shelf = shelf_of(hops)
    values = hops.values[rows] if shelf is None else shelf.take(rows)
    size = np.sqrt(np.square(values.astype(np.float64)).mean(axis=0))  # (S, K+1, F)
    weights = np.stack([weight.detach().abs().cpu().numpy() for weight in network.mixer.weights])
    total = (weights * size).sum(axis=2)  # (S, K+1)
    shares = total / np.maximum(total.sum(axis=0), np.finfo(np.float64).tiny)
    names, each = relation_shares(subsets, shares)
    return {
        "subsets": [" + ".join(subset) for subset in subsets],
        "weights": shares.tolist(),
        "relations": names,
        "relation_weights": each.tolist(),
    }


def relation_shares(subsets: Sequence[Subset], shares: Array) -> tuple[list[str], Array]:
    """Return the relations and their shares in each hop.  shares (S, K+1) → (relations, K+1)."""
    names = list(dict.fromkeys(name for subset in subsets for name in subset))
    parts = np.array([[(name in subset) / len(subset) for subset in subsets] for name in names])  # (relations, S)
    return names, parts @ shares
