"""Columns of any type as features: what a column is, how it becomes numbers, and that kept as data."""

from gamlp.graph.encode.columns import Columns, Encoded

__all__ = ["Columns", "Encoded"]
