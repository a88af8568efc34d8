"""Mutation testing: one small change to a module at a time, which its tests must notice.

    pip install cosmic-ray
    python benchmarks/mutation.py                        all modules of mutation.toml, half an hour on one core
    python benchmarks/mutation.py labels/hops            some of them
    python benchmarks/mutation.py --survivors            only the changes that the record says nobody noticed

cosmic-ray makes the changes and leaves out those that mutation.toml excludes. They are made in a copy, never in this
tree; the quick tests of the module run in a fork of a process that has the libraries loaded, so that a change costs a
second or two. What nobody noticed is listed in benchmarks/recorded/mutation.json, with the reason if mutation.toml
has one why it cannot be noticed. `killed_before` is what the first record of a module had.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import difflib
import gc
import importlib
import json
import multiprocessing
import os
import py_compile
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.tools.filters.operators_filter import OperatorsFilter
from cosmic_ray.work_db import use_db

HERE = Path(__file__).parent
CONFIG = HERE / "mutation.toml"
RECORD = HERE / "recorded" / "mutation.json"
OPTIONS = [
    "-x", "-m", "not slow", "-k", "not promise_of_memory", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning", "--hypothesis-seed=0",
]  # fmt: skip
FORK = multiprocessing.get_context("fork")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="such as labels/hops; all where none is named")
    parser.add_argument("--survivors", action="store_true", help="run what survived, and count the rest as before")
    options = parser.parse_args()
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"modules": {}}
    with FORK.Pool(1) as pool:  # in another process: none of gamlp may be loaded here
        record |= {"tool": f"cosmic-ray {version('cosmic-ray')}", "processor": pool.apply(processor)}
    with tempfile.TemporaryDirectory() as folder:
        copy = prepared(Path(folder), config["run"]["warm"])
        for name in options.modules or config["modules"]:
            found = examined(name, config, copy, record["modules"].get(name, {}), options.survivors)
            record["modules"][name] = found
            score = f"{name}: {found['killed']} of {found['mutants']} killed, {len(found['equivalent'])} equivalent"
            print("\n    ".join([score, *found["survived"]]), flush=True)
            RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def processor() -> str:
    """Return the name of this machine's processor."""
    from gamlp.machine.facts import machine_facts

    return str(machine_facts(HERE)["processor"])


def prepared(folder: Path, libraries: list[str]) -> Path:
    """Copy the package and its tests, and load what they need beside gamlp, once for all forks."""
    for name in ("src", "tests"):
        shutil.copytree(HERE.parent / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE.parent / "pyproject.toml", folder)
    hashed = py_compile.PycInvalidationMode.CHECKED_HASH  # by its time and size a changed file may be the one before
    compileall.compile_dir(folder / "src", quiet=1, invalidation_mode=hashed)
    os.environ |= {
        "PYTHONPATH": str(folder / "src"), "NUMBA_CACHE_DIR": str(folder / "numba"),
        "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    }  # fmt: skip
    for name in libraries:
        importlib.import_module(name)
    gc.freeze()  # pytest collects garbage twice at its end: not among all of the libraries
    return folder


def examined(name: str, config: dict[str, Any], copy: Path, before: dict[str, Any], again: bool) -> dict[str, Any]:
    """Return how many changes of a module its tests notice, and which they do not."""
    module, entry, began = copy / "src" / "gamlp" / f"{name}.py", config["modules"][name], time.monotonic()
    tests, seconds = [f"tests/{test}" for test in entry["tests"]], config["run"]["seconds"]
    reasons = entry.get("equivalent", [])
    original = module.read_text(encoding="utf-8")
    possible = changes(module, original, copy / "session.sqlite", config["places"]["decorators"])
    count = min(len(possible), entry.get("sample", len(possible)))
    drawn = random.Random(config["run"]["seed"]).sample(sorted(possible), count)
    if not passes(copy, tests, seconds):
        sys.exit(f"The tests of {name} fail without any change.")
    survived, equivalent = [], {}
    for change in drawn:
        if again and change not in (*before["survived"], *before["equivalent"]):
            continue
        module.write_text(possible[change], encoding="utf-8")
        if passes(copy, tests, seconds):
            reason = next((one["reason"] for one in reasons if change.startswith(tuple(one["changes"]))), None)
            survived += [change] if reason is None else []
            equivalent |= {} if reason is None else {change: reason}
    module.write_text(original, encoding="utf-8")
    killed = len(drawn) - len(survived) - len(equivalent)
    return {
        "possible": len(possible), "mutants": len(drawn), "killed_before": before.get("killed_before", killed),
        "killed": killed, "survived": survived, "equivalent": equivalent, "tests": entry["tests"],
        "seconds": before["seconds"] if again else round(time.monotonic() - began),
    }  # fmt: skip


def changes(module: Path, code: str, session: Path, decorators: list[str]) -> dict[str, str]:
    """Return the changed code of each mutant by what it says of itself."""
    found: dict[str, str] = {}
    with use_db(session) as database:
        init([module], database, {})
        OperatorsFilter().filter(database, argparse.Namespace(config=str(CONFIG)))
        mutations = [item.mutations[0] for item in database.pending_work_items]
    outside = list(left_out(code, decorators))
    for mutation in sorted(mutations, key=lambda one: (one.start_pos, one.operator_name, one.occurrence)):
        if not any(first <= tuple(mutation.start_pos) < last for first, last in outside):
            operator = get_operator(mutation.operator_name)(**mutation.operator_args)
            changed = mutate_code(code, operator, mutation.occurrence)
            name = told(code, changed, mutation.definition_name)
            same = sum(other.startswith(name) for other in found)
            found[f"{name} ({same + 1})" if same else name] = changed
    return found


def left_out(code: str, decorators: list[str]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where a change cannot matter, from (line, column) to (line, column)."""
    for node in ast.walk(ast.parse(code)):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        parts += [one for one in getattr(node, "decorator_list", []) if ast.unparse(one).split("(")[0] in decorators]
        if isinstance(node, ast.Raise | ast.JoinedStr) or (isinstance(node, ast.Call) and is_log(node.func)):
            parts.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts.append(node)
        for part in filter(None, parts):
            yield (part.lineno, part.col_offset - 1), (part.end_lineno, part.end_col_offset)  # − 1: a decorator's @
    for number, line in enumerate(code.splitlines(), start=1):
        for star in re.finditer(r"\*,", line):  # before arguments by name: no product
            yield (number, star.start()), (number, star.end())


def is_log(function: ast.expr) -> bool:
    """Say whether a call is of the logger."""
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) == "log"


def told(code: str, changed: str, place: str | None) -> str:
    """Return "function: line → changed line"; the numbers of lines would change with every edit."""
    lines = list(difflib.unified_diff(code.splitlines(), changed.splitlines(), n=0))[3:]
    old, new = (" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return f"{place or 'module'}: {old.strip()} → {new.strip() or '(nothing)'}"


def passes(copy: Path, tests: list[str], seconds: int) -> bool:
    """Run tests in a fork; what crashes or hangs does not pass."""
    process = FORK.Process(target=run_tests, args=(copy, tests, seconds))
    process.start()
    process.join(4 * seconds)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode == 0


def run_tests(copy: Path, tests: list[str], seconds: int) -> None:
    """Leave the process with pytest's exit code."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nothing, output)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    os._exit(int(pytest.main([*OPTIONS, *tests])))


if __name__ == "__main__":
    main()
