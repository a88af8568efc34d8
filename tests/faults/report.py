"""Disturb and corrupt everything, and write what came of it into docs/reliability.md.

    python tests/faults/report.py             all of it, two processes side by side; what `make faults` runs
    python tests/faults/report.py --sample    some of it, as JSON on standard output; what the tests run

The exit code is 1 where anything happened that must not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forks import one_thread

one_thread()

from corrupt import Findings, corrupt_all  # noqa: E402
from disturb import Tally, disturb_all, place_for_work  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def main() -> int:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="only some faults; print JSON")
    parser.add_argument("--share", nargs=2, type=int, default=(0, 1), metavar=("I", "N"), help="every N-th from I on")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    options = parser.parse_args()
    if options.sample or options.share[1] > 1:
        part = work(every=60 if options.sample else 1, share=tuple(options.share))
        json.dump(part, sys.stdout)
        return bool(part["tally"]["defects"] or part["findings"]["defects"])
    begun = time.monotonic()
    tally, findings = side_by_side(options.jobs)
    text = figures(tally, findings, minutes=(time.monotonic() - begun) / 60)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + text + END + rest.split(END)[1], encoding="utf-8")
    for defect in [*tally.defects, *findings.defects]:
        print("DEFECT", defect)
    return bool(tally.defects or findings.defects)


def work(*, every: int, share: tuple[int, int]) -> dict[str, Any]:
    """Do one share, in this process."""
    import torch

    torch.set_num_threads(1)
    base = place_for_work()
    tally = disturb_all(base / "disturbed", every=every, share=share)
    findings = corrupt_all(base / "corrupted", every=every, share=share)
    base.rmdir()
    return {"tally": vars(tally), "findings": vars(findings)}


def side_by_side(jobs: int) -> tuple[Tally, Findings]:
    """Do all shares in processes of their own, and add them up."""
    command = [sys.executable, __file__, "--share"]
    running = [
        subprocess.Popen([*command, str(at), str(jobs)], stdout=subprocess.PIPE, text=True) for at in range(jobs)
    ]
    tally, findings = Tally(), Findings()
    for process in running:
        out, _ = process.communicate()
        part = json.loads(out)
        tally.add(Tally(**part["tally"]))
        findings.add(Findings(**part["findings"]))
    return tally, findings


def figures(tally: Tally, findings: Findings, *, minutes: float) -> str:
    """Return the tables."""
    kills = sum(tally.injected[fault] for fault in ("kill", "torn", "power"))
    failed = sum(tally.injected[fault] for fault in ("ENOSPC", "EIO", "short"))
    identical = sum(count for name, count in tally.outcomes.items() if name.endswith("identical bits"))
    wrong = sum(findings.outcomes[name] for name in ("wrong", "executed"))
    broken = sum(findings.outcomes[name] for name in ("traceback", "crash"))
    lines = [
        "| faults | |", "|---|---:|",
        f"| places where a command changes the disk | {sum(tally.boundaries.values()):,} |",
        f"| kills, at every place: before it, in the middle of it, with the power gone | {kills:,} |",
        f"| calls that failed: no space, input/output error, a write cut short | {failed:,} |",
        f"| ended in the same bits as without the fault | {identical:,} of {kills + failed:,} |",
        f"| lost work that was finished | {tally.outcomes['lost finished work']:,} |",
        f"| anything else that must not happen | {len(tally.defects):,} |",
        "",
        "| corruptions | |", "|---|---:|",
        f"| tried | {sum(findings.tried.values()):,} |",
        f"| detected, with a message | {findings.outcomes['detected']:,} |",
        f"| harmless: the same result | {findings.outcomes['harmless']:,} |",
        f"| another valid input: of files that users write | {findings.outcomes['another valid input']:,} |",
        f"| a wrong result from files with checksums, or something executed | {wrong:,} |",
        f"| a traceback or a crash | {broken:,} |",
        f"| hung | {findings.outcomes['hang']:,} |",
        "",
        *table("places by command", tally.boundaries),
        "",
        *table("corruptions by kind of file", findings.tried),
        "",
        f"Made by `make faults` in {minutes:.0f} minutes on {machine()}; a process that read corrupted files "
        f"never had more than {findings.most_memory / 2**20:,.0f} MiB in memory, libraries included.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def table(title: str, counts: Mapping[str, int]) -> list[str]:
    """Return the lines of a table with one number a row."""
    return [f"| {title} | |", "|---|---:|", *(f"| {name} | {count:,} |" for name, count in counts.items())]


def machine() -> str:
    """Name this machine."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
