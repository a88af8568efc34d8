"""Corrupt every file that gamlp reads in every way, read it, and say what became of it."""

from __future__ import annotations

import shutil
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from corruptions import MARK, Corruption, corruptions
from forks import HUNG, forked
from readers import KINDS, Kind, Refused

MEMORY = 2**30  # bytes that reading may take beyond what the process has; the largest honest input here has 64 MiB
BATCH = 60
SLOW = 5.0  # seconds for one reading; without damage it takes some milliseconds
SKIPPED = {"report.html", "predictions.parquet"}  # written for people and other tools, never read


@dataclass
class Findings:
    """How many corruptions there were of each kind, what became of them, and what should not have happened."""

    tried: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    most_memory: int = 0

    def add(self, other: Findings) -> None:
        """Take over what another process found."""
        self.tried.update(other.tried)
        self.outcomes.update(other.outcomes)
        self.defects += other.defects
        self.most_memory = max(self.most_memory, other.most_memory)


def corrupt_all(base: Path, *, payload: int = 40, every: int = 1, share: tuple[int, int] = (0, 1)) -> Findings:
    """Try all corruptions of all kinds, or every so manieth; with a share (i, n) every n-th from the i-th on."""
    findings = Findings()
    shutil.rmtree(base, ignore_errors=True)
    for number, kind in enumerate(KINDS):
        jobs = prepare(kind, base / f"{number}", payload)
        expected = undamaged(kind, base / f"{number}")
        chosen = [job for at, job in enumerate(jobs) if at % (every * kind.every) == number % every]
        chosen = [job for at, job in enumerate(chosen) if at % share[1] == share[0]]
        for first in range(0, len(chosen), BATCH):
            _batch(kind, base / f"{number}", chosen[first : first + BATCH], expected, findings)
    shutil.rmtree(base, ignore_errors=True)
    return findings


def prepare(kind: Kind, base: Path, payload: int) -> list[tuple[str, Corruption]]:
    """Make the input and two others like it; return (file, corruption) for all of its files."""
    variants = [base / f"whole-{variant}" for variant in range(3)]
    for variant, folder in enumerate(variants):
        kind.make(folder, variant)
    random = np.random.default_rng(0)
    jobs = []
    for path in sorted(variants[0].rglob("*")):
        if path.is_file() and path.name not in SKIPPED and not path.name.startswith("."):
            name = str(path.relative_to(variants[0]))
            others = [folder / name for folder in variants[1:] if (folder / name).is_file()]
            jobs += [(name, one) for one in corruptions(path, others, random=random, payload=payload)]
    return jobs


def undamaged(kind: Kind, base: Path) -> str:
    """Return what reading gives without damage."""
    copy = base / "place"
    shutil.copytree(base / "whole-0", copy)
    return kind.read(copy)


def _batch(kind: Kind, base: Path, jobs: list[tuple[str, Corruption]], expected: str, findings: Findings) -> None:
    """Try some corruptions in one child; where it does not survive, each in a child of its own."""
    ended = forked(lambda: [attempt(kind, base, *job, expected) for job in jobs], timeout=SLOW * 12, memory=MEMORY)
    if ended.code != 0 or not isinstance(ended.sent, list):
        if len(jobs) > 1:
            for half in (jobs[: len(jobs) // 2], jobs[len(jobs) // 2 :]):
                _batch(kind, base, half, expected, findings)
            return
        outcome = "hang" if ended.code == HUNG else "crash"
        ended_as: list[Any] = [[outcome, f"ended with {ended.code}"]]
    else:
        ended_as = ended.sent
    for (name, corruption), (outcome, words) in zip(jobs, ended_as, strict=True):
        findings.tried[kind.name] += 1
        findings.outcomes[outcome] += 1
        if outcome in ("wrong", "traceback", "hang", "crash", "executed"):
            findings.defects.append(f"{kind.name}, {name}, {corruption.name}: {outcome}\n{words}")
    findings.most_memory = max(findings.most_memory, ended.memory)


def attempt(kind: Kind, base: Path, name: str, corruption: Corruption, expected: str) -> tuple[str, str]:
    """Damage a copy, read it, and return what became of it."""
    from gamlp.errors import GamlpError

    whole, place = base / "whole-0", base / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole, place)
    corruption.apply(place / name)
    begun = time.monotonic()
    try:
        found = kind.read(place)
    except GamlpError:
        outcome, words = "detected", ""
    except Refused as refused:
        code, words = refused.args
        outcome = "detected" if code in (2, 3) and "Traceback" not in words else "traceback"
    except BaseException:
        outcome, words = "traceback", traceback.format_exc()
    else:
        words = ""
        valid = corruption.authored or not kind.checked
        outcome = "harmless" if found == expected else "another valid input" if valid else "wrong"
    if Path("/tmp", MARK).exists():
        outcome = "executed"
    return ("hang" if time.monotonic() - begun > SLOW * 6 else outcome), words
