"""Is confidence worth what it says, do sets keep their promise, are wrong labels found?

    python benchmarks/trust.py calibration --root DATA        error before and after, on four graphs
    python benchmarks/trust.py coverage --root DATA           100 random splits of Cora and CS, three levels
    python benchmarks/trust.py mislabelled --root DATA        errors planted among the training labels, and found again

    python benchmarks/trust.py tables                         fills docs/trust.md from the records

Each but the last writes its record to benchmarks/recorded/trust-….json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from gamlp import read_graph
from gamlp.graph.graph import Graph
from gamlp.graph.splits import Split, SplitRule
from gamlp.methods import method_named
from gamlp.pipeline import Fitted, Pipeline
from gamlp.propagate.engines.local import LocalEngine
from gamlp.recipes.adapt import Outline
from gamlp.recipes.recipe import load_recipe, usual_recipe
from gamlp.train.hop_source import HopSource
from gamlp.trust.conformal import Conformal, true_scores
from gamlp.trust.measure import set_data, trust_data
from gamlp.trust.mislabelled import Ranking, find_mislabelled

RECORDED = Path(__file__).parent / "recorded"
PAGE = Path(__file__).parents[1] / "docs" / "trust.md"
LEVELS = (0.8, 0.9, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["calibration", "coverage", "mislabelled", "tables"])
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--graphs", help="names with commas; by default those of the docs")
    parser.add_argument("--splits", type=int, help="seeds or random splits; by default 3 and 100")
    parser.add_argument("--out", type=Path, help="the record; by default in benchmarks/recorded")
    options = parser.parse_args()
    if options.what == "tables":
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    started = time.perf_counter()
    rows = list({"calibration": calibration, "coverage": coverage, "mislabelled": mislabelled}[options.what](options))
    record = {"rows": rows, "seconds": time.perf_counter() - started, "machine": platform.machine()}
    out = options.out or RECORDED / f"trust-{options.what}.json"
    out.write_text(json.dumps(record, indent=1) + "\n")
    for row in rows:
        print(json.dumps(row))


def fitted_of(graph: Graph, split: Split, seed: int, source: HopSource, *, method: str | None = None,
              recipe: str = "default", **chosen: Any) -> Fitted:  # fmt: skip
    """Fit as `gamlp train` does, on shared hops."""
    kept = load_recipe(recipe)
    how = method_named(method or kept.method)
    settings = kept.resolve(how, chosen, Outline.of(graph, split))
    return Pipeline(how, settings, hop_source=source).fit(graph, split, seed)


def calibration(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train the network of each graph's recipe, on its usual split and on 60/20/20."""
    every = [f"{name}{rule}" for name in ("cora", "cs", "photo", "debian") for rule in ("", " 60/20/20")]
    for name in options.graphs.split(",") if options.graphs else every:
        base, _, rule = name.partition(" ")
        graph = read_graph(base, **({} if base == "debian" else {"root": options.root}))
        source, recipe, method, found = HopSource(LocalEngine()), usual_recipe([base]), "", []
        for seed in range(options.splits or 3):
            split = (SplitRule(0.6, 0.2) if rule else graph.split).draw(graph.labels, seed)
            fitted = fitted_of(graph, split, seed, source, recipe=recipe)
            method = fitted.pipeline.method.name
            found.append(trust_data(fitted, graph, split))
            print(name, seed, {when: found[-1]["test"][when]["calibration_error"] for when in ("before", "after")})
        yield {"graph": name, "method": method, "seeds": len(found), **calibration_means(found)}


def calibration_means(found: list[dict[str, Any]]) -> dict[str, Any]:
    means: dict[str, Any] = {"temperature": fmean(one["temperature"] for one in found)}
    means["shift"] = sorted({what for one in found for what in one["shift"].get("found", [])})
    means["expected_accuracy"] = fmean(one["shift"]["expected_accuracy"] for one in found)
    for when in ("before", "after"):
        keys = ("calibration_error", "chance_error", "brier_score", "log_loss", "mean_confidence")
        means[when] = {key: fmean(one["test"][when][key] for one in found) for key in keys}
    means["accuracy"] = fmean(
        sum(n * r for n, r in zip(bins["nodes"], bins["right"], strict=True)) / sum(bins["nodes"])
        for bins in (one["test"]["after"]["bins"] for one in found)
    )
    for level in LEVELS:
        at = [next(row for row in one["coverage"] if row["asked"] == level) for one in found]
        means[f"coverage {level}"] = fmean(row["coverage"] for row in at)
    return means


def coverage(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """20 training nodes a class, 500 validation nodes, all drawn at random; the rest tests."""
    cheap = {"hops": 3, "hidden": 64, "epochs": [40], "patience": 20, "feature_scaling": "unit", "components": 64,
             "learning_rate": 0.01, "head_layers": 2, "labels": False}  # fmt: skip
    for name in (options.graphs or "cora,cs").split(","):
        graph = read_graph(name, root=options.root)
        for method in ("gamlp-jk", "mlp"):
            how = method_named(method)
            chosen = {key: value for key, value in cheap.items() if how.takes(key)}
            source, rows = HopSource(LocalEngine()), []
            for seed in range(options.splits or 100):
                split = random_split(graph, seed)
                for share in (0.0, 0.5) if method == "gamlp-jk" else (0.0,):
                    fitted = fitted_of(graph, split, seed, source, method=method, calibration_share=share, **chosen)
                    rows += list(one_split(fitted, graph, split, share))
            yield from coverage_means(name, method, rows)


def random_split(graph: Graph, seed: int, *, per_class: int = 20, valid: int = 500) -> Split:
    """Draw a split in which validation and test nodes are drawn alike.

    The nodes that do not train are shuffled once more: the beginning of the first order has lost its rare classes.
    """
    random = np.random.default_rng([seed, 17])
    order = random.permutation(np.flatnonzero(graph.labels >= 0))
    train = np.concatenate([order[graph.labels[order] == one][:per_class] for one in range(len(graph.classes))])
    rest = random.permutation(order[~np.isin(order, train)])
    return Split(*(np.sort(ids) for ids in (train, rest[:valid], rest[valid:])))


def one_split(fitted: Fitted, graph: Graph, split: Split, share: float) -> Iterator[dict[str, Any]]:
    """Yield coverage and size of every kind of sets: ours, without neighbours, and APS."""
    said, trust, labels = fitted.prediction, fitted.trust, graph.labels
    assert said is not None and trust is not None
    plain = Conformal(true_scores(said.probabilities[split.valid], labels[split.valid]))
    for level in LEVELS:
        sets = {f"ours, apart {share}": fitted.sets(said, graph, level)[split.test]}
        if not share:
            sets["plain"] = plain.sets(said.probabilities[split.test], level)
            sets["APS"] = adaptive_sets(said.probabilities, split, labels, level)
        for kind, found in sets.items():
            facts = set_data(found, labels[split.test])
            told = {key: facts[key] for key in ("coverage", "mean_size", "empty", "one_class")}
            classes = [one for one in facts["class_coverage"] if one is not None]
            yield {"kind": kind, "level": level, **told, "worst_class": min(classes),
                   "diffused": float(trust.conformal.diffusion > 0 and kind.startswith("ours"))}  # fmt: skip


def adaptive_sets(probabilities: np.ndarray, split: Split, labels: np.ndarray, level: float) -> np.ndarray:
    """Return adaptive prediction sets (Romano et al. 2020), randomised: Σ of likelier classes + u·p_y ≤ q."""
    u = np.random.default_rng(0).random((len(probabilities), 1))
    order = np.argsort(-probabilities, axis=1)
    ranked = np.take_along_axis(probabilities.astype(np.float64), order, axis=1)
    scores = np.empty_like(ranked)
    np.put_along_axis(scores, order, np.cumsum(ranked, axis=1) - ranked + u * ranked, axis=1)
    promise = Conformal(scores[split.valid, labels[split.valid]])
    return np.asarray(scores[split.test] <= promise.threshold(level))


def coverage_means(name: str, method: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for level in LEVELS:
        for kind in dict.fromkeys(row["kind"] for row in rows):
            some = [row for row in rows if row["kind"] == kind and row["level"] == level]
            keys = ("coverage", "mean_size", "empty", "one_class", "worst_class", "diffused")
            spread = stdev([row["coverage"] for row in some]) if len(some) > 1 else None
            means = {key: fmean(row[key] for row in some) for key in keys}
            yield {"graph": name, "method": method, "level": level, "kind": kind, "splits": len(some),
                   "coverage_std": spread, **means}  # fmt: skip


def mislabelled(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Change the labels of some training nodes to another class, drawn at random, and look for them (60/20/20)."""
    cheap = {"hops": 3, "epochs": [60], "feature_scaling": "unit", "components": 256, "learning_rate": 0.1}
    method = method_named("sgc")
    for name in (options.graphs or "cora,cs").split(","):
        graph = read_graph(name, root=options.root)
        source = HopSource(LocalEngine())
        settings = method.settings_from({**cheap, **method.fixed, "labels": False})
        for share in (0.02, 0.05, 0.1):
            found = []
            for seed in range(options.splits or 3):
                split = SplitRule(0.6, 0.2).draw(graph.labels, seed)
                labels, wrong = planted_errors(graph, split, share, seed)
                pipeline = Pipeline(method, settings, hop_source=source)
                ranking = find_mislabelled(pipeline, graph.with_labels(labels), split, seed)
                found.append(precision(ranking, split.train, wrong))
            yield {"graph": name, "share": share, "seeds": len(found), "planted": len(wrong),
                   **{key: fmean(one[key] for one in found) for key in found[0]}}  # fmt: skip


def planted_errors(graph: Graph, split: Split, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Give a share of the training nodes another class."""
    random = np.random.default_rng([seed, 99])
    wrong = random.choice(split.train, round(share * len(split.train)), replace=False)
    labels = graph.labels.copy()
    labels[wrong] = (labels[wrong] + random.integers(1, len(graph.classes), len(wrong))) % len(graph.classes)
    return labels, wrong


def precision(ranking: Ranking, train: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    """Return how many of the first and of the suspected training nodes are planted errors, and how many are found."""
    judged = np.isin(ranking.nodes, train)
    hits, suspected = np.isin(ranking.nodes[judged], wrong), ranking.suspected[judged]
    return {
        "precision_at_planted": float(hits[: len(wrong)].mean()),
        "precision_at_half": float(hits[: len(wrong) // 2].mean()),
        "suspected": float(suspected.sum()),
        "precision_of_suspected": float(hits[suspected].mean()) if suspected.any() else 0.0,
        "recall_of_suspected": float(hits[suspected].sum() / len(wrong)),
    }


def filled(page: str) -> str:
    """Return the page with each table between <!-- name --> and <!-- end --> as its record says."""
    for name, table in {
        "calibration": calibration_table,
        "coverage": coverage_table,
        "mislabelled": found_table,
    }.items():
        rows = json.loads((RECORDED / f"trust-{name}.json").read_text())["rows"]
        before, mark, rest = page.partition(f"<!-- {name} -->\n")
        page = before + mark + "\n".join(table(rows)) + "\n<!-- end -->" + rest.partition("<!-- end -->")[2]
    return page


def calibration_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    columns = ("T", "error before, %", "after, %", "by chance, %", "Brier before", "after", "log loss before", "after")
    yield f"| graph | method | {' | '.join(columns)} | shift found |"
    yield "|---" * (len(columns) + 3) + "|"
    for row in rows:
        old, new = row["before"], row["after"]
        errors = (old["calibration_error"], new["calibration_error"], new["chance_error"])
        numbers = [f"{row['temperature']:.2f}", *(f"{100 * error:.1f}" for error in errors)]
        numbers += [f"{one[key]:.3f}" for key in ("brier_score", "log_loss") for one in (old, new)]
        yield f"| {row['graph']} | `{row['method']}` | {' | '.join(numbers)} | {', '.join(row['shift']) or '–'} |"


def coverage_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| graph, method | asked for, % | sets | coverage, % | std | classes in a set | of one class, % | empty, % |"
    yield "|---|---|---|---|---|---|---|---|"
    words = {"plain": "plain split conformal", "APS": "APS, randomised", "ours, apart 0.0": "**gamlp**",
             "ours, apart 0.5": "gamlp, half of validation apart"}  # fmt: skip
    for row in rows:
        keys = ("coverage", "coverage_std", "mean_size", "one_class", "empty")
        numbers = [f"{row[key]:.2f}" if key == "mean_size" else f"{100 * row[key]:.1f}" for key in keys]
        where = f"{row['graph']}, `{row['method']}` | {100 * row['level']:g} | {words[row['kind']]}"
        yield f"| {where} | {' | '.join(numbers)} |"


def found_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    columns = ("planted", "precision of the first half as many, %", "of as many, %", "suspected",
               "precision of the suspected, %", "their recall, %")  # fmt: skip
    yield f"| graph | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for row in rows:
        keys = ("precision_at_half", "precision_at_planted")
        shares = " | ".join(f"{100 * row[key]:.0f}" for key in keys)
        yield (
            f"| {row['graph']} | {row['planted']:,} ({100 * row['share']:g} %) | {shares} | {row['suspected']:.0f} | "
            f"{100 * row['precision_of_suspected']:.0f} | {100 * row['recall_of_suspected']:.0f} |"
        )


if __name__ == "__main__":
    main()
