"""Which nodes train, which choose the epoch, which test.

A split is fixed by the data set, or one of several fixed ones, a seed each, or drawn by a rule, anew for each seed.
Test labels are read by the final evaluation only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gamlp.errors import IdError, ShapeError, SplitError
from gamlp.storage.files import Array, digest
from gamlp.targets.registry import kind_of


@dataclass(frozen=True, eq=False)
class Sets:
    """What trains, what chooses the epoch, what tests."""

    train: Array
    valid: Array
    test: Array

    @property
    def sets(self) -> dict[str, Array]:
        """The three by their names."""
        return {"train": self.train, "valid": self.valid, "test": self.test}


class Split(Sets):
    """Sorted node ids (int64) of the three sets, without overlap."""

    @property
    def fingerprint(self) -> str:
        """A hash of the three sets."""
        return digest(self.train, self.valid, self.test)

    def draw(self, labels: Array, seed: int) -> Split:
        """Return itself: it is the same for every seed."""
        return self

    def check(self, nodes: int) -> None:
        """Refuse ids that name no node, and sets that overlap."""
        for name, ids in self.sets.items():
            if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= nodes):
                raise IdError(
                    f"The {name} set names node {int(ids.max() if ids.min() >= 0 else ids.min()):,}, "
                    f"the graph has {nodes:,} nodes.\nIds must lie between 0 and {nodes - 1:,}."
                )
        count = np.zeros(nodes, dtype=np.int8)
        for ids in self.sets.values():
            np.add.at(count, ids, 1)
        if (count > 1).any():
            raise SplitError(
                f"{int((count > 1).sum()):,} nodes stand in more than one of train, valid and test, "
                f"node {int(np.argmax(count > 1)):,} for one.\nEach node belongs to one set at most."
            )

    def check_trainable(self, labels: Array) -> None:
        """Refuse a split that cannot train or choose."""
        if not len(self.train):
            raise SplitError("The split has no training node.\nMark at least one labelled node of each class as train.")
        kind = kind_of(labels)
        for name in ("train", "valid"):
            unknown = int((~kind.known(labels[self.sets[name]])).sum())
            if unknown:
                raise SplitError(f"{unknown:,} nodes of the {name} set have no label.\nLabel them, or leave them out.")
        if not kind.differ(labels[self.train]):
            raise SplitError("All training nodes have the same class.\nAt least two classes are needed to learn from.")


class Splits(Sets):
    """S fixed splits as masks (N, S): seed s takes column s, and after the last the first again."""

    @property
    def fingerprint(self) -> str:
        """A hash of all splits."""
        return digest("splits", self.train, self.valid, self.test)

    def draw(self, labels: Array, seed: int) -> Split:
        """Return the split of a seed."""
        column = seed % self.train.shape[1]
        return Split(*(np.flatnonzero(mask[:, column]) for mask in self.sets.values()))

    def check(self, nodes: int) -> None:
        """Refuse masks of other shapes than (N, S), and sets that overlap."""
        for name, mask in self.sets.items():
            if mask.shape != (nodes, self.train.shape[1]):
                raise ShapeError(
                    f"The {name} masks have the shape {mask.shape} for {nodes:,} nodes and {self.train.shape[1]} "
                    "splits.\nGive one value per node and split."
                )
        for column in range(self.train.shape[1]):
            self.draw(self.train, column).check(nodes)


@dataclass(frozen=True)
class SplitRule:
    """How to draw a split from the labelled nodes: so many of each class (≥ 1), or such a share of each (< 1).

    A class too small for its numbers gives half of its nodes to training and a quarter to validation. Nodes with
    several labels are drawn from as if all were of one class.
    """

    train: float = 0.6
    valid: float = 0.2

    @property
    def sets(self) -> dict[str, Array]:
        """Nothing: they are drawn."""
        return {}

    @property
    def fingerprint(self) -> str:
        """A hash of the rule."""
        return digest(repr(self))

    def check(self, nodes: int) -> None:
        """Accept any graph."""

    def draw(self, labels: Array, seed: int) -> Split:
        """Draw the split of `seed`; the rest of the labelled nodes are for testing. Without labels all are empty."""
        random = np.random.default_rng([seed, 0x5F17])
        parts: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        groups = kind_of(labels).strata(labels)
        for group in np.unique(groups[groups >= 0]):
            members = random.permutation(np.flatnonzero(groups == group))
            train, valid = self.counts(len(members))
            for part, ids in zip(parts, np.split(members, [train, train + valid]), strict=True):
                part.append(ids)
        none = np.empty(0, np.int64)
        return Split(*(np.sort(np.concatenate([none, *part])) for part in parts))

    def counts(self, members: int) -> tuple[int, int]:
        """Return how many of a class's nodes train and validate."""
        train = int(self.train if self.train >= 1 else max(1, round(self.train * members)))
        valid = int(self.valid if self.valid >= 1 else round(self.valid * members))
        if train + valid >= members and self.train >= 1:
            return max(1, members // 2), members // 4
        return train, min(valid, members - train)


AnySplit = Split | Splits | SplitRule
