"""gamlp explain, report: what a run learned, as tables, pictures and one page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from rich.table import Table
from typer import Argument, Option

from gamlp.cli.begin import read_own_graph
from gamlp.cli.new_nodes import NewFiles, open_beside
from gamlp.cli.options import Answer, ComputeOptions, GraphOptions, refuse
from gamlp.cli.screen import say, screen, table
from gamlp.errors import SettingsError

if TYPE_CHECKING:
    from gamlp.explain.finished_run import FinishedRun
    from gamlp.explain.node import NodeStory

RunSeed = Annotated[int | None, Option(help="Which seed's model; by default the best on validation.")]
OwnRoot = Annotated[Path | None, Option(help="The folder with data sets; by default where the run found them.")]


def explain(
    run: Annotated[Path, Argument(help="A run directory made by gamlp train.")],
    *,
    node: Annotated[str | None, Option(help="Tell the story of this node, by its id.")] = None,
    hop_figure: Annotated[
        bool, Option("--hop-figure", help="Find how many hops suit 20 test nodes, by training SGC many times.")
    ] = False,
    runs: Annotated[
        int | None, Option(help="How often --hop-figure trains for each hop; by default 50.", min=1)
    ] = None,
    mislabelled: Annotated[
        bool, Option("--mislabelled", help="Rank the labels that are probably wrong, by training again on folds.")
    ] = False,
    out: Annotated[Path | None, Option(help="Where pictures go; by default RUN/explain.")] = None,
    new: NewFiles = None,
    seed: RunSeed = None,
    root: OwnRoot = None,
) -> Answer:
    """Show what the attention learned, why one node was given its class, or which labels are probably wrong.

    With --new the node is one that the run's graph does not have.
    """
    if node is not None:
        refuse_beside("--node", "prints one node's story and draws nothing", "hop_figure", "mislabelled", "out")
    if mislabelled:
        refuse_beside("--mislabelled", "draws no figure", "hop_figure")
    if not hop_figure:
        refuse_beside("an explanation without --hop-figure", "trains nothing", "runs")
    if new is not None:
        if node is None:
            raise SettingsError("--new was given without --node.\nSay which of the new nodes is to be explained.")
        return one_node(beside_run(run, seed, new), node)
    opened = opened_run(run, seed, root)
    if node is not None:
        return one_node(opened, node)
    if mislabelled:
        return doubtful_labels(opened, out or run / "explain")
    if hop_figure:
        return suited_hops(opened, out or run / "explain", runs or 50)
    return whole_run(opened, out or run / "explain")


def report(
    runs: Annotated[
        list[Path],
        Argument(metavar="RUN…", help="A run, a comparison, or several runs of one graph to set side by side."),
    ],
    *,
    out: Annotated[Path | None, Option(help="The page; by default report.html in the run or comparison.")] = None,
    figures: Annotated[
        Path | None, Option(metavar="FOLDER", help="Also write all figures as .png, .svg and .csv.")
    ] = None,
    tensorboard: Annotated[Path | None, Option(metavar="FOLDER", help="Also write the curves for TensorBoard.")] = None,
    open_: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    seed: RunSeed = None,
    root: OwnRoot = None,
) -> Answer:
    """Write one page about a run or a comparison, or about several runs side by side."""
    from gamlp.explain.comparison import write_comparison, write_comparison_figures
    from gamlp.explain.figures import write_run_figures
    from gamlp.explain.figures.learning import write_curves
    from gamlp.explain.report import render
    from gamlp.storage.files import write_text

    several = len(runs) > 1 or (runs[0] / "comparison.json").exists()
    if several:
        words = "are set side by side with all their seeds, without their graph"
        refuse_beside("several runs", words, "seed", "root")
    if several:
        page = write_comparison(runs, out=out)
        files = write_comparison_figures(runs, figures) if figures else []
    else:
        opened = opened_run(runs[0], seed, root)
        page = write_text(out or runs[0] / "report.html", render(opened))
        files = write_run_figures(opened, figures) if figures else []
    if tensorboard is not None:
        files += write_curves(runs, tensorboard)
    if open_:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    facts = {"out": str(page), "bytes": page.stat().st_size, "files": [str(file) for file in files]}
    more = [f"More is in {folder}." for folder in sorted({str(place) for place in (figures, tensorboard) if place})]
    return {"runs": [str(run) for run in runs], **facts}, "\n".join([f"The report is in {page}.", *more])


def refuse_beside(what: str, why: str, *options: str) -> None:
    """Refuse options that would have no effect."""
    refuse(f"{{option}} was given beside {what}.\nThat {why}: leave {{option}} out.", only=options)


def opened_run(run: Path, seed: int | None, root: Path | None) -> FinishedRun:
    """Read a run and its graph again, its data set below `root` where one is given."""
    from gamlp.explain.finished_run import open_run
    from gamlp.runs.record import read_run

    return open_run(read_own_graph(read_run(run), root), run, seed=seed)


def beside_run(run: Path, seed: int | None, new: tuple[Path, Path]) -> FinishedRun:
    """Return a run as if its graph had had some nodes more: what it says of these, as `predict --new` does."""
    from gamlp.explain.finished_run import FinishedRun
    from gamlp.runs.record import as_data

    beside = open_beside(run, seed, GraphOptions(), new, ComputeOptions())
    said = beside.predict(exact=False)
    record, graph = as_data(beside.record), beside.joined()
    return FinishedRun(run, record, graph, beside.seed, said.rows, said.probabilities, said.weights, [])


def one_node(opened: FinishedRun, node: str) -> Answer:
    """Tell why one node was given its class."""
    from gamlp.explain.node import explain_node

    story = explain_node(opened, node)
    return {"run": str(opened.folder), "seed": opened.seed, **asdict(story)}, lambda: show_node(story)


def show_node(story: NodeStory) -> None:
    """Print the story of one node."""
    out = screen()
    label = "its label is unknown" if story.label is None else f"its label is {escape(story.label)}"
    member = f"a {story.member} node" if story.member else "in no set"
    out.print(
        f"[bold]{escape(story.name)}[/]: predicted [bold]{escape(story.predicted)}[/] "
        f"({100 * story.confidence:.1f} %), {label}; {member} with {story.degree:,} neighbours."
    )
    chances = ", ".join(f"{escape(name)} {100 * chance:.1f} %" for name, chance in story.top.items())
    out.print(f"Most probable: {chances}.")
    columns = ("hop", "weight", "nodes", "labelled", "support", "most frequent classes")
    made = table("Nodes at each distance, and the training labels among them", columns, left=columns[-1:])
    for ring in story.rings:
        weight = "–" if ring.weight is None else f"{ring.weight:.3f}"
        support = "–" if ring.support is None else f"{100 * ring.support:.0f} %"
        classes = ", ".join(f"{escape(name)} {count:,}" for name, count in list(ring.classes.items())[:4])
        made.add_row(str(ring.hop), weight, f"{ring.nodes:,}", f"{ring.labelled:,}", support, classes)
    out.print(made)
    if story.cut_at is not None:
        out.print(f"From hop {story.cut_at} on the neighbourhood is too large to count.")


def whole_run(opened: FinishedRun, out: Path) -> Answer:
    """Write the pictures of a run and return its numbers."""
    from gamlp.explain.figures import charts_of, receptive
    from gamlp.explain.figures.attention import explain_attention
    from gamlp.explain.figures.chart import write_charts
    from gamlp.explain.figures.relations import relation_weights

    tables = explain_attention(opened)
    reach = receptive.receptive_fields(opened.graph.adjacency, hops=max(2, tables[0].mean.shape[1] - 1))
    attention = charts_of("attention", opened)
    files = write_charts([*attention, *receptive.charts(reach)], out)
    facts: dict[str, Any] = {"run": str(opened.folder), "seed": opened.seed, "attention": {}}
    for one in tables:
        facts["attention"][one.name] = [
            {"group": group, "nodes": int(count), "weights": row.tolist()}
            for group, count, row in zip(one.groups, one.nodes, one.mean, strict=True)
        ]
    facts["notes"] = {chart.name: chart.note for chart in attention if chart.note}
    facts["receptive_field"] = {field.region: field.shares.mean(axis=0).tolist() for field in reach}
    for key, kind in (("relation_subsets", "subsets"), ("relations", "relations")):
        if shares := relation_weights(opened, kind):
            facts[key] = dict(zip(shares.groups, shares.mean.tolist(), strict=True))
    facts["files"] = [str(file) for file in files]
    return facts, lambda: show_run(facts)


def show_run(facts: dict[str, Any]) -> None:
    """Print the attention by degree and outcome, and how far nodes see."""
    _, by_degree, by_outcome, _ = facts["attention"].values()
    hops = [f"hop {hop}" for hop in range(len(by_degree[0]["weights"]))]
    made = table(f"Mean weight of each hop, seed {facts['seed']}", ("nodes", "count", *hops))
    for prefix, groups in (("degree", by_degree), ("test,", by_outcome)):
        for one in groups:
            made.add_row(f"{prefix} {one['group']}", f"{one['nodes']:,}", *(f"{value:.3f}" for value in one["weights"]))
        made.add_section()
    screen().print(made)
    if "attention-by-degree" in facts["notes"]:
        say(facts["notes"]["attention-by-degree"])
    for key, title in (("relation_subsets", "relation subset"), ("relations", "relation")):
        if key in facts:
            screen().print(shares_table(facts[key], title))
    for region, reached in facts["receptive_field"].items():
        shares = " · ".join(f"{hop}: {100 * share:.3g} %" for hop, share in enumerate(reached) if hop)
        say(f"Share of the graph within hops, {region} regions: {shares}")
    say(f"{len(facts['files'])} files are in {Path(facts['files'][0]).parent}.")


def shares_table(shares: dict[str, list[float]], what: str) -> Table:
    """Return how much of each hop belongs to each subset or relation."""
    hops = [f"hop {hop}" for hop in range(len(next(iter(shares.values()))))]
    made = table(f"Share of each {what} in each hop", (what, *hops))
    for name, row in shares.items():
        made.add_row(escape(name), *(f"{value:.3f}" for value in row))
    return made


def suited_hops(opened: FinishedRun, out: Path, runs: int) -> Answer:
    """Write the figure of suitable hops and return its numbers."""
    from gamlp.explain.figures.chart import write_charts
    from gamlp.explain.figures.hop_suitability import charts, hop_suitability

    found = hop_suitability(opened, runs=runs)
    nodes = [
        {"id": name, "shares": shares.tolist(), "best_hop": int(shares.argmax())}
        for name, shares in zip(found.names, found.shares.T, strict=True)
    ]
    files = [str(file) for file in write_charts(charts(found), out)]
    facts = {"run": str(opened.folder), "runs": runs, "nodes": nodes, "files": files}
    return facts, lambda: show_suited(facts)


def show_suited(facts: dict[str, Any]) -> None:
    """Print how often each number of hops was right, and the best one."""
    hops = [f"{hop} hops" for hop in range(len(facts["nodes"][0]["shares"]))]
    made = table(f"Share of {facts['runs']} SGC runs that are right, %", ("test node", *hops, "best"))
    for node in facts["nodes"]:
        best = str(node["best_hop"]) if max(node["shares"]) > 0 else "none"
        made.add_row(escape(node["id"]), *(f"{100 * share:.0f}" for share in node["shares"]), best)
    screen().print(made)
    say(f"Pictures are in {Path(facts['files'][0]).parent}.")


def doubtful_labels(opened: FinishedRun, out: Path) -> Answer:
    """Train the run's method on folds, and write all labels that it doubts, the most doubtful first."""
    import csv
    import io

    from gamlp.explain.mislabelled import HEADER, doubted_labels
    from gamlp.storage.files import write_text

    rows = doubted_labels(opened)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, HEADER, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    file = write_text(out / "mislabelled.csv", text.getvalue())
    facts = {"run": str(opened.folder), "seed": opened.seed, "suspected": rows, "files": [str(file)]}
    return facts, lambda: show_doubtful(rows, file)


def show_doubtful(rows: list[dict[str, Any]], file: Path, most: int = 20) -> None:
    """Print the labels that are most probably wrong."""
    made = table(f"{len(rows):,} labels are probably wrong", ("node", "set", "label", "rather", "margin", "agree"))
    for row in rows[:most]:
        words = (escape(str(row[key])) for key in ("id", "set", "label", "suggested"))
        made.add_row(*words, f"{row['margin']:.2f}", f"{100 * row['agreement']:.0f} %")
    screen().print(made)
    say(f"All of them are in {file}.")
