"""A trained network as a file that runs without gamlp: ONNX (extra `onnx`) or torch.export.

    hops (B, K+1, F), or (B, S, K+1, F) with relation subsets         →  logits (B, C), attention (B, K+1)
    labels (B, C), where it reads labels · stationary (B, F), where its combiner does

B is free. The inputs are what the network reads: features scaled and propagated (`Pipeline.hops`), labels propagated.
What comes before and after it, correct-and-smooth among it, is no part of the file. The fused operations of `cpu` step
aside: plain torch is what is written.
"""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gamlp.errors import InputError, MissingExtraError
from gamlp.model.cpu import plain_torch
from gamlp.model.network import Network
from gamlp.storage.files import replacing

OUTPUTS = ("logits", "attention")


class Plain(nn.Module):
    """The network with a plain pair of tensors as its output."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, hops: Tensor, labels: Tensor | None = None, stationary: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Classify, as the network does."""
        logits, weights = self.network(hops, labels, stationary)
        return logits, weights


def export_network(network: Network, path: Path, *, classes: Sequence[str] = ()) -> dict[str, list[int | str]]:
    """Write a network as .onnx or .pt2, by the name's ending; return its inputs, each with its shape.

    The classes are kept in the file too: as the metadata `classes` of ONNX, and as `classes.json` in a .pt2.
    """
    if path.suffix not in WRITERS:
        raise InputError(f"A network cannot be written as '{path.name}'.\nUse a name that ends in .onnx or .pt2.")
    inputs = example(network)
    batch = torch.export.Dim("batch")
    shapes = {name: {0: batch} for name in inputs}
    with plain_torch(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of its own parts
        program = torch.export.export(Plain(network).eval(), (), inputs, dynamic_shapes=shapes)
        content = WRITERS[path.suffix](program, inputs, json.dumps(list(classes)))
    with replacing(path) as file:
        file.write(content)
    return {name: ["batch", *value.shape[1:]] for name, value in inputs.items()}


def example(network: Network) -> dict[str, Tensor]:
    """Return inputs of three rows."""
    settings, device = network.settings, network.head.weights[0].device
    subsets = () if network.mixer is None else (network.mixer.blocks,)
    shapes: dict[str, tuple[int, ...]] = {"hops": (*subsets, settings.hops + 1, network.features)}
    if network.label_branch is not None:
        shapes["labels"] = (network.classes,)
    if network.combiner.needs_stationary:
        shapes["stationary"] = (network.features,)
    return {name: torch.zeros(3, *shape, device=device) for name, shape in shapes.items()}


def as_pt2(program: Any, inputs: dict[str, Tensor], classes: str) -> bytes:
    """Return what `torch.export.load` reads."""
    written = io.BytesIO()
    torch.export.save(program, written, extra_files={"classes.json": classes})
    return written.getvalue()


def as_onnx(program: Any, inputs: dict[str, Tensor], classes: str) -> bytes:
    """Return an ONNX model."""
    try:
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingExtraError("onnx", "Writing ONNX") from None
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # packages that it would know, too, are no news
    names: dict[str, Any] = {"input_names": list(inputs), "output_names": list(OUTPUTS)}
    made = torch.onnx.export(program, dynamo=True, verbose=False, **names)
    assert made is not None
    made.model.metadata_props["classes"] = classes
    return bytes(made.model_proto.SerializeToString())


WRITERS = {".onnx": as_onnx, ".pt2": as_pt2}
