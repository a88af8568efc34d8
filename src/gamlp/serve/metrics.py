"""What is counted, as Prometheus reads it: requests by route and status, how long they took, nodes, memory."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """The counts of one app; those of the process come with them."""

    def __init__(self, inside: Callable[[], int], nodes: Callable[[], int]) -> None:
        own = self.registry = CollectorRegistry()
        ProcessCollector(registry=own)
        self._requests = Counter("gamlp_requests", "Requests answered.", ("route", "status"), registry=own)
        self._seconds = Histogram("gamlp_seconds", "Time of a request.", ("route",), registry=own, buckets=SECONDS)
        self.predicted = Counter("gamlp_predicted_nodes", "New nodes predicted.", registry=own)
        Gauge("gamlp_requests_inside", "Requests under way.", registry=own).set_function(inside)
        Gauge("gamlp_graph_nodes", "Nodes of the graph.", registry=own).set_function(nodes)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one request; `route` is one of ours, never what a client made up."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of it."""
        return generate_latest(self.registry)
