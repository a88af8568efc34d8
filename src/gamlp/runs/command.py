"""The command that repeats a run, a comparison or a search, made from its specification: it can be pasted anywhere.

Settings are written as --set reads them: a TOML value, or bare text where nothing else could be meant.
"""

from __future__ import annotations

import shlex
import tomllib
from typing import Any

from gamlp.errors import SettingsError
from gamlp.recipes.recipe import literal
from gamlp.runs.spec import Spec, usual_engine


def command_of(spec: Spec) -> str:
    """Return a line for a shell; empty where the graph came from Python."""
    if spec.source is None:
        return ""
    command, *own = spec.own_words()
    words = ["gamlp", command, *spec.source.words(), *own]
    words += ["--recipe", spec.recipe, "--seeds", str(len(spec.seeds)), "--seed", str(spec.seeds[0])]
    for key, value in spec.overrides.items():
        words += ["--set", f"{key}={written_value(value)}"]
    return shlex.join([*words, *engine_words(spec)])


def engine_words(spec: Spec) -> list[str]:
    """Return the options of engine and device that differ from the usual ones."""
    engine = spec.engine
    usual = usual_engine(spec.device, engine.memory)
    options = {
        "--engine": None if engine.name == usual else engine.name,
        "--memory": engine.memory,
        "--address": engine.address,
        "--cache": engine.cache,
        "--device": None if spec.device == "cpu" else spec.device,
    }
    return [word for name, value in options.items() if value is not None for word in (name, str(value))]


def parse_value(text: str, what: str) -> Any:
    """Read a value as TOML writes it: number, true/false, "text", [list], {table}; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return {"True": True, "False": False}.get(text, text)
    except (RecursionError, ValueError) as error:  # brackets in brackets, or a number of thousands of digits
        raise SettingsError(f"{what}: the value cannot be read ({error}).\nWrite a number, text or a list.") from None


def written_value(value: Any) -> str:
    """Write a value so that `parse_value` reads the same."""
    if isinstance(value, str) and value == value.strip() and parse_value(value, "") == value:
        return value
    return literal(value)
