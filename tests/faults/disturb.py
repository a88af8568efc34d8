"""Disturb every boundary of every scenario in turn, resume, and compare with what an undisturbed run gives."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forks import Ended, command, forked
from injector import ERRORS, KILLS, WRITES, Injector
from scenarios import SCENARIOS, Scenario, begin, digest, prepare, restart, serve, watch

TRIES = 3  # commands until the outcome stands; one is enough, the others would be a defect


@dataclass
class Tally:
    """What was injected and what became of it."""

    injected: Counter[str] = field(default_factory=Counter)  # by fault
    outcomes: Counter[str] = field(default_factory=Counter)
    boundaries: dict[str, int] = field(default_factory=dict)  # by scenario
    defects: list[str] = field(default_factory=list)
    left_behind: Counter[str] = field(default_factory=Counter)  # names of files that nobody takes away

    def add(self, other: Tally) -> None:
        """Take over what another process found."""
        for mine, theirs in ((self.injected, other.injected), (self.outcomes, other.outcomes)):
            mine.update(theirs)
        self.left_behind.update(other.left_behind)
        self.boundaries |= other.boundaries
        self.defects += other.defects


class Laboratory:
    """A folder, best in memory, where scenarios are disturbed one after the other."""

    def __init__(self, base: Path) -> None:
        self.base, self.place, self.log = base, base / "place", base / "work.log"
        warm(base)

    def undisturbed(self, scenario: Scenario) -> Reference:
        """Run a scenario to its end, counting."""
        begin(scenario, self.place)
        before = digest(self.place / "out") if scenario.before else None
        ended = self.run(scenario, scenario.words(self.place))
        if ended.code != 0:
            raise RuntimeError(f"{scenario.name} ended with {ended.code}:\n{ended.said}")
        return Reference(ended.sent["seen"], digest(self.place / scenario.outcome), self.names(), before)

    def disturb(self, scenario: Scenario, reference: Reference, fault: str, at: int, tally: Tally) -> None:
        """Inject one fault, then run again until the outcome stands."""
        begin(scenario, self.place)
        self.log.unlink(missing_ok=True)
        ended = self.run(scenario, scenario.words(self.place), fault=fault, at=at)
        what = f"{scenario.name}: {fault} at {at} ({reference.seen[at]})"
        tally.injected[fault] += 1
        kind = self.judge(ended, fault)
        if kind is not None:
            tally.defects.append(f"{what}: {kind}\n{ended.said}")
        if reference.before and self.state() not in (reference.before, reference.outcome):
            tally.defects.append(f"{what}: neither the old nor the new is there")
        tries = 0
        while self.outcome(scenario) != reference.outcome and tries < TRIES:
            ended = self.run(scenario, self.next_words(scenario), restarted=fault == "power")
            tries += 1
        if self.outcome(scenario) != reference.outcome:
            tally.defects.append(f"{what}: another outcome, {ended.code}\n{ended.said}")
        elif tries > 1:
            tally.defects.append(f"{what}: took {tries} more runs")
        else:
            tally.outcomes["resumed to identical bits" if tries else "finished all the same, identical bits"] += 1
        repeated = Counter(self.log.read_text().split("\n")[:-1] if self.log.exists() else [])
        kept = fault != "power" or scenario.through_power
        if kept and sum(repeated.values()) > len(repeated) + 1:
            tally.defects.append(f"{what}: finished work was done again: {dict(repeated)}")
            tally.outcomes["lost finished work"] += 1
        tally.left_behind.update(self.names() - reference.names)

    def judge(self, ended: Ended, fault: str) -> str | None:
        """Return what is wrong with how a disturbed command ended, or None."""
        if fault in KILLS:
            return None if ended.code == -9 else f"was not killed but ended with {ended.code}"
        if fault in ERRORS:
            fine = ended.code == 0 or (ended.code in (2, 3) and "Error: " in ended.said)
            return None if fine and "Traceback" not in ended.said else f"ended with {ended.code}"
        return None if ended.code == 0 else f"ended with {ended.code}"

    def run(
        self, scenario: Scenario, words: list[str], *, fault: str | None = None, at: int = -1, restarted: bool = False
    ) -> Ended:
        """Run a command in a child; `restarted`: after a power cut."""

        def work() -> dict[str, Any]:
            if restarted:
                restart()
            if scenario.work:
                watch(scenario.work, self.log)
            from gamlp.train.checkpoint import Checkpoint

            Checkpoint.due = lambda self: self.path is not None  # type: ignore[method-assign]  # after every epoch
            injector = Injector(self.place, fault=fault, at=at)
            injector.install()
            return {**(serve if scenario.served else command)(words), "seen": injector.seen}

        return forked(work)

    def next_words(self, scenario: Scenario) -> list[str]:
        """Return what a user would type next: resume where there is something to resume."""
        begun = (self.place / "out" / "run.json").exists()
        return (scenario.again if scenario.again and begun else scenario.words)(self.place)

    def state(self) -> str:
        """Return the hash of what is in place right after the fault."""
        return digest(self.place / "out") if (self.place / "out").exists() else "nothing"

    def outcome(self, scenario: Scenario) -> str:
        """Return the hash of the outcome, where there is one."""
        path = self.place / scenario.outcome
        return digest(path) if path.exists() else "nothing"

    def names(self) -> Counter[str]:
        """Return the files and folders in the place, with what is random in a name left out."""
        found = Counter[str]()
        for path in self.place.rglob("*"):
            name = str(path.relative_to(self.place))
            found[".…" if ".tmp" in name or ".old" in name else name] += 1
        return found


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run met and gave."""

    seen: list[str]
    outcome: str
    names: Counter[str]
    before: str | None


def warm(base: Path) -> None:
    """Import everything, compile every kernel, and make what scenarios start from."""
    import torch

    torch.set_num_threads(1)
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)

    def run(words: list[str], *, served: bool = False) -> None:
        done = (serve if served else command)(words)
        if done["code"] != 0:
            raise RuntimeError(f"{words} ended with {done['code']}:\n{done['err']}")

    prepare(base, run)
    for scenario in SCENARIOS:
        begin(scenario, base / "place")
        run(scenario.words(base / "place"), served=scenario.served)


def disturbances(scenario: Scenario, reference: Reference, every: int = 1) -> Iterator[tuple[str, int]]:
    """Yield (fault, boundary): all faults at all boundaries, or at every so manieth, in turns."""
    turn = 0
    for at, met in enumerate(reference.seen):
        for fault in (*KILLS, *ERRORS, *(("short",) if met in WRITES else ())):
            if turn % every == 0:
                yield fault, at
            turn += 1


def disturb_all(base: Path, *, every: int = 1, share: tuple[int, int] = (0, 1)) -> Tally:
    """Disturb all scenarios; with a share (i, n) every n-th disturbance from the i-th on."""
    laboratory, tally = Laboratory(base), Tally()
    for scenario in SCENARIOS:
        reference = laboratory.undisturbed(scenario)
        again = laboratory.undisturbed(scenario)
        if again.outcome != reference.outcome:
            raise RuntimeError(f"{scenario.name} differs from run to run without any fault")
        tally.boundaries[scenario.name] = len(reference.seen)
        for number, (fault, at) in enumerate(disturbances(scenario, reference, every * scenario.every)):
            if number % share[1] == share[0]:
                laboratory.disturb(scenario, reference, fault, at, tally)
    shutil.rmtree(base, ignore_errors=True)
    return tally


def place_for_work() -> Path:
    """Return a folder for the work: in memory, where the system has such a place."""
    shared = Path("/dev/shm")
    return (shared if os.access(shared, os.W_OK) else Path("build")) / f"gamlp-faults-{os.getpid()}"
