"""Fixtures of `paths`."""

from paths import trained, worlds

__all__ = ["trained", "worlds"]
