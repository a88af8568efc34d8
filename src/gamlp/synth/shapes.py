"""Shapes of known data sets: sizes, classes, skewness and how faintly the features tell the class.

Sizes are the published ones (see `graph.datasets`), edges before symmetrising. What no table states, how skewed degrees
are and how often neighbours share a class, is chosen: the graphs are for measuring, not for accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gamlp.errors import SettingsError, did_you_mean


@dataclass(frozen=True)
class SynthShape:
    """What a generated graph looks like."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    train: float  # shares of all nodes
    valid: float
    test: float
    community: int = 200  # nodes, neighbours in number, of one class
    inside: float = 0.6  # share of edges within a community
    same_class: float = 0.2  # share of edges to another community of the same class
    skew: float = 2.0  # an end is node N·u^skew, u uniform: 1 is even, 2 has hubs
    signal: float = 0.5  # length of a class's mean beside noise of 1 in each feature

    def scaled(self, scale: float) -> SynthShape:
        """Return the shape with `scale` times the nodes and edges."""
        nodes, edges = max(2 * self.classes, round(self.nodes * scale)), max(1, round(self.edges * scale))
        return replace(self, nodes=nodes, edges=edges)


SHAPES = {
    shape.name: shape
    for shape in (
        SynthShape("products", 2_449_029, 61_859_140, 100, 47, 0.08, 0.016, 0.904),
        SynthShape("papers100M", 111_059_956, 1_615_685_872, 128, 172, 0.0109, 0.0011, 0.0019),
        SynthShape("mag", 1_939_743, 21_111_007, 128, 349, 0.325, 0.033, 0.0216),
    )
}


def shape_named(name: str) -> SynthShape:
    """Return a shape by its name, in upper or lower case."""
    found = {known.lower(): shape for known, shape in SHAPES.items()}.get(name.lower())
    if found is None:
        raise SettingsError(f"There is no shape '{name}'.\n{did_you_mean(name, SHAPES)}")
    return found
