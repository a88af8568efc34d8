"""Which rows a step reads: a function of (seed, stage, epoch, step) alone, so that a killed run goes on as it was.

An epoch visits every training node once, in random order. Hops that do not fit in memory are read faster in runs of
neighbouring rows: the sorted ids are then cut into runs at places drawn anew for each epoch, and the runs are shuffled
instead of the rows. A batch of 10,000 rows in runs of 16 still comes from 625 places.

Where there are reliable nodes too, each step takes its share of both: with n training and m reliable nodes in S steps,
about n/S of the former and m/S of the latter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gamlp.storage.files import Array


def steps_per_epoch(sizes: list[int], batch_size: int) -> int:
    """Return how many batches of at most about `batch_size` rows hold all sets."""
    return max(1, -(-sum(sizes) // batch_size))


def batches(sets: list[Array], batch_size: int, *, key: list[int], run: int = 1) -> Iterator[list[Array]]:
    """Yield for each step its part of each set; `key` is (seed, stage, epoch), `run` the rows that stay together.

    One step holds everything: its order is then of no account and stays fixed.
    """
    steps = steps_per_epoch([len(ids) for ids in sets], batch_size)
    if steps == 1:
        yield sets
        return
    random = np.random.default_rng(key)
    orders = [random.permutation(ids) if run == 1 else shuffled_runs(ids, run, random) for ids in sets]
    for step in range(steps):
        yield [order[len(order) * step // steps : len(order) * (step + 1) // steps] for order in orders]


def shuffled_runs(ids: Array, run: int, random: np.random.Generator) -> Array:
    """Cut sorted ids into runs of `run`, the first and last perhaps shorter, and shuffle the runs."""
    cuts = np.arange(random.integers(1, run + 1), len(ids), run)
    runs = np.split(ids, cuts)
    return np.concatenate([runs[at] for at in random.permutation(len(runs))])


def seed_of(*key: int) -> int:
    """Mix whole numbers into one seed below 2⁶³; different keys give independent streams."""
    return int(np.random.SeedSequence(list(key)).generate_state(1, np.uint64)[0] >> 1)
