"""Rows of a long benchmark, kept in a file as they are finished: what is there is not run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gamlp.machine.facts import processor_name


class FinishedRows:
    """The rows of a record; `known` is asked before a row is made, `add` keeps it and prints it."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path, self.threads = path, threads

    def known(self, place: dict[str, Any]) -> bool:
        """Return whether there is a row with these values."""
        return any(place.items() <= row.items() for row in self._read()["rows"])

    def add(self, row: dict[str, Any]) -> None:
        """Put a row behind those that are there, and say on which processor."""
        print(json.dumps(row), flush=True)
        record = self._read()
        record["rows"].append(row)
        record |= {"processor": processor_name(), "threads": self.threads}
        self.path.write_text(json.dumps(record, indent=1) + "\n")

    def _read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {"rows": []}
