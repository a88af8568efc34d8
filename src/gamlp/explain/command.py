"""The command that repeats a run or a comparison, from what run.json or comparison.json kept."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command_of(record: Mapping[str, Any]) -> str:
    """Return a line for a shell that trains a run again; every word is quoted where it needs to be."""
    source = record["graph"]
    if not source:
        return ""
    return shlex.join(["gamlp", "train", *source["what"], "--method", record["method"], *asked(record, source)])


def comparison_command(record: Mapping[str, Any]) -> str:
    """Return a line for a shell that compares again."""
    source = record["source"]
    if not source:
        return ""
    return shlex.join(
        ["gamlp", "compare", *source["what"], "--methods", ",".join(record["methods"]), *asked(record, source)]
    )


def asked(record: Mapping[str, Any], source: Mapping[str, Any]) -> list[str]:
    """Return the options that both commands have: recipe, seeds, settings, and how the graph is read."""
    seeds = record["seeds"]
    words = ["--recipe", record["recipe"], "--seeds", str(len(seeds)), "--seed", str(seeds[0])]
    for key, value in record["overrides"].items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    for role, value in source["options"].items():
        if role == "features":
            words += ["--features", value]
        elif role == "directed":
            words += ["--directed"]
        else:
            words += ["--column", f"{role}={value}"]
    if source["what"] != ["debian"] and not source["options"]:
        words += ["--root", source["root"]]
    if record["device"] != "cpu":
        words += ["--device", record["device"]]
    return words
