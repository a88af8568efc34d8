"""What all commands share: progress on standard error, results on standard output."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gamlp.cli.screen import SafeConsole
from gamlp.errors import FormatError, Interrupted, SettingsError
from gamlp.progress import progress, report_to

if TYPE_CHECKING:
    from pathlib import Path

    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.source import GraphSource
    from gamlp.runs.spec import Spec

console = SafeConsole(stderr=True)


def read_source(source: GraphSource | None) -> Graph:
    """Read the graph that a source names, and tell what its reader has to say."""
    if source is None:
        raise FormatError("The run does not say how its graph is read: it came from Python.\nName the graph as well.")
    with progress(f"read {source.title}"):
        graph = source.read()
    for note in getattr(graph, "notes", ()):
        console.print(f"Note: {note}", markup=False, highlight=False, soft_wrap=True)
    return graph


def read_own_graph(spec: Spec, root: Path | None = None) -> Graph:
    """Read the graph of a run again, its data set below `root` where one is given; a changed one is refused."""
    from gamlp.runs.spec import check_same_graph

    source = spec.source
    if root is not None and source is not None:
        if source.root is None:
            raise SettingsError(f"--root {root} was given, and the run's graph is not below a root.\nLeave it out.")
        source = source.model_copy(update={"root": root.resolve()})
    graph = read_source(source)
    check_same_graph(spec, graph)
    return graph


def print_json(content: Any) -> None:
    """Write the one result; numbers that are not finite become null, as JSON has no word for them."""
    sys.stdout.write(json.dumps(finite(content), indent=2, ensure_ascii=False) + "\n")


def finite(content: Any) -> Any:
    """Replace NaN and infinities by None, however deep."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


@contextmanager
def shown_progress(if_interrupted: str = "Nothing was changed.") -> Iterator[None]:
    """Show progress bars with the time left while the block runs; nothing where standard error is no terminal.

    Ctrl-C in the block ends the command with the words `if_interrupted`.
    """
    try:
        if not console.file.isatty() or os.environ.get("RANK", "0") != "0":  # FORCE_COLOR asks for colours, not bars
            yield
            return
        from gamlp.cli.bars import Bars

        with Bars(console) as bars:
            report_to(bars)
            yield
    except KeyboardInterrupt:
        raise Interrupted(if_interrupted) from None
    finally:
        report_to(None)


def percent(mean: float | None, std: float | None = None) -> str:
    """Write an accuracy as 84.31 ± 0.52."""
    if mean is None:
        return "–"
    return f"{100 * mean:.2f}" + (f" ± {100 * std:.2f}" if std is not None else "")
