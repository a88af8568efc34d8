"""Write a recipe as TOML: text, numbers, booleans, lists of these, and tables. What is written is read back first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gamlp.recipes.recipe import Recipe, load_recipe
from gamlp.storage.files import replacing

ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write_recipe(path: Path, content: Mapping[str, Any]) -> Recipe:
    """Write `content` and return it as `load_recipe` reads it."""
    with replacing(path) as file:
        file.write(as_toml(content).encode())
    return load_recipe(path)


def as_toml(content: Mapping[str, Any], prefix: str = "") -> str:
    """Return keys, then tables, as TOML."""
    plain = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
    lines = [f"{bare(key)} = {literal(value)}\n" for key, value in plain.items()]
    for key, table in content.items():
        if isinstance(table, Mapping):
            inner = as_toml(table, f"{prefix}{bare(key)}.")
            holds_only_tables = table and all(isinstance(value, Mapping) for value in table.values())
            lines.append(inner if holds_only_tables else f"\n[{prefix}{bare(key)}]\n{inner}")
    return "".join(lines)


def bare(key: str) -> str:
    """Quote a key where TOML needs it."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else literal(key)


def literal(value: Any) -> str:
    """Return one value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(ESCAPES.get(letter, escaped(letter)) for letter in value) + '"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{bare(key)} = {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return repr(value)  # whole numbers, and floats with every digit: 0.001, 1e-05


def escaped(letter: str) -> str:
    """Return a letter, a control character by its number."""
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x20 or ord(letter) == 0x7F else letter
