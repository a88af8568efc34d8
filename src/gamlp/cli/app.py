"""All commands under one name, and what becomes of an error: one message, a non-zero exit, no traceback."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

from gamlp.cli import compare, data, doctor, embed, explain, predict, propagate, synth, train, tune
from gamlp.cli.common import console
from gamlp.errors import GamlpError, InputError, Interrupted, MissingExtraError
from gamlp.progress import log

app = typer.Typer(
    name="gamlp",
    help="Classify the nodes of a graph, of any size.",
    epilog="Begin with: gamlp train debian",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (train, predict, data, propagate, synth, compare, tune, embed, explain, doctor):
    module.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        import gamlp

        typer.echo(f"gamlp {gamlp.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


class Notes(logging.Handler):
    """Shows the library's warnings on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one."""
        console.print(f"Note: {record.getMessage()}", markup=False, highlight=False, soft_wrap=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its code: 0 done, 2 input refused, 3 storage, 130 interrupted."""
    if not any(isinstance(handler, Notes) for handler in log.handlers):
        log.addHandler(Notes(logging.WARNING))
    try:
        app(arguments)
        code = 0
    except Interrupted as error:
        console.print(f"[yellow]Interrupted.[/] {error}", soft_wrap=True)
        code = 130
    except KeyboardInterrupt:  # before any work began
        console.print("[yellow]Interrupted.[/] Nothing was changed.")
        code = 130
    except GamlpError as error:
        console.print(f"[bold red]{type(error).__name__}:[/]", end=" ")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        code = 2 if isinstance(error, InputError | MissingExtraError) else 3
    except BrokenPipeError:  # the reader, `head` say, has gone: nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except UnicodeEncodeError as error:
        console.print("[bold red]InputError:[/]", end=" ")
        console.print(
            f"A name is not UTF-8: {error.object!a}.\nRename the file or folder.", markup=False, soft_wrap=True
        )
        code = 2
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        console.print("[bold red]Out of memory:[/]", end=" ")
        console.print(
            str(error).splitlines()[0] if str(error) else "an array did not fit", markup=False, soft_wrap=True
        )
        console.print("Use --memory, --set storage=float16, a smaller network, or a machine with more memory.")
        code = 3
    sys.exit(code)


def is_out_of_memory(error: BaseException) -> bool:
    """Say whether that is what happened; torch has no exception of its own for it on processors."""
    return isinstance(error, MemoryError) or "allocate" in str(error) or "out of memory" in str(error)
