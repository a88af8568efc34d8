"""Which library multiplies quicker on this processor, torch's own (MKL on most) or oneDNN?

    python benchmarks/products.py --json

The three products of a training step, for the shapes of published networks and of a small one: x W, the gradient of x,
and the gradient of W, as `gamlp.model.cpu.products` makes them with either library, in turns. GFLOP/s, medians. Tells
whether the choice by the processor's name suits another.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from gamlp.machine.facts import processor_name
from gamlp.model.cpu import products
from gamlp.model.cpu.buffer_pool import reuse_buffers
from train_step import take_turns

SHAPES = {  # rows, inputs, outputs
    "hop nets of ogbn-products": (10_000, 512, 512),
    "hops side by side, ogbn-products": (10_000, 3072, 512),
    "head of ogbn-papers100M": (5_000, 1024, 1024),
    "features of Cora": (1_140, 1433, 64),
    "logits of ogbn-products": (10_000, 512, 47),
}
LIBRARIES = {"torch": False, "oneDNN": True}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measured(name, shape, options.repeat) for name, shape in SHAPES.items()]
    result = {
        "rows": rows, "chosen": "oneDNN" if products.by_onednn() else "torch",
        "machine": {"threads": torch.get_num_threads(), "processor": processor_name(), "torch": torch.__version__},
    }  # fmt: skip
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for row in rows:
        print(row)


def measured(name: str, shape: tuple[int, int, int], repeat: int) -> dict[str, Any]:
    """Return the GFLOP/s of all products of one shape."""
    rows, inputs, outputs = shape
    x, weight, grad = torch.randn(rows, inputs), torch.randn(inputs, outputs), torch.randn(rows, outputs)
    made: dict[str, Callable[[], Tensor]] = {
        "product": lambda: products.multiply(x, weight),
        "gradient of the input": lambda: products.multiply(grad, weight.T),
        "gradient of the weight": lambda: products.multiply_transposed(x, grad),
    }
    turns = {(what, library): by(library, make) for what, make in made.items() for library in LIBRARIES}
    with reuse_buffers():
        seconds = take_turns(turns, repeat)
    flops = 2 * rows * inputs * outputs / 1e9
    speeds = {what: {library: flops / seconds[what, library] for library in LIBRARIES} for what in made}
    return {"what": name, "rows": rows, "inputs": inputs, "outputs": outputs, **speeds}


def by(library: str, make: Callable[[], Tensor]) -> Callable[[], None]:
    """Return a function that makes a product by one of the libraries."""

    def turn() -> None:
        with mock.patch.object(products, "by_onednn", lambda: LIBRARIES[library]):
            make()

    return turn


if __name__ == "__main__":
    main()
