"""Small knowledge graphs whose structure is known."""

import numpy as np
import pytest

from gamlp.embed import Triples


def ring_triples(entities=300, steps=(1, 2, 5, -3, 7)) -> Triples:
    """Entities on a ring; relation k leads `steps[k]` places on, so each fact follows from the others."""
    heads = np.tile(np.arange(entities), len(steps))
    relations = np.repeat(np.arange(len(steps)), entities)
    tails = (heads + np.array(steps)[relations]) % entities
    return Triples(heads, relations, tails, entities, tuple(f"plus {step}" for step in steps))


def grid_triples(side=7) -> Triples:
    """Entities on a cube; a relation is a step along one axis, or along two, as long as it stays inside."""
    steps = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, -1]])
    places = np.stack(np.unravel_index(np.arange(side**3), (side,) * 3), 1)
    ends = places[None] + steps[:, None]  # (relations, entities, 3)
    relations, heads = np.nonzero(((ends >= 0) & (ends < side)).all(-1))
    tails = np.ravel_multi_index(tuple(ends[relations, heads].T), (side,) * 3)
    return Triples(heads, relations, tails, side**3, tuple(f"along {step.tolist()}" for step in steps))


@pytest.fixture(scope="session")
def grid() -> Triples:
    return grid_triples()


@pytest.fixture(scope="session")
def ring() -> Triples:
    return ring_triples()
