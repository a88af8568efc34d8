"""All commands under one name, and what becomes of an error: one message, a non-zero exit, no traceback."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gamlp.cli.compare import compare, recipes
from gamlp.cli.config import with_config
from gamlp.cli.data import datasets, import_, synth
from gamlp.cli.doctor import doctor
from gamlp.cli.embed import embed
from gamlp.cli.explain import explain, report
from gamlp.cli.interrupts import listening
from gamlp.cli.options import Answer, spelled_out
from gamlp.cli.paper import methods, paper
from gamlp.cli.predict import export, predict
from gamlp.cli.propagate import propagate
from gamlp.cli.screen import console, print_json
from gamlp.cli.serve import serve
from gamlp.cli.train import config, train, tune
from gamlp.cli.update import update
from gamlp.errors import GamlpError, InputError, Interrupted, MissingExtraError
from gamlp.storage.threads import limit_openmp_spin

COMMANDS: dict[Callable[..., Answer], str] = {
    train: "Examples: gamlp train debian · gamlp train edges.parquet nodes.parquet --column label=topic · "
    "gamlp train run.toml",
    predict: "Examples: gamlp predict runs/RUN other-edges.parquet other-nodes.parquet --out predictions.csv · "
    "gamlp predict runs/RUN --new edges.csv nodes.csv",
    config: "Example: gamlp config runs/RUN --out run.toml, then gamlp train run.toml",
    export: "Example: gamlp export runs/RUN --out network.onnx",
    datasets: "Example: gamlp datasets --root ~/data",
    import_: "Example: gamlp import edges.csv nodes.csv --out my-graph",
    propagate: "Examples: gamlp propagate my-graph --set hops=5 --cache hops, then gamlp train my-graph --cache hops · "
    "gamlp propagate big-graph --out hops --memory 8GiB --rows labelled",
    update: "Examples: gamlp update my-graph --edges changes.csv --cache runs/RUN/hops · "
    "gamlp update my-graph --to tonight --out my-graph-2",
    synth: "Example: gamlp synth papers100M --scale 0.01 --out small-papers",
    compare: "Example: gamlp compare cora --methods sgc,sign,gamlp-jk,gamlp-jk+rlu --seeds 10",
    recipes: "Example: gamlp recipes, then gamlp train cora --recipe cora --method gamlp-jk",
    methods: "Example: gamlp methods, then gamlp train cora --method appnp",
    paper: "Examples: gamlp paper · gamlp paper citation --root data · gamlp paper reliable-labels --seeds 3",
    tune: "Example: gamlp tune cora --trials 50 --out cora-tuned.toml, then --recipe cora-tuned.toml",
    embed: "Example: gamlp embed debian-hetero -o embeddings --set dimension=128",
    explain: "Examples: gamlp explain runs/RUN · gamlp explain runs/RUN --node gimp · "
    "gamlp explain runs/RUN --new edges.csv nodes.csv --node mine",
    report: "Examples: gamlp report runs/RUN --open · gamlp report runs/COMPARISON --figures figures · "
    "gamlp report runs/ONE runs/OTHER --out side-by-side.html",
    serve: "Examples: gamlp serve runs/RUN · GAMLP_TOKEN=… gamlp serve runs/RUN --host 0.0.0.0 --memory 4GiB",
    doctor: "Examples: gamlp doctor · "
    "gamlp doctor --nodes 111_059_956 --entries 3_228_124_712 --features 128 --hops 6 --memory 16GiB",
}

UsageError: Any = typer.BadParameter.__bases__[0]  # typer does not export it
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


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its code: 0 done, 2 input refused, 3 storage, 130 interrupted.

    SIGTERM, by which systems end a job, is taken as Ctrl-C is. With --json, what was refused is a JSON object too.
    """
    limit_openmp_spin()
    words = sys.argv[1:] if arguments is None else arguments
    as_json, code = "--json" in words, 0
    try:
        with listening():
            said = app(spelled(words), standalone_mode=not as_json)
        code = said if isinstance(said, int) else 0
    except (Interrupted, KeyboardInterrupt, typer.Abort) as error:  # without words: before any work began
        kept = str(error) or "Nothing was changed."
        console.print(f"[yellow]Interrupted.[/] {kept}", soft_wrap=True)
        code = told("Interrupted", kept, 130, as_json=as_json)
    except UsageError as error:
        remedy = f"See {' '.join(['gamlp', *words[:1]])} --help."
        code = refused("UsageError", f"{error.format_message()}\n{remedy}", 2, as_json=as_json)
    except GamlpError as error:
        number = 2 if isinstance(error, InputError | MissingExtraError) else 3
        code = refused(type(error).__name__, str(error), number, as_json=as_json)
    except BrokenPipeError:  # the reader, `head` say, has gone: nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeEncodeError as error:
        message = f"A name is not UTF-8: {error.object!a}.\nRename the file or folder."
        code = refused("InputError", message, 2, as_json=as_json)
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "allocate" in str(error) or "out of memory" in str(error)):
            raise  # torch has no exception of its own for it on processors
        found = str(error).splitlines()[0] if str(error) else "an array did not fit"
        remedy = "Use --memory, --set storage=float16, a smaller network, or a machine with more memory."
        code = refused("Out of memory", f"{found}\n{remedy}", 3, as_json=as_json)
    sys.exit(code)


def spelled(words: list[str]) -> list[str]:
    """Return the words of the command line, a configuration file spelled out."""
    commands = {str(command.name): command.callback for command in app.registered_commands}
    if len(words) < 2 or words[0] not in commands:
        return words
    return [words[0], *with_config(words[1:], inspect.signature(commands[words[0]]).parameters)]  # type: ignore[arg-type]


def refused(what: str, message: str, code: int, *, as_json: bool) -> int:
    """Print why the command ends, and return the code that it ends with."""
    console.print(f"[bold red]{what}:[/]", end=" ")
    console.print(message, markup=False, highlight=False, soft_wrap=True)
    return told(what, message, code, as_json=as_json)


def told(what: str, message: str, code: int, *, as_json: bool) -> int:
    """Print the JSON object of a command that was refused or stopped, where one was asked for; return the code."""
    if as_json:
        found, _, remedy = message.partition("\n")
        print_json({"error": what, "message": found, "remedy": remedy, "code": code})
    return code
