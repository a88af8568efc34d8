"""How fast are embeddings learned beside PyG's nn.kge.ComplEx, and in how much memory?

    python benchmarks/embed.py --json                                        100,000 entities, 600,000 triples
    python benchmarks/embed.py --triples 20000000 --without-pyg --json       memory at 20M triples

A step is 1,000 triples with 200 negatives each, ComplEx with 256 numbers a row, Adagrad; triples are generated. PyG's
loop draws batches from its own loader and negatives from its own random_sample. Three ways to write it are timed, and
the fastest is compared: `pyg_loss` calls model.loss on the batch repeated 200 times, which gives each triple 200
negatives; `pyg_once` scores each true triple only once; `pyg_sparse` does so with sparse gradients. All take turns, and
medians are compared:

    ratios.pyg       time of the fastest of PyG's loops / time of ours, per step
    memory.budget    N·(d + 1)·4 bytes for table and sums, N for the search of known answers, 12 a triple for the
                     mapped columns, 1 GiB for Python, torch, numba and a step; memory.peak is the whole process
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from gamlp.embed import EmbeddingSettings, Triples, load_triples, save_triples, train_embeddings
from gamlp.embed.batches import plan_for
from gamlp.embed.scoring import scoring_for
from gamlp.embed.step import take_step
from gamlp.embed.train import start_or_resume

RELATIONS = 6
GIBIBYTE = 2**30


def main() -> None:
    options = arguments()
    settings = EmbeddingSettings(dimension=options.dimension, negatives=options.negatives, batch_size=options.batch)
    if options.child:
        print(json.dumps(train_alone(Path(options.child), settings.model_copy(update={"steps": 50, "held_out": 50}))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        entities = options.entities or max(1000, options.triples // (6 if options.triples < 10**7 else 10))
        save_triples(generated(entities, options.triples), Path(folder) / "triples")
        result = measure(Path(folder), settings, options)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, seconds in result["seconds"].items():
        print(f"{name:10s} {1000 * seconds:10.1f} ms a step")
    for name, value in {**result["ratios"], **result["memory"]}.items():
        print(f"{name:10s} {value:10.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=600_000)
    parser.add_argument(
        "--entities", type=int, default=0, help="by default a sixth of the triples, a tenth from 10M on"
    )
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--negatives", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--without-pyg", action="store_true", help="only gamlp")
    parser.add_argument("--folder", help="where the triples are written for a while")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(folder: Path, settings: EmbeddingSettings, options: argparse.Namespace) -> dict[str, Any]:
    """Time a step of ours and of PyG, and run a short training in a process of its own for its memory."""
    triples = load_triples(folder / "triples")
    turns = {"ours": our_steps(triples, settings, 10)}
    if not options.without_pyg:
        turns["pyg_loss"] = pyg_step(triples, settings, once=False, sparse=False)
        turns["pyg_once"] = pyg_step(triples, settings, once=True, sparse=False)
        turns["pyg_sparse"] = pyg_step(triples, settings, once=True, sparse=True)
    seconds = take_turns(turns, options.repeat)
    seconds["ours"] /= 10
    theirs = [value for name, value in seconds.items() if name != "ours"]
    ratios = {"pyg": min(theirs) / seconds["ours"]} if theirs else {}
    del turns
    memory = child_memory(folder, settings, triples)
    return {
        "entities": triples.entities, "triples": len(triples), "batch": settings.batch_size,
        "negatives": settings.negatives, "dimension": settings.dimension, "seconds": seconds, "ratios": ratios,
        "memory": memory,
        "machine": {"threads": torch.get_num_threads(), "processor": platform.machine(), "torch": torch.__version__},
    }  # fmt: skip


def take_turns(turns: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Return each one's median seconds; the first round, which compiles and allocates, is not counted."""
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(repeat + 1):
        for name, turn in turns.items():
            start = perf_counter()
            turn()
            times[name].append(perf_counter() - start)
    return {name: median(measured[1:]) for name, measured in times.items()}


def our_steps(triples: Triples, settings: EmbeddingSettings, steps: int) -> Callable[[], None]:
    """Return a function that takes some steps as training does, reading the triples from their files."""
    tables = start_or_resume(triples, settings, 0, None, {})
    plan = plan_for(settings, rows=len(triples), entities=triples.entities, seed=0)
    scoring = scoring_for(settings)

    def run() -> None:
        for _ in range(steps):
            batch = triples.rows(plan.places(tables.step))
            take_step(tables, batch, plan, scoring, settings, measured=False)
            tables.step += 1

    return run


def pyg_step(triples: Triples, settings: EmbeddingSettings, *, once: bool, sparse: bool) -> Callable[[], None]:
    """Return a function that takes one step as a user of PyG would write it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own, while it is imported
        from torch_geometric.nn.kge import ComplEx
    model = ComplEx(triples.entities, len(triples.relation_names), settings.dimension // 2, sparse=sparse)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=settings.learning_rate)
    columns = [torch.from_numpy(np.asarray(column).astype(np.int64)) for column in triples.columns]
    batches = endless(model.loader(*columns, batch_size=settings.batch_size, shuffle=True))
    cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits

    def run() -> None:
        warnings.filterwarnings("ignore", message="Sparse invariant checks")
        batch = next(batches)
        repeated = [column.repeat(settings.negatives) for column in batch]
        optimizer.zero_grad()
        if once:
            true, false = model(*batch), model(*model.random_sample(*repeated))
            loss = cross_entropy(true, torch.ones_like(true)) + cross_entropy(false, torch.zeros_like(false))
        else:
            loss = model.loss(*repeated)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return run


def endless(loader: Any) -> Iterator[Any]:
    """Go through a loader again and again."""
    while True:
        yield from loader


def child_memory(folder: Path, settings: EmbeddingSettings, triples: Triples) -> dict[str, float]:
    """Train in a fresh process; return its peak and the budget in GiB."""
    command = [
        sys.executable, __file__, "--child", str(folder), "--dimension", str(settings.dimension),
        "--negatives", str(settings.negatives), "--batch", str(settings.batch_size),
    ]  # fmt: skip
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    needed = triples.entities * (4 * (settings.dimension + 1) + 1) + 12 * len(triples) + GIBIBYTE
    return {"peak": answer["peak"], "budget": needed / GIBIBYTE, "within": answer["peak"] <= needed / GIBIBYTE}


def train_alone(folder: Path, settings: EmbeddingSettings) -> dict[str, float]:
    """Train from the mapped triples, with checks, checkpoints, ranking and result; return this process's peak."""
    train_embeddings(load_triples(folder / "triples"), settings, seed=0, folder=folder / "embeddings")
    status = Path(
        "/proc/self/status"
    ).read_text()  # unlike getrusage, it does not count the process that began this one
    kibibytes = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {"peak": kibibytes * 1024 / GIBIBYTE}


def generated(entities: int, count: int) -> Triples:
    """Draw triples: any head, some tails far more often than others."""
    random = np.random.default_rng(0)
    tails = (random.random(count, np.float32) ** 3 * (entities - 1)).astype(np.int32)
    return Triples(
        random.integers(0, entities, count, np.int32),
        random.integers(0, RELATIONS, count, np.int32),
        tails,
        entities,
        tuple(f"relation {at}" for at in range(RELATIONS)),
    )


if __name__ == "__main__":
    main()
