"""A run as one file: `gamlp train run.toml`. Its keys are the options of the command line, by their names.

    graph = ["edges.csv", "nodes.csv"]      what stands first on the command line
    method = "gamlp-jk"
    seeds = 3
    [column]                                --column label=topic
    label = "topic"
    [set]                                   --set hops=3
    hops = 3

Paths are looked for beside the file. It stands right behind the command; options after it come before its own.
`gamlp config RUN` writes the file of a run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from gamlp.errors import FormatError, did_you_mean

if TYPE_CHECKING:
    from gamlp.runs.spec import RunSpec

PATHS = ("root", "features", "cache", "out", "study")
TABLES = ("set", "column")
NO_KEYS = ("what", "set_", "resume", "json", "quiet", "verbose", "log", "context")


def with_config(words: list[str], parameters: Mapping[str, Any]) -> list[str]:
    """Return the words after a command with a configuration file, which stands first, spelled out as options.

    Those of the command line follow: the last one counts.
    """
    if not words or not words[0].endswith(".toml") or "set_" not in parameters:
        return words
    path = Path(words[0])
    known = ["graph", *TABLES, *(name for name in parameters if name not in NO_KEYS)]
    spelled: list[str] = []
    for key, value in read_config(path).items():
        if key not in known:
            raise FormatError(f"{path}: there is no key '{key}'.\n{did_you_mean(key, known)}")
        spelled += as_words(key, value, path, flag=is_flag(parameters.get(key)))
    return [*spelled, *words[1:]]


def is_flag(parameter: Any) -> bool:
    """Say whether an option has no value."""
    return parameter is not None and get_args(parameter.annotation)[:1] in ((bool,), (bool | None,))


def read_config(path: Path) -> dict[str, Any]:
    """Read the file; it must name a graph."""
    if not path.is_file():
        raise FormatError(f"{path} is not there, or no file.\nExpected a configuration: the options of a run as TOML.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"{path} is not valid TOML: {error}.\nCorrect that line.") from error
    if "graph" not in content:
        raise FormatError(f'{path} names no graph.\nAdd it: graph = "debian", or graph = ["edges.csv", "nodes.csv"].')
    return content


def as_words(key: str, value: Any, path: Path, *, flag: bool) -> list[str]:
    """Return a key and its value as the command line writes them."""
    from gamlp.runs.spec import written_value

    if key == "graph":
        words = [str(word) for word in ([value] if isinstance(value, str) else value)]
        return [str(path.parent / word) if is_place(path.parent / word) else word for word in words]
    if (key in TABLES) != isinstance(value, dict) or flag != isinstance(value, bool):
        wanted = f"a table, [{key}]" if key in TABLES else "true or false" if flag else "a number or text"
        raise FormatError(f"{path}: {key} = {str(value).lower()}.\nExpected {wanted}.")
    if isinstance(value, dict):
        pairs = [f"{name}={written_value(one) if key == 'set' else one}" for name, one in value.items()]
        return [word for pair in pairs for word in (f"--{key}", pair)]
    if flag:
        return [f"--{key}"] if value else []
    each = value if isinstance(value, list) else [value]
    return [f"--{key}={path.parent / str(one) if key in PATHS else one}" for one in each]


def is_place(path: Path) -> bool:
    """Say whether a file, a folder or a table of a database is there."""
    from gamlp.graph.readers.databases import is_database_table

    return path.exists() or is_database_table(path)


def config_of(spec: RunSpec) -> str:
    """Return the specification of a run as the text of a configuration file."""
    from gamlp.recipes.recipe import bare, literal
    from gamlp.runs.spec import engine_options

    source = spec.source
    if source is None:
        raise FormatError("The run does not say how its graph is read: it came from Python.\nRepeat it from Python.")
    if spec.start is not None:
        raise FormatError(f"The run began with the weights of {spec.start}.\nRepeat it with gamlp train --from.")
    values: dict[str, Any] = {"graph": list(source.what)}
    values |= {"root": source.root, "ignore": list(source.ignore), "features": source.features}
    values |= {"directed": source.directed, "method": spec.method, "recipe": spec.recipe}
    values |= {"seeds": len(spec.seeds), "seed": spec.seeds[0]}
    values |= {name: str(value) for name, value in engine_options(spec.engine, spec.device)}
    said = {key: str(value) if isinstance(value, Path) else value for key, value in values.items()}
    lines = [f"{key} = {literal(value)}" for key, value in said.items() if value not in (None, False, [])]
    for key, table in (("column", source.columns), ("set", spec.overrides)):
        if table:
            lines += ["", f"[{key}]", *(f"{bare(name)} = {literal(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"
