"""What the shell offers after the Tab key (gamlp --install-completion): names of all kinds; else files."""

from __future__ import annotations

from pathlib import Path


def graphs(incomplete: str) -> list[str]:
    """Return the data sets, and the files and folders that begin so."""
    from gamlp.graph.readers.datasets import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)] + files(incomplete)


def methods(incomplete: str) -> list[str]:
    """Return the methods; behind a comma the next one."""
    from gamlp.methods import BASES, method_named

    before, comma, word = incomplete.rpartition(",")
    names = [*BASES, *(f"{base}+rlu" for base in BASES if base.startswith("gamlp"))]
    if word in BASES:
        names += [word + addition for addition in method_named(word).additions]
    return [before + comma + name for name in dict.fromkeys(names) if name.startswith(word)]


def recipes(incomplete: str) -> list[str]:
    """Return the recipes, and the files and folders that begin so."""
    from gamlp.recipes import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)] + files(incomplete)


def engines(incomplete: str) -> list[str]:
    """Return the engines."""
    from gamlp.propagate.engines import ENGINES

    return [name for name in ENGINES if name.startswith(incomplete)]


def metrics(incomplete: str) -> list[str]:
    """Return the metrics."""
    from gamlp.targets.metrics import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


def files(incomplete: str) -> list[str]:
    """Return the paths that begin so, folders with a slash at their end."""
    start = Path(incomplete)
    folder, word = (start, "") if incomplete.endswith("/") else (start.parent, start.name if incomplete else "")
    if not folder.is_dir():
        return []
    found = sorted(path for path in folder.iterdir() if path.name.startswith(word) and not path.name.startswith("."))
    return [f"{path}/" if path.is_dir() else str(path) for path in found]
