"""What gamlp explain prints: a run's attention, how far nodes see, the hops that suit a node, one node's story."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from gamlp.cli.screen import screen

if TYPE_CHECKING:
    from gamlp.explain.figures.attention import Weights
    from gamlp.explain.figures.receptive import Reach
    from gamlp.explain.node import NodeStory


def show_suited(facts: dict[str, Any]) -> None:
    """Print how often each number of hops was right, and the best one."""
    table = Table(title=f"Share of {facts['runs']} SGC runs that are right, %", title_justify="left")
    table.add_column("test node")
    for name in (*(f"{hop} hops" for hop in range(len(facts["nodes"][0]["shares"]))), "best"):
        table.add_column(name, justify="right")
    for node in facts["nodes"]:
        best = str(node["best_hop"]) if max(node["shares"]) > 0 else "none"
        table.add_row(escape(node["id"]), *(f"{100 * share:.0f}" for share in node["shares"]), best)
    out = screen()
    out.print(table)
    out.print(f"Pictures are in {Path(facts['files'][0]).parent}.", highlight=False, markup=False, soft_wrap=True)


def show_run(tables: list[Weights], reach: list[Reach], facts: dict[str, Any]) -> None:
    """Print the attention by degree and outcome, and how far nodes see."""
    out = screen()
    _, by_degree, by_outcome, _ = tables
    table = Table(title=f"Mean weight of each hop, seed {facts['seed']}", title_justify="left")
    for name in ("nodes", "count", *(f"hop {hop}" for hop in range(by_degree.mean.shape[1]))):
        table.add_column(name, justify="left" if name == "nodes" else "right")
    for prefix, weights in (("degree", by_degree), ("test,", by_outcome)):
        for group, count, row in zip(weights.groups, weights.nodes, weights.mean, strict=True):
            table.add_row(f"{prefix} {group}", f"{count:,}", *(f"{value:.3f}" for value in row))
        table.add_section()
    out.print(table)
    for key, title in (("relation_subsets", "relation subset"), ("relations", "relation")):
        if key in facts:
            out.print(shares_table(facts[key], title))
    for one in reach:
        shares = " · ".join(f"{hop}: {100 * share:.3g} %" for hop, share in enumerate(one.shares.mean(axis=0)) if hop)
        out.print(f"Share of the graph within hops, {one.region} regions: {shares}", highlight=False)
    folder = Path(facts["files"][0]).parent
    out.print(f"{len(facts['files'])} files are in {folder}.", highlight=False, markup=False, soft_wrap=True)


def shares_table(shares: dict[str, list[float]], what: str) -> Table:
    """Return how much of each hop belongs to each subset or relation."""
    table = Table(title=f"Share of each {what} in each hop", title_justify="left")
    table.add_column(what)
    for hop in range(len(next(iter(shares.values())))):
        table.add_column(f"hop {hop}", justify="right")
    for name, row in shares.items():
        table.add_row(escape(name), *(f"{value:.3f}" for value in row))
    return table


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
    table = Table(title="Nodes at each distance, and the training labels among them", title_justify="left")
    for name in ("hop", "weight", "nodes", "labelled", "support"):
        table.add_column(name, justify="right")
    table.add_column("most frequent classes")
    for ring in story.rings:
        table.add_row(
            str(ring.hop),
            "–" if ring.weight is None else f"{ring.weight:.3f}",
            f"{ring.nodes:,}",
            f"{ring.labelled:,}",
            "–" if ring.support is None else f"{100 * ring.support:.0f} %",
            ", ".join(f"{escape(name)} {count:,}" for name, count in list(ring.classes.items())[:4]),
        )
    out.print(table)
    if story.cut_at is not None:
        out.print(f"From hop {story.cut_at} on the neighbourhood is too large to count.")
