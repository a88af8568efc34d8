"""Progress bars with the time left, drawn by rich on standard error."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Bars:
    """A reporter (see gamlp.progress) that draws one bar per piece of work, nested ones beneath."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
        )

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def start(self, description: str, total: float | None) -> TaskID:
        """Draw a new bar."""
        return self._progress.add_task(description, total=total, note="")

    def advance(self, task: object, steps: float, note: str) -> None:
        """Move a bar on."""
        assert isinstance(task, int)
        if note:
            self._progress.update(TaskID(task), advance=steps, note=note)
        else:
            self._progress.update(TaskID(task), advance=steps)

    def stop(self, task: object) -> None:
        """Take a bar away."""
        assert isinstance(task, int)
        self._progress.remove_task(TaskID(task))
