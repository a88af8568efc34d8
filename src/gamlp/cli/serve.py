"""gamlp serve: what a run says, over HTTP, to programs and to people."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from gamlp.cli.begin import read_own_graph
from gamlp.cli.explain import OwnRoot
from gamlp.cli.new_nodes import finished_model
from gamlp.cli.options import Answer, ComputeOptions, if_interrupted, pair, wants_json
from gamlp.cli.predict import ModelSeed
from gamlp.cli.screen import say
from gamlp.errors import MissingExtraError, SettingsError
from gamlp.progress import progress, report_to

if TYPE_CHECKING:
    from gamlp.serve.limits import Limits
    from gamlp.serve.versions import Versions


def serve(
    run: Annotated[Path, Argument(help="A run directory made by gamlp train.")],
    *,
    host: Annotated[str, Option(help="The address to listen at; others than this machine need a token.")] = "127.0.0.1",
    port: Annotated[int, Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, Option(envvar="GAMLP_TOKEN", help="What clients must send; better set as GAMLP_TOKEN.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        Option(metavar="NAME=NUMBER", help="Change a limit: body, rows, edges, seconds or waiting; repeatable."),
    ] = None,
    graph: Annotated[
        Path | None,
        Option(help="A graph directory for changes: served where it is there, else made by the first POST /changes."),
    ] = None,
    seed: ModelSeed = None,
    root: OwnRoot = None,
    compute: ComputeOptions,
) -> Answer:
    """Answer over HTTP what a run says of nodes, and of new ones; a page for people is there too."""
    try:
        from gamlp.serve import server
    except ImportError:
        raise MissingExtraError("serve", "gamlp serve") from None
    from gamlp.serve.limits import Limits

    limits = Limits.of(dict(pair(text, "--limit") for text in limit or []))
    token = token or None
    server.check_open(host, token)
    with server.bind(host, port) as bound:
        from gamlp.serve.app import LOCAL, make_app

        address = server.address_of(bound)
        served = opened(run, seed, root, compute, limits, graph)
        hosts = LOCAL if server.is_local(host) else ()
        report_to(None)  # no bars for requests
        if_interrupted("The server is down.")
        server.serve(make_app(served, limits, token=token, hosts=hosts), bound, limits, lambda: ready(address, run))
    return None


def opened(
    run: Path, seed: int | None, root: Path | None, compute: ComputeOptions, limits: Limits, graph: Path | None = None
) -> Versions:
    """Open a run: with the engine that was asked for, or the run's own, and with its hops kept on disk."""
    from gamlp.explain.finished_run import open_run
    from gamlp.model_file import load_fitted
    from gamlp.serve.versions import Versions

    asked = compute.choice()
    record, chosen, folder = finished_model(run, seed)
    engine = record.engine if asked == ComputeOptions(device=compute.device).choice() else asked
    engine = engine.model_copy(update={"cache": engine.cache or run.resolve() / "hops"})
    finished = open_run(read_own_graph(record, root), run, seed=chosen, memory_map=True)
    fitted = load_fitted(folder, engine=engine.open(device=compute.device), device=compute.device)
    with progress("get ready"):
        versions = Versions(finished, fitted, graph)
    if engine.memory is not None and (needed := versions.service.request_bytes(limits.edges)) > engine.memory // 4:
        most = engine.memory // 4 // max(1, versions.service.request_bytes(1))
        raise SettingsError(
            f"A request of {limits.edges:,} edges takes about {needed / 2**20:,.0f} MiB, more than a quarter of "
            f"--memory.\nServe with --limit edges={most}, or give more memory."
        )
    gc.collect()
    gc.freeze()  # what is there stays: no request waits until all of it has been looked through
    return versions


def ready(address: str, run: Path) -> None:
    """Tell that it answers, and where: one line."""
    if wants_json():
        sys.stdout.write(json.dumps({"address": address, "run": str(run)}, ensure_ascii=False) + "\n")
    else:
        say(f"{run.name} is served at {address}. Ctrl-C ends it.")
    sys.stdout.flush()
