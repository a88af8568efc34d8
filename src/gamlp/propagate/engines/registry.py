"""The choice of an engine as the command line, run.json and the estimator spell it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from gamlp.errors import SettingsError, did_you_mean
from gamlp.propagate.engines import ENGINES
from gamlp.propagate.engines.base import Engine


class EngineChoice(BaseModel):
    """Which engine and how: --engine, --memory, --address, --cache; run.json keeps it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "local"
    memory: int | None = None  # bytes
    address: str | None = None  # of a Ray cluster
    cache: Path | None = None

    def open(self, *, device: str = "cpu") -> Engine:
        """Return the engine; options that do not go together are refused."""
        if self.name not in ENGINES:
            raise SettingsError(f"There is no engine '{self.name}'.\n{did_you_mean(self.name, ENGINES)}")
        if self.address is not None and self.name != "ray":
            raise SettingsError(f"--address {self.address} was given for the engine '{self.name}'.\nUse --engine ray.")
        module, kind = ENGINES[self.name]
        engine: Any = getattr(import_module(module), kind)
        return engine.from_choice(self, device)  # type: ignore[no-any-return]
