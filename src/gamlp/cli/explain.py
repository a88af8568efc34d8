"""gamlp explain, report: what a run learned, as tables, pictures and one page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamlp.cli import common
from gamlp.cli.options import Json
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.explain.figures.attention import Weights
    from gamlp.explain.figures.receptive import Reach
    from gamlp.explain.finished_run import FinishedRun
    from gamlp.graph.graph import Graph

Run = Annotated[Path, typer.Argument(help="A run directory made by gamlp train.")]
RunSeed = Annotated[int | None, typer.Option("--seed", help="Which seed's model; by default the best on validation.")]
OwnRoot = Annotated[
    Path | None, typer.Option("--root", help="The folder with data sets; by default where the run found them.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Examples: gamlp explain runs/RUN · gamlp explain runs/RUN --node gimp")(explain)
    app.command(
        epilog="Examples: gamlp report runs/RUN --open · gamlp report runs/COMPARISON --figures figures · "
        "gamlp report runs/ONE runs/OTHER --out side-by-side.html"
    )(report)


def explain(
    run: Run,
    *,
    node: Annotated[str | None, typer.Option("--node", help="Tell the story of this node, by its id.")] = None,
    hop_figure: Annotated[
        bool, typer.Option("--hop-figure", help="Find how many hops suit 20 test nodes, by training SGC many times.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option("--runs", help="How often --hop-figure trains for each hop; by default 50.", min=1)
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where pictures go; by default RUN/explain.")] = None,
    seed: RunSeed = None,
    root: OwnRoot = None,
    json: Json = False,
) -> None:
    """Show what the attention learned, or why one node was given its class."""
    from gamlp.cli import explain_tables
    from gamlp.explain.node import explain_node

    if node is not None:
        refuse("--node", "prints one node's story and draws nothing", **{"--hop-figure": hop_figure, "--out": out})
    if not hop_figure:
        refuse("an explanation without --hop-figure", "trains nothing", **{"--runs": runs})
    with common.shown_progress():
        opened = opened_run(run, seed, root)
        if node is not None:
            story = explain_node(opened, node)
            facts = {"run": str(run), "seed": opened.seed, **asdict(story)}
        elif hop_figure:
            facts = suited_hops(opened, out or run / "explain", runs or 50)
        else:
            facts, tables, reach = explained_run(opened, out or run / "explain")
    if json:
        common.print_json(facts)
    elif node is not None:
        explain_tables.show_node(story)
    elif hop_figure:
        explain_tables.show_suited(facts)
    else:
        explain_tables.show_run(tables, reach, facts)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN…", help="A run, a comparison, or several runs of one graph to set side by side."),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", help="The page; by default report.html in the run or comparison.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Also write all figures as .png, .svg and .csv.")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", metavar="FOLDER", help="Also write the curves for TensorBoard.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    seed: RunSeed = None,
    root: OwnRoot = None,
    json: Json = False,
) -> None:
    """Write one page about a run or a comparison, or about several runs side by side."""
    several = len(runs) > 1 or (runs[0] / "comparison.json").exists()
    if several:
        refuse("several runs", "are set side by side with all their seeds, without their graph",
               **{"--seed": seed, "--root": root})  # fmt: skip
    with common.shown_progress():
        if several:
            page, files = several_reported(runs, out, figures)
        else:
            page, files = one_reported(runs[0], out, figures, seed, root)
        if tensorboard is not None:
            from gamlp.explain.figures.learning import write_curves

            files += write_curves(runs, tensorboard)
    if open_:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    if json:
        facts = {"out": str(page), "bytes": page.stat().st_size, "files": [str(file) for file in files]}
        common.print_json({"runs": [str(run) for run in runs], **facts})
    else:
        typer.echo(f"The report is in {page}.")
        for folder in sorted({str(place) for place in (figures, tensorboard) if place is not None}):
            typer.echo(f"More is in {folder}.")


def refuse(what: str, why: str, **given: Any) -> None:
    """Refuse options that would have no effect."""
    for option, value in given.items():
        if value is not None and value is not False:
            raise SettingsError(f"{option} was given beside {what}.\nThat {why}: leave {option} out.")


def one_reported(
    run: Path, out: Path | None, figures: Path | None, seed: int | None, root: Path | None
) -> tuple[Path, list[Path]]:
    """Write the page of one run, and its figures where they are asked for."""
    from gamlp.explain.figures import write_run_figures
    from gamlp.explain.report import render
    from gamlp.storage.files import write_text

    opened = opened_run(run, seed, root)
    page = write_text(out or run / "report.html", render(opened))
    return page, [] if figures is None else write_run_figures(opened, figures)


def several_reported(runs: list[Path], out: Path | None, figures: Path | None) -> tuple[Path, list[Path]]:
    """Write the page of a comparison or of several runs, and its figure where it is asked for."""
    from gamlp.explain.comparison import write_comparison, write_comparison_figures

    page = write_comparison(runs, out=out)
    return page, [] if figures is None else write_comparison_figures(runs, figures)


def opened_run(run: Path, seed: int | None, root: Path | None) -> FinishedRun:
    """Read a run and its graph again."""
    from gamlp.explain.finished_run import open_run

    return open_run(run_graph(run, root), run, seed=seed)


def run_graph(run: Path, root: Path | None) -> Graph:
    """Read the graph of a run again, its data set below `root` where one is given."""
    from gamlp.runs.record import read_run

    return common.read_own_graph(read_run(run), root)


def explained_run(opened: FinishedRun, out: Path) -> tuple[dict[str, Any], list[Weights], list[Reach]]:
    """Write the pictures of a run and return its numbers."""
    from gamlp.explain.figures import charts_of, receptive
    from gamlp.explain.figures.attention import explain_attention
    from gamlp.explain.figures.chart import write_charts
    from gamlp.explain.figures.relations import relation_weights

    tables = explain_attention(opened)
    reach = receptive.receptive_fields(opened.graph.adjacency, hops=max(2, tables[0].mean.shape[1] - 1))
    files = write_charts([*charts_of("attention", opened), *receptive.charts(reach)], out)
    facts = {
        "run": str(opened.folder),
        "seed": opened.seed,
        "attention": {
            table.name: [
                {"group": group, "nodes": int(count), "weights": row.tolist()}
                for group, count, row in zip(table.groups, table.nodes, table.mean, strict=True)
            ]
            for table in tables
        },
        "receptive_field": {one.region: one.shares.mean(axis=0).tolist() for one in reach},
        **{
            key: dict(zip(table.groups, table.mean.tolist(), strict=True))
            for key, table in (
                ("relation_subsets", relation_weights(opened, "subsets")),
                ("relations", relation_weights(opened, "relations")),
            )
            if table
        },
        "files": [str(file) for file in files],
    }
    return facts, tables, reach


def suited_hops(opened: FinishedRun, out: Path, runs: int) -> dict[str, Any]:
    """Write the figure of suitable hops and return its numbers."""
    from gamlp.explain.figures.chart import write_charts
    from gamlp.explain.figures.hop_suitability import charts, hop_suitability

    found = hop_suitability(opened, runs=runs)
    return {
        "run": str(opened.folder),
        "runs": runs,
        "nodes": [
            {"id": name, "shares": shares.tolist(), "best_hop": int(shares.argmax())}
            for name, shares in zip(found.names, found.shares.T, strict=True)
        ],
        "files": [str(file) for file in write_charts(charts(found), out)],
    }
