"""The command that repeats a run, from what run.json kept."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command_of(record: Mapping[str, Any]) -> str:
    """Return a line for a shell; every word is quoted where it needs to be."""
    source = record["graph"]
    if not source:
        return ""
    seeds = record["seeds"]
    words = ["gamlp", "train", *source["what"], "--method", record["method"], "--recipe", record["recipe"]]
    words += ["--seeds", str(len(seeds)), "--seed", str(seeds[0])]
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
    return shlex.join(words)
