"""What is served of a run, without HTTP: what it says of a node, and of nodes that the graph does not have yet.

    service = Service.open(Path("runs/debian"))
    service.node("gimp")                             class, probabilities, hop weights, neighbours that matter
    service.predict({"nodes": …, "edges": …})        of new nodes, from tables

Hops, predictions and a graph directory are mapped from disk: memory holds the ids, the labels and what one request
needs. Not made for several threads at a time: `limits.Gate` lets one in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch

from gamlp.errors import NotFiniteError, SettingsError
from gamlp.explain.finished_run import FinishedRun
from gamlp.explain.neighbours import Share, hop_shares
from gamlp.explain.node import find_node, story_of
from gamlp.graph.build.ids import NodeIds
from gamlp.graph.readers.change_tables import ids_of, read_new_nodes
from gamlp.pipeline import Fitted
from gamlp.progress import log
from gamlp.propagate.normalize import Normalization
from gamlp.storage.threads import available

if TYPE_CHECKING:
    from gamlp.train.living import Living

ENTRIES = 200_000  # adjacency entries looked at for one ring: some milliseconds
FEW = 32  # nodes that one thread predicts: several would wait for each other longer than they work
COMPARED = 5_000  # names compared for a suggestion
NONE = pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())})


@dataclass(frozen=True, eq=False)
class Service:
    """A finished run, opened to be asked."""

    run: FinishedRun
    fitted: Fitted
    living: Living | None  # None where new nodes cannot be predicted alone
    reason: str = ""  # why not

    @classmethod
    def of(cls, run: FinishedRun, fitted: Fitted) -> Service:
        """Keep the states of the graph, and be ready: the first request is as quick as the next."""
        try:
            living, reason = fitted.living(run.graph, split=run.split), ""
        except SettingsError as error:
            living, reason = None, str(error)
            log.warning("New nodes are refused: %s", reason)
        service = cls(run, fitted, living, reason)
        service.warm_up()
        return service

    @cached_property
    def ids(self) -> NodeIds:
        """Where each id stands: made once."""
        return ids_of(self.run.graph)

    def roles(self, *tables: Any) -> dict[str, Any]:
        """Return which columns have a role: as in the run's own tables, where these have them."""
        names = {name for table in tables for name in table.column_names}
        source = self.run.record.get("source") or {}
        roles = {role: name for role, name in source.get("columns", {}).items() if name in names}
        return {**roles, "ignore": [name for name in source.get("ignore", ()) if name in names]}

    def node(self, text: str, *, features: bool = False) -> dict[str, Any]:
        """Return all that the run says of the node with this id."""
        run, node = self.run, int(self.ids.find(pa.array([text]))[0])
        if node < 0:
            node = find_node(run.graph, text, compared=COMPARED)
        story = asdict(story_of(run, node, limit=ENTRIES))
        found = {"id": story.pop("name"), **story}
        chances = run.probabilities[int(np.searchsorted(run.rows, node))]
        found["probabilities"] = {name: float(chance) for name, chance in zip(run.classes, chances, strict=True)}
        best = int(chances.argmax())
        found["neighbours"] = [self.neighbour(one.node, one.share) for one in self.shares(node, best)]
        return found | ({"features": self.feature_columns(node)} if features else {})

    def shares(self, node: int, predicted: int) -> list[Share]:
        """Return which neighbours matter to the first hop."""
        settings = self.fitted.pipeline.settings
        own = Normalization(getattr(settings, "normalization", 0.0), getattr(settings, "self_loops", False))
        return hop_shares(self.run.graph.adjacency, node, own, self.run.known, predicted)

    def neighbour(self, node: int, share: float) -> dict[str, Any]:
        """Return what is known of a neighbour: its label only where it trained."""
        run = self.run
        return {"id": run.name_of(node), "share": share, "label": run.words(run.known[node : node + 1])[0]}

    def feature_columns(self, node: int) -> dict[str, Any]:
        """Return the features of a node by their columns, as a table of new nodes has them."""
        values, names = np.asarray(self.run.graph.features[node], np.float32).tolist(), self.run.graph.feature_names
        return {"features": values} if names is None else dict(zip(names, values, strict=True))

    def predict(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the network says of new nodes: Arrow tables `nodes` and, perhaps, `edges`."""
        if self.living is None:
            raise SettingsError(self.reason)
        nodes, edges = tables["nodes"], tables.get("edges", NONE)
        new = read_new_nodes(self.run.graph, edges, nodes, self.ids, **self.roles(nodes, edges))
        torch.set_num_threads(1 if new.nodes.nodes < FEW else available())
        said = self.living.predict(new)
        assert new.nodes.names is not None  # read_new_nodes gives them
        if not np.isfinite(said.probabilities).all():
            raise NotFiniteError("The features are too large: the answer is no number.\nScale them as in training.")
        kind, classes, chances = self.fitted.kind, self.fitted.classes, said.probabilities
        predicted, sure = kind.words(kind.predicted(chances), classes), kind.sureness(chances)
        weights = [None] * len(said.rows) if said.weights is None else said.weights.tolist()
        rows = zip(new.nodes.names.tolist(), predicted, sure.tolist(), chances.tolist(), weights, strict=True)
        return {"nodes": [self.answer(*row) for row in rows]}

    def answer(
        self, name: str, predicted: str, sure: float, chances: list[float], weights: list[float] | None
    ) -> dict[str, Any]:
        """Return what is said of one new node."""
        return {
            "id": name, "predicted": predicted, "confidence": sure,
            "probabilities": dict(zip(self.fitted.classes, chances, strict=True)), "weights": weights,
        }  # fmt: skip

    @cached_property
    def unused(self) -> int:
        """A number that is no id."""
        names = self.run.graph.names
        return self.run.graph.nodes if names is None or self.ids.are_strings else int(names.max()) + 1

    def about(self) -> dict[str, Any]:
        """Return what a client, or a page, needs to know to ask."""
        run, graph = self.run, self.run.graph
        example = int(run.rows[0]) if len(run.rows) else 0
        return {
            "run": run.folder.name, "dataset": run.record["dataset"], "method": run.record["method"], "seed": run.seed,
            "nodes": graph.nodes, "entries": graph.adjacency.entries, "features": graph.features.shape[1],
            "columns": None if graph.feature_names is None else list(graph.feature_names),
            "classes": list(run.classes), "weighted": graph.adjacency.weights is not None,
            "numbered": not self.ids.are_strings, "unused": self.unused, "example": run.name_of(example),
            "takes_new": self.living is not None, "why_not": self.reason or None,
        }  # fmt: skip

    def request_bytes(self, edges: int) -> int:
        """Say what a request of so many edges takes about: the rows of their ends, gathered, copied and summed."""
        if self.living is None:
            return 0
        return 3 * edges * max(4 * int(np.prod(one.values.shape[1:])) for one in self.living.states)

    def warm_up(self) -> None:
        """Look a node up, and predict one like it: everything is compiled, mapped and cached then."""
        if not len(self.run.rows):
            return
        node = int(self.run.rows[0])
        name = self.run.name_of(node)
        self.node(name)
        if self.living is None:
            return
        unused = f"{name}\n new" if self.ids.are_strings else self.unused
        edges = {"source": [unused], "target": [name if self.ids.are_strings else int(name)]}
        weights = {} if self.run.graph.adjacency.weights is None else {"weight": [1.0]}
        columns = {"id": [unused], **{key: [value] for key, value in self.feature_columns(node).items()}}
        self.predict({"nodes": pa.table(columns), "edges": pa.table({**edges, **weights})})
