"""A trained network as two files, model.safetensors and model.json, and what it says of any graph.

Nothing is unpickled: the JSON holds the settings and sizes from which the network is built, the safetensors file its
weights and the feature scaling.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamlp.errors import FormatError, SettingsError, ShapeError
from gamlp.graph.graph import Adjacency, Graph
from gamlp.graph.hetero import HeteroGraph
from gamlp.labels import initial_labels, label_hops, reliable_set, soften
from gamlp.model import Network, build_network
from gamlp.propagate import Normalization, propagate
from gamlp.propagate.engines.local import LocalEngine
from gamlp.propagate.hops import Hops
from gamlp.propagate.scaling import Scaling
from gamlp.propagate.sources import SparseRows
from gamlp.propagate.spec import Propagation
from gamlp.propagate.subset_hops import subset_hops
from gamlp.propagate.subsets import Subset
from gamlp.settings import Settings, settings_from
from gamlp.storage.checksums import check_files, file_checksum
from gamlp.storage.files import Array, read_json, write_json
from gamlp.train.checkpoint import load_tensors, prefixed, save_tensors, without_prefix
from gamlp.train.featureless import filled_features
from gamlp.train.inputs import predict
from gamlp.train.prepare import needed_relations, target_rows
from gamlp.train.subset_rotation import inputs_for


@dataclass(frozen=True)
class Model:
    """A network with everything that must be done to a graph before it."""

    network: Network
    settings: Settings
    scaling: Scaling
    features: int
    classes: tuple[str, ...]
    method: str = "gamlp-jk"
    subsets: tuple[Subset, ...] = ()  # of relations, for heterogeneous graphs

    def of_graph(self, graph: Graph, known: Array | None = None, *, device: str = "cpu") -> tuple[Array, Array]:
        """Return probabilities (R, C) and attention weights (R, K+1): of all nodes, of several types the target's."""
        if not isinstance(graph, HeteroGraph) and not self.subsets:
            return self.probabilities(graph.adjacency, graph.features, known, device=device)
        self.check_width(graph.features)
        hops = self.typed_hops(needed_relations(graph), device)
        return self.from_hops(hops, graph.adjacency, known, device=device)

    def typed_hops(self, graph: HeteroGraph, device: str) -> Hops:
        """Return the hops of another heterogeneous graph's target nodes."""
        settings = self.settings
        if settings.featureless == "embeddings" and not all(kind.described for kind in graph.types):
            raise SettingsError(
                "The model reads embeddings, which are trained for one graph and mean nothing in another.\n"
                "Train with featureless=neighbours or zeros to predict for other graphs."
            )
        features = self.scaling(filled_features(graph, settings))
        options: dict[str, Any] = {
            "hops": settings.hops,
            "rows": target_rows(graph),
            "normalization": Normalization(settings.normalization, settings.self_loops),
            "stationary": settings.combiner == "smoothing",
            "storage": settings.storage,
            "device": device,
        }
        if not self.subsets:
            return propagate(graph.adjacency, features, **options)
        return subset_hops(graph, features, self.subsets, budget=settings.subset_memory, **options)

    def probabilities(
        self, adjacency: Adjacency, features: Array, known: Array | None = None, *, device: str = "cpu"
    ) -> tuple[Array, Array]:
        """Return probabilities (N, C) and attention weights (N, K+1) for the nodes of any graph.

        `known` (N,) holds class numbers, −1 where unknown: what the graph itself tells of labels. A network of a later
        stage first predicts from these alone, then again with its reliable predictions added.
        """
        self.check_width(features)
        settings = self.settings
        hops = propagate(
            adjacency,
            self.scaling(features),
            hops=settings.hops,
            normalization=Normalization(settings.normalization, settings.self_loops),
            stationary=settings.combiner == "smoothing",
            storage=settings.storage,
            device=device,
        )
        return self.from_hops(hops, adjacency, known, device=device)

    def check_width(self, features: Array) -> None:
        """Refuse features other than those of training."""
        if features.shape[1] != self.features:
            raise ShapeError(
                f"The graph has {features.shape[1]:,} features a node, the model was trained with {self.features:,}.\n"
                "Give the same columns in the same order."
            )

    def from_hops(
        self, hops: Hops, adjacency: Adjacency, known: Array | None, *, device: str = "cpu"
    ) -> tuple[Array, Array]:
        """Return what the network says of every row of the hops; label hops run over `adjacency`."""
        settings = self.settings
        everyone = np.arange(adjacency.nodes) if hops.rows is None else hops.rows
        known = np.full(adjacency.nodes, -1, dtype=np.int64) if known is None else known
        seen, unseen = np.flatnonzero(known >= 0), everyone[known[everyone] < 0]
        reliable, teacher = np.zeros(0, np.int64), np.zeros((0, len(self.classes)), np.float32)
        for last in [True] if len(settings.epochs) == 1 or not settings.labels else [False, True]:
            initial = initial_labels(
                adjacency.nodes,
                len(self.classes),
                seen,
                known[seen],
                reliable_ids=reliable,
                reliable_probabilities=teacher,
            )
            labels = self._label_hops(adjacency, initial, seen, hops.rows, device)
            inputs = inputs_for(hops, labels, adjacency.nodes, device, settings)
            logits, weights = predict(self.network, inputs, everyone)
            if not last:
                soft = soften(logits[np.searchsorted(everyone, unseen)], settings.temperature)
                reliable = reliable_set(soft, unseen, settings.threshold)
                teacher = soft[np.searchsorted(unseen, reliable)]
        return soften(logits, 1.0), weights

    def _label_hops(
        self, adjacency: Adjacency, initial: SparseRows, seen: Array, rows: Array | None, device: str
    ) -> Array | None:
        if not self.settings.labels:
            return None
        normalization = Normalization(self.settings.label_normalization, self.settings.label_self_loops)
        spec = Propagation(self.settings.label_hops, normalization, rows=rows, keep="last")
        return label_hops(LocalEngine(device=device), adjacency, initial, spec, train_ids=seen)


def save_model(model: Model, folder: Path) -> None:
    """Write both files into `folder`; model.json comes last."""
    tensors = prefixed("network", model.network.state_dict())
    tensors |= {f"scaling.{name}": torch.from_numpy(value) for name, value in model.scaling.arrays().items()}
    save_tensors(folder / "model.safetensors", tensors, {})
    content = {
        "format": 1,
        "weights": file_checksum(folder / "model.safetensors"),
        "method": model.method,
        "features": model.features,
        "width": model.network.features,
        "classes": list(model.classes),
        "subsets": [list(subset) for subset in model.subsets],
        "settings": model.settings.model_dump(),
    }
    write_json(folder / "model.json", content)


def load_model(folder: Path, *, device: str = "cpu") -> Model:
    """Read both files back; a file that does not fit the other is refused."""
    content = read_json(folder / "model.json")
    if isinstance(content, dict) and "weights" in content:
        check_files(folder, {"model.safetensors": content["weights"]})
    tensors, _ = load_tensors(folder / "model.safetensors")
    try:
        settings = settings_from(content["settings"])
        width = content["features"] if "scaling.directions" not in tensors else settings.components
        subsets = tuple(tuple(subset) for subset in content.get("subsets", []))
        network = build_network(
            settings,
            features=content.get("width", width),
            classes=len(content["classes"]),
            subsets=len(subsets),
            seed=0,
        )
        network.load_state_dict(without_prefix("network", tensors))
        measured = without_prefix("scaling", tensors)
        scaling = Scaling(settings.feature_scaling, **{name: value.numpy() for name, value in measured.items()})
        return Model(
            network.to(device),
            settings,
            scaling,
            content["features"],
            tuple(content["classes"]),
            content["method"],
            subsets,
        )
    except (KeyError, TypeError, RuntimeError) as error:
        raise FormatError(
            f"{folder}: model.json and model.safetensors do not belong together ({error}).\nTake both from one run."
        ) from error
