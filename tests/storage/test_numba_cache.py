"""Compiled code is cached, and compiled again when any file that went into it changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
from gamlp.storage.numba_cache import cached_njit
from kernels.{imported}
@cached_njit
def answer(x):
    return {body}
"""
PROGRAM = """
from kernels.sums import answer
print(answer(1), sum(answer.stats.cache_hits.values()))
"""


def run(folder: Path) -> list[int]:
    """Return what a new process computes, and how much of it came from the cache."""
    path = os.pathsep.join([str(folder), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in done.stdout.split()]


def write(folder: Path, **sources: str) -> None:
    (folder / "kernels").mkdir(exist_ok=True)
    for name, source in {"__init__": "", **sources}.items():
        (folder / "kernels" / f"{name}.py").write_text(source)


STEP = "from gamlp.storage.numba_cache import cached_njit\n@cached_njit\ndef step(x):\n    return x + {}\n"


@pytest.mark.parametrize(
    ("imported", "body", "before", "after"),
    [
        ("steps import step", "step(x)", STEP.format(1), STEP.format(5)),  # a kernel called from another file
        ("steps import WIDTH", "x + WIDTH", "WIDTH = 1\n", "WIDTH = 5\n"),  # a constant, which numba freezes
        ("between import step", "step(x)", STEP.format(1), STEP.format(5)),  # by way of a third file
    ],
)
def test_a_changed_import_is_compiled_again(tmp_path: Path, imported: str, body: str, before: str, after: str) -> None:
    write(tmp_path, sums=KERNEL.format(imported=imported, body=body), between="from .steps import *\n", steps=before)
    assert run(tmp_path) == [2, 0]
    assert run(tmp_path) == [2, 1]
    write(tmp_path, steps=after)
    assert run(tmp_path) == [6, 0]


def test_a_file_that_is_not_imported_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, sums=KERNEL.format(imported="steps import WIDTH", body="x + WIDTH"), steps="WIDTH = 1\n", other="")
    assert run(tmp_path) == [2, 0]
    write(tmp_path, other="WIDTH = 7\n")
    assert run(tmp_path) == [2, 1]
