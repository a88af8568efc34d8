"""Which triples and which negatives a step takes: a function of (seed, step) alone, so a killed run goes on as it was.

An epoch visits every training triple once, in random order. The order is not stored: a Feistel network, keyed by
(seed, epoch), maps place to row one to one on 0 … 2^bits−1, and places that land beyond the last row are mapped again
until they do not (at most twice as many maps as rows, on average). Cost: O(B) time and memory a step, whatever T is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.embed.settings import EmbeddingSettings
from gamlp.storage.files import Array

ROUNDS = 6
MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of the generator splitmix64
ORDER, NEGATIVES = 1, 2  # streams of randomness


@dataclass(frozen=True)
class Plan:
    """How `rows` training triples are cut into steps."""

    rows: int
    entities: int
    seed: int
    chunks: int
    chunk: int
    negatives: int

    @property
    def size(self) -> int:
        """Triples in one step."""
        return self.chunks * self.chunk

    def places(self, step: int) -> Array:
        """Return which of the training triples step takes, (B,); a batch may reach into the next epoch."""
        at = np.arange(step * self.size, (step + 1) * self.size)
        epochs, places = at // self.rows, at % self.rows
        keys = {epoch: [self.seed, ORDER, epoch] for epoch in range(int(epochs[0]), int(epochs[-1]) + 1)}
        return np.concatenate([shuffled(places[epochs == one], self.rows, key=key) for one, key in keys.items()])

    def drawn(self, step: int) -> Array:
        """Return the entities that stand in for the right one, (chunks, negatives), any entity equally likely."""
        random = np.random.default_rng([self.seed, NEGATIVES, step])
        return random.integers(0, self.entities, (self.chunks, self.negatives))


def plan_for(settings: EmbeddingSettings, *, rows: int, entities: int, seed: int) -> Plan:
    """Cut the batches into whole chunks; few triples make one small chunk."""
    size = min(settings.batch_size, rows)
    chunk = min(settings.chunk, size)
    return Plan(rows, entities, seed, size // chunk, chunk, settings.negatives)


def shuffled(places: Array, count: int, *, key: list[int]) -> Array:
    """Return where a random permutation of 0 … count−1, named by `key`, takes these places."""
    bits = max(2, (count - 1).bit_length())
    keys = np.random.SeedSequence(key).generate_state(ROUNDS, np.uint64)
    values = feistel(places.astype(np.uint64), bits, keys)
    while (beyond := np.flatnonzero(values >= count)).size:
        values[beyond] = feistel(values[beyond], bits, keys)
    return values.astype(np.int64)


def feistel(values: Array, bits: int, keys: Array) -> Array:
    """Permute 0 … 2^bits−1: low and high half take turns to be changed by a hash of the other."""
    low_bits = np.uint64(bits // 2)
    low_mask, high_mask = np.uint64(2 ** (bits // 2) - 1), np.uint64(2 ** (bits - bits // 2) - 1)
    low, high = values & low_mask, values >> low_bits
    for number, key in enumerate(keys):
        if number % 2:
            low = low ^ (mixed(high + key) & low_mask)
        else:
            high = high ^ (mixed(low + key) & high_mask)
    return (high << low_bits) | low


def mixed(values: Array) -> Array:
    """Scramble 64 bits; sums and products wrap around on purpose."""
    values = (values ^ (values >> np.uint64(30))) * MULTIPLIERS[0]
    values = (values ^ (values >> np.uint64(27))) * MULTIPLIERS[1]
    return np.asarray(values ^ (values >> np.uint64(31)))
