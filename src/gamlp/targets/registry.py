"""The kinds of targets, and which one labels are of."""

from __future__ import annotations

from gamlp.storage.files import Array
from gamlp.targets.base import TargetKind
from gamlp.targets.multi import MultiLabel
from gamlp.targets.single import SingleLabel

SINGLE, MULTI = SingleLabel(), MultiLabel()
KINDS: dict[str, TargetKind] = {kind.name: kind for kind in (SINGLE, MULTI)}
BY_DIMENSIONS = {kind.dimensions: kind for kind in KINDS.values()}


def kind_of(labels: Array) -> TargetKind:
    """Return the kind of target that labels are of: (N,) classes, or (N, T) of 0 and 1."""
    return BY_DIMENSIONS[labels.ndim]
