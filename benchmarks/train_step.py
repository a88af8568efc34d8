"""How long one training step of the published ogbn-products network takes, and against what.

    GOMP_SPINCOUNT=30000 python benchmarks/train_step.py --json           which the command line sets

A step is forward, cross-entropy, backward and Adam on 10,000 rows, with the published dropout. `reference` is the plain
torch network beside this file, `sgemm` a large matrix product by the library that we use on this processor, as often as
makes up the operations of a step: for a moment a processor may be faster than it stays; `torch.mm` is the same by
torch's. All four take turns, and medians are compared:

    ratios.reference    time of the reference / time of ours
    ratios.sgemm_peak   the multiplications that a step cannot do without / ours / what the faster product does then

Counted are 2·B flops for every entry of a weight matrix in forward, in the gradient of the weight, and in the gradient
of the input, but for matrices whose input is data.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gamlp.machine.facts import processor_name
from gamlp.model import build_network, count_parameters
from gamlp.model.cpu.buffer_pool import reuse_buffers
from gamlp.model.cpu.products import multiply
from gamlp.settings import Settings
from reference_network import ReferenceNetwork

FEATURES, CLASSES = 100, 47
SETTINGS = Settings(
    combiner="recursive", hops=5, hidden=512, head_layers=4, label_layers=4,
    input_dropout=0.2, attention_dropout=0.5, dropout=0.5,
)  # fmt: skip
SIZE = 2048


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a training step of the published ogbn-products network.")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    result = measure(rows=options.rows, repeat=options.repeat)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, seconds in result["seconds"].items():
        print(f"{name:10s} {seconds:8.3f} s")
    for name, ratio in result["ratios"].items():
        print(f"{name:10s} {ratio:8.2f}")


def measure(*, rows: int, repeat: int) -> dict[str, Any]:
    """Let ours, the reference and the products take turns."""
    ours = build_network(SETTINGS, features=FEATURES, classes=CLASSES)
    reference = ReferenceNetwork(SETTINGS, features=FEATURES, classes=CLASSES)
    square, out = torch.randn(2, SIZE, SIZE)
    products = max(1, round(step_flops(reference, rows) / (2 * SIZE**3)))
    turns: dict[str, Callable[[], Any]] = {
        "ours": stepper(ours, lambda hops, labels: ours(hops, labels).logits, rows),
        "reference": stepper(reference, reference, rows),
        "sgemm": lambda: [multiply(square, square) for _ in range(products)],
        "torch.mm": lambda: [torch.mm(square, square, out=out) for _ in range(products)],
    }
    with reuse_buffers():  # as training does
        seconds = take_turns(turns, repeat)
    flops_per_second = products * 2 * SIZE**3 / min(seconds["sgemm"], seconds["torch.mm"])
    return {
        "parameters": count_parameters(ours),
        "rows": rows,
        "seconds": seconds,
        "ratios": {
            "reference": seconds["reference"] / seconds["ours"],
            "sgemm_peak": step_flops(reference, rows) / seconds["ours"] / flops_per_second,
        },
        "gflops": {"sgemm": flops_per_second / 1e9, "step": step_flops(reference, rows) / 1e9},
        "machine": {"threads": torch.get_num_threads(), "processor": processor_name(), "torch": torch.__version__},
    }


def take_turns(turns: dict[Any, Callable[[], Any]], repeat: int) -> dict[Any, float]:
    """Return each one's median seconds, of the second of two calls: the first takes back what the others left behind.

    The first round, which compiles and allocates, is not counted.
    """
    times: dict[Any, list[float]] = {name: [] for name in turns}
    for _ in range(repeat + 1):
        for name, turn in turns.items():
            turn()
            start = perf_counter()
            turn()
            times[name].append(perf_counter() - start)
    return {name: median(measured[1:]) for name, measured in times.items()}


def stepper(network: nn.Module, logits: Callable[[Tensor, Tensor], Tensor], rows: int) -> Callable[[], None]:
    """Return a function that trains the network for one step."""
    generator = torch.Generator().manual_seed(0)
    hops = torch.randn(rows, SETTINGS.hops + 1, FEATURES, generator=generator)
    labels = torch.rand(rows, CLASSES, generator=generator)
    target = torch.randint(CLASSES, (rows,), generator=generator)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(logits(hops, labels), target).backward()
        optimizer.step()

    return step


def step_flops(reference: ReferenceNetwork, rows: int) -> int:
    """Return the multiplications and additions in the matrix products of one step."""
    on_data = {*(net.first for net in reference.hop_nets), reference.residual, reference.label_linears[0]}
    linears = [module for module in reference.modules() if isinstance(module, nn.Linear)]
    return sum(2 * rows * m.weight.numel() * (2 if m in on_data else 3) for m in linears)


if __name__ == "__main__":
    main()
