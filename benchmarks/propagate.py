"""How fast is one hop, and the making of an adjacency, beside scipy, torch and what the memory allows?

    python benchmarks/propagate.py                                       the full size: 2.45M nodes, 116M entries
    python benchmarks/propagate.py --nodes 300000 --entries 12000000     a quick look

Every contender takes one turn in each round and the medians are compared, so that a noisy neighbour slows all alike.
The gather limit is the fastest of several loops that only read the rows which a hop must read, in the same order, from
the same buffers and on the same threads: some touch one word of each cache line, some all of them, some prefetch.
Ratios above 1 mean that gamlp is faster; `gather_limit` is the share of the limit's speed that gamlp reaches.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.graph.graph import Adjacency
from gamlp.propagate import Normalization, Propagation, kernels
from gamlp.propagate.block import Block
from gamlp.propagate.chunks import equal_work, plan_chunks
from gamlp.propagate.layout import column_blocks
from gamlp.propagate.normalize import degrees
from gamlp.storage.threads import Run, available, workers
from gather_limit import limits

Contenders = dict[str, Callable[[], Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2_450_000)
    parser.add_argument("--entries", type=int, default=116_000_000, help="of the adjacency: twice the edges")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    show(f"drawing {options.entries // 2:,} edges between {options.nodes:,} nodes")
    source, target = skewed_edges(options.nodes, options.entries // 2)
    build = time_build(source, target, options.nodes, max(1, options.repeats // 2))
    adjacency = adjacency_from_edges(source, target, nodes=options.nodes)
    del source, target
    hop = time_hops(adjacency, options.features, options.repeats)
    result = summary(adjacency, options, {**build, **hop})
    table(result)
    if options.json:
        print(json.dumps(result))


def skewed_edges(nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw both ends with probability ∝ 1/√rank; ranks are shuffled over the ids, so neighbours lie far apart."""
    random = np.random.default_rng(0)
    ids = random.permutation(nodes)
    source, target = (ids[(nodes * random.random(edges) ** 2).astype(np.int64)] for _ in range(2))
    return source, target


def time_build(source: np.ndarray, target: np.ndarray, nodes: int, repeats: int) -> dict[str, float]:
    from scipy import sparse

    def by_scipy() -> Any:
        ends = np.concatenate([source, target]).astype(np.int32), np.concatenate([target, source]).astype(np.int32)
        matrix = sparse.coo_array((np.ones(len(ends[0]), np.float32), ends), shape=(nodes, nodes)).tocsr()
        matrix.sum_duplicates()
        matrix.sort_indices()
        return matrix.nnz

    def by_gamlp() -> Any:
        return adjacency_from_edges(source, target, nodes=nodes, self_loops=True).entries

    part = slice(0, 2**20 + 1)
    adjacency_from_edges(source[part], target[part], nodes=nodes)  # compiles
    if by_gamlp() != by_scipy():
        raise SystemExit("gamlp and scipy disagree about the entries")
    return rounds({"csr gamlp": by_gamlp, "csr scipy": by_scipy}, repeats)


def time_hops(adjacency: Adjacency, features: int, repeats: int) -> dict[str, float]:
    x = np.random.default_rng(1).standard_normal((adjacency.nodes, features), dtype=np.float32)
    with workers() as run:
        blocks = {storage: loaded(adjacency, x, storage, run) for storage in ("float32", "float16")}
        others = {"scipy": by_scipy(adjacency, x), "torch csr": by_torch(adjacency, x)}
        agree(blocks["float32"], others)
        hop(blocks["float16"])  # compiles
        contenders: Contenders = {f"gamlp {storage}": partial(hop, all_) for storage, all_ in blocks.items()}
        for storage, all_ in blocks.items():
            loops = [limits(block.x) for block in all_]
            for name in loops[0]:
                reading = partial(read_all, [loop[name] for loop in loops], all_, run)
                reading()  # compiles
                contenders[f"limit {storage} {name}"] = reading
        return rounds({**contenders, **others}, repeats)


def loaded(adjacency: Adjacency, x: np.ndarray, storage: str, run: Run) -> list[Block]:
    """Return all columns in the blocks that the engine takes, packed and ready for their next hop."""
    spec = Propagation(1, Normalization(0.0, self_loops=False), keep="last", storage=storage)
    plan = plan_chunks(adjacency, self_loops=False)
    size = np.dtype(storage).itemsize
    blocks = []
    for columns in column_blocks(x.shape[1], kernels.widest_block(), nodes=len(x), itemsize=size):
        blocks.append(Block(plan, spec, columns.stop - columns.start, run, threads=available()))
        blocks[-1].load(x, columns)
    return blocks


def hop(blocks: list[Block]) -> None:
    for block in blocks:
        block.step()


def by_scipy(adjacency: Adjacency, x: np.ndarray) -> Callable[[], Any]:
    from scipy import sparse

    matrix = sparse.csr_array((means(adjacency), adjacency.indices, adjacency.indptr), shape=(len(x), len(x)))
    return lambda: matrix @ x


def by_torch(adjacency: Adjacency, x: np.ndarray) -> Callable[[], Any]:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = torch.sparse_csr_tensor(
            torch.from_numpy(adjacency.indptr.astype(np.int32)),
            torch.from_numpy(adjacency.indices),
            torch.from_numpy(means(adjacency)),
            size=(len(x), len(x)),
        )
    dense = torch.from_numpy(x)

    def hop() -> Any:
        return (matrix @ dense).numpy()

    return hop


def means(adjacency: Adjacency) -> np.ndarray:
    """Return the stored values that the others need: 1/d of each entry's row, float32."""
    degree = degrees(adjacency, self_loops=False)
    return np.repeat((1 / np.maximum(degree, 1)).astype(np.float32), np.diff(adjacency.indptr))


def agree(blocks: list[Block], others: Contenders) -> None:
    """Run one hop with everyone, and stop where results differ: a fast wrong answer is no benchmark."""
    hop(blocks)
    sample = np.random.default_rng(2).integers(0, len(blocks[0].x), 1000)
    ours = np.hstack([block.x[sample, : len(block.columns)] for block in blocks])
    for name, theirs in others.items():
        if not np.allclose(ours, theirs()[sample], atol=1e-4):
            raise SystemExit(f"gamlp and {name} disagree")


def read_all(loops: list[Callable[..., int]], blocks: list[Block], run: Run) -> None:
    for loop, block in zip(loops, blocks, strict=True):
        words, entries = block.x.view(np.int64), block.plan.adjacency
        rows = equal_work(entries.indptr, 16 * available())
        starts = [(int(entries.indptr[a]), int(entries.indptr[b])) for a, b in rows]
        run([partial(loop, entries.indices, words, *some) for some in starts])


def rounds(contenders: Contenders, repeats: int) -> dict[str, float]:
    """Let everyone take a turn in each round; return the median seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            seconds[name].append(time.perf_counter() - start)
        show(f"round {turn + 1} of {repeats}: " + ", ".join(f"{n} {s[-1]:.2f}" for n, s in seconds.items()))
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def summary(adjacency: Adjacency, options: argparse.Namespace, seconds: dict[str, float]) -> dict[str, Any]:
    limit = {
        storage: min(taken for name, taken in seconds.items() if name.startswith(f"limit {storage}"))
        for storage in ("float32", "float16")
    }
    single, half = seconds["gamlp float32"], seconds["gamlp float16"]
    ratios = {
        "scipy": seconds["scipy"] / single,
        "torch_csr": seconds["torch csr"] / single,
        "gather_limit": limit["float32"] / single,
        "gather_limit_float16": limit["float16"] / half,
        "float16_vs_float32": single / half,
        "float16_vs_torch_csr": seconds["torch csr"] / half,
        "csr_build_vs_scipy": seconds["csr scipy"] / seconds["csr gamlp"],
    }
    sizes = {"nodes": adjacency.nodes, "entries": adjacency.entries, "features": options.features}
    return {"ratios": ratios, "seconds": seconds, "sizes": sizes, "repeats": options.repeats, "machine": machine()}


def machine() -> dict[str, Any]:
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return {
        "processor": model,
        "threads": available(),
        "vectors": sorted(kernels.cpu_features() & {"avx", "avx2", "avx512f", "f16c", "fma", "neon"}),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def table(result: dict[str, Any]) -> None:
    sizes = result["sizes"]
    show(f"\none hop: {sizes['nodes']:,} nodes, {sizes['entries']:,} entries, {sizes['features']} features")
    for name, taken in result["seconds"].items():
        show(f"  {name:32} {taken:9.3f} s")
    show("ratios (above 1: gamlp is faster)")
    for name, ratio in result["ratios"].items():
        show(f"  {name:32} {ratio:9.2f}")
    show(f"machine: {result['machine']}")


def show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
