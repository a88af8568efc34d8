"""All commands under one name, and what becomes of an error: one message, a non-zero exit, no traceback."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from gamlp.cli.compare import compare, recipes
from gamlp.cli.data import datasets, import_, synth
from gamlp.cli.doctor import doctor
from gamlp.cli.embed import embed
from gamlp.cli.explain import explain, report
from gamlp.cli.options import Answer, spelled_out
from gamlp.cli.paper import methods, paper
from gamlp.cli.predict import export, predict
from gamlp.cli.propagate import propagate
from gamlp.cli.screen import console, note
from gamlp.cli.train import train, tune
from gamlp.errors import GamlpError, InputError, Interrupted, MissingExtraError
from gamlp.progress import log

COMMANDS: dict[Callable[..., Answer], str] = {
    train: "Examples: gamlp train debian · gamlp train edges.parquet nodes.parquet --column label=topic",
    predict: "Example: gamlp predict runs/RUN new-edges.parquet new-nodes.parquet --out predictions.csv",
    export: "Example: gamlp export runs/RUN --out network.onnx",
    datasets: "Example: gamlp datasets --root ~/data",
    import_: "Example: gamlp import edges.csv nodes.csv --out my-graph",
    propagate: "Examples: gamlp propagate my-graph --set hops=5 --cache hops, then gamlp train my-graph --cache hops · "
    "gamlp propagate big-graph --out hops --memory 8GiB --rows labelled",
    synth: "Example: gamlp synth papers100M --scale 0.01 --out small-papers",
    compare: "Example: gamlp compare cora --methods sgc,sign,gamlp-jk,gamlp-jk+rlu --seeds 10",
    recipes: "Example: gamlp recipes, then gamlp train cora --recipe cora --method gamlp-jk",
    methods: "Example: gamlp methods, then gamlp train cora --method appnp",
    paper: "Examples: gamlp paper · gamlp paper citation --root data · gamlp paper reliable-labels --seeds 3",
    tune: "Example: gamlp tune cora --trials 50 --out cora-tuned.toml, then --recipe cora-tuned.toml",
    embed: "Example: gamlp embed debian-hetero -o embeddings --set dimension=128",
    explain: "Examples: gamlp explain runs/RUN · gamlp explain runs/RUN --node gimp",
    report: "Examples: gamlp report runs/RUN --open · gamlp report runs/COMPARISON --figures figures · "
    "gamlp report runs/ONE runs/OTHER --out side-by-side.html",
    doctor: "Examples: gamlp doctor · "
    "gamlp doctor --nodes 111_059_956 --entries 3_228_124_712 --features 128 --hops 6 --memory 16GiB",
}

app = typer.Typer(
    name="gamlp",
    help="Classify the nodes of a graph, of any size.",
    epilog="Begin with: gamlp train debian",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command, examples in COMMANDS.items():
    app.command(name=command.__name__.rstrip("_"), epilog=examples)(spelled_out(command))


def _version(wanted: bool) -> None:
    if wanted:
        import gamlp

        typer.echo(f"gamlp {gamlp.__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")]


@app.callback()
def _root(version: Version = False) -> None:
    pass


class Notes(logging.Handler):
    """Shows the library's warnings on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one."""
        note(record.getMessage())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its code: 0 done, 2 input refused, 3 storage, 130 interrupted."""
    if not any(isinstance(handler, Notes) for handler in log.handlers):
        log.addHandler(Notes(logging.WARNING))
    code = 0
    try:
        app(arguments)
    except (Interrupted, KeyboardInterrupt) as error:  # without words: before any work began
        console.print(f"[yellow]Interrupted.[/] {str(error) or 'Nothing was changed.'}", soft_wrap=True)
        code = 130
    except GamlpError as error:
        code = refused(type(error).__name__, str(error), 2 if isinstance(error, InputError | MissingExtraError) else 3)
    except BrokenPipeError:  # the reader, `head` say, has gone: nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeEncodeError as error:
        code = refused("InputError", f"A name is not UTF-8: {error.object!a}.\nRename the file or folder.", 2)
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "allocate" in str(error) or "out of memory" in str(error)):
            raise  # torch has no exception of its own for it on processors
        found = str(error).splitlines()[0] if str(error) else "an array did not fit"
        remedy = "Use --memory, --set storage=float16, a smaller network, or a machine with more memory."
        code = refused("Out of memory", f"{found}\n{remedy}", 3)
    sys.exit(code)


def refused(what: str, message: str, code: int) -> int:
    """Print why the command ends, and return the code that it ends with."""
    console.print(f"[bold red]{what}:[/]", end=" ")
    console.print(message, markup=False, highlight=False, soft_wrap=True)
    return code
