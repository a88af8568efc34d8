"""Train on some relation subsets at a time, in turns, where the hops of all of them do not fit in memory (NARS).

In a turn of some epochs p of the S subsets are open, drawn anew by (seed, stage, turn). Of the closed ones the sum
Σ_s weight_s · hops_s is worked out once, when the turn begins; their weights rest, so the network's output is that of
all subsets at every step, and only the gradient of the closed weights is missing. Memory: p + 1 subsets for the rows
that train. Evaluation reads its rows of all subsets from disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from gamlp.errors import SettingsError
from gamlp.model import Network
from gamlp.propagate.hops import Hops
from gamlp.propagate.subsets import Shelf, shelf_of, subsets_at_a_time
from gamlp.settings import Settings
from gamlp.storage.files import Array
from gamlp.train.inputs import Inputs

ROWS_A_STEP = 4096


class TurnInputs(Inputs):
    """Rows of subsets that stay on disk; in training, of the open ones and the sum over the others."""

    def __init__(
        self, hops: Hops, shelf: Shelf, labels: Array | None, nodes: int, device: str, settings: Settings
    ) -> None:
        super().__init__(hops, labels, nodes, device)
        if settings.consistency:
            raise SettingsError(
                "The consistency loss (+scr) needs all relation subsets in memory.\n"
                "Raise subset_memory, or leave it out."
            )
        self.shelf = shelf
        self.at_once = subsets_at_a_time(shelf.shape, settings.subset_memory)
        self.epochs = settings.subset_turn
        self.turn: tuple[object, ...] = ()
        self.open: list[int] = []
        self.place = np.zeros(0, np.int64)  # of each row of the hops among the loaded ones
        self.loaded = np.zeros(0, np.float32)  # (rows, p+1, K+1, F)
        self.training = False

    def begin_epoch(self, network: Network, ids: Array, key: list[int]) -> None:
        """Open the subsets of this epoch's turn; key is (seed, stage, epoch), ids are the nodes that train."""
        turn = (*key[:2], key[2] // self.epochs)
        if turn != self.turn:
            self.turn, self.loaded = turn, np.zeros(0, np.float32)
            random = np.random.default_rng([*turn, 0x7042])
            self.open = sorted(random.permutation(self.shelf.shape[1])[: self.at_once].tolist())
            self._load(network, self.rows_of(ids))
        assert network.mixer is not None
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
    def _load(self, network: Network, rows: Array) -> None:
        assert network.mixer is not None
        closed = [subset for subset in range(self.shelf.shape[1]) if subset not in self.open]
        self.place = np.full(self.shelf.shape[0], -1, np.int64)
        self.place[rows] = np.arange(len(rows))
        self.loaded = np.zeros((len(rows), len(self.open) + 1, *self.shelf.shape[2:]), np.float32)
        for start in range(0, len(rows), ROWS_A_STEP):
            part = rows[start : start + ROWS_A_STEP]
            self.loaded[start : start + len(part), :-1] = self.shelf.take(part, self.open)
            if closed:
                there = torch.from_numpy(self.shelf.take(part, closed)).to(self.device).float()
                self.loaded[start : start + len(part), -1] = network.mixer.weighted(there, closed).cpu().numpy()

    def _hop_rows(self, rows: Array) -> Tensor:
        if self.training:
            return self._tensor(self.loaded, self.place[rows])
        return torch.from_numpy(self.shelf.take(rows)).to(self.device).float()


def inputs_for(hops: Hops, labels: Array | None, nodes: int, device: str, settings: Settings) -> Inputs:
    """Return the rows a network reads, in memory or, in turns, from disk."""
    shelf = shelf_of(hops)
    if shelf is None:
        return Inputs(hops, labels, nodes, device)
    return TurnInputs(hops, shelf, labels, nodes, device, settings)
