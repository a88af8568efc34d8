"""How quickly does `gamlp serve` answer, how much can it take, and does it stay as small as it was?

    python benchmarks/serve.py --folder /somewhere/with/space               240 thousand nodes, 12 M entries
    python benchmarks/serve.py --scale 1 --requests 100000 --folder …       2.4 M nodes, 123 M entries
    python benchmarks/serve.py --scale 0.002 --requests 200 --batches 2     a quick look

A graph in the shape of ogbn-products is generated (100 features, 47 classes), a network of the recipe's size is trained
for an epoch, and new nodes with 50 edges each, to nodes drawn at random, are predicted:

    inside    one new node a request, from the bytes of its body to the bytes of the answer, in this process
    http      the same through `gamlp serve` on this machine, in a process of its own, over one connection
    batches   as many new nodes as a request may have: nodes a second, inside
    overload  many connections at once for a few seconds: what is answered, what is refused, and how quickly; then one
              connection again
    memory    what the server holds of its own (RssAnon), from its first request to its last

All hops are mapped from files that the system has in its cache: `warm` reads them once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

EDGES = 50
JSON = {"Content-Type": "application/json"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="times the nodes and edges of ogbn-products")
    parser.add_argument("--requests", type=int, default=5_000, help="single ones, inside and through HTTP each")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--clients", type=int, default=100, help="connections at once, for the overload")
    parser.add_argument("--seconds", type=float, default=5, help="how long the overload lasts")
    parser.add_argument("--memory", default="6GiB")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--folder", type=Path, help="where graph and run go, and are found again")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="gamlp-serve-"))
    run = trained(folder, options)
    found = {"inside": inside(run, options), "http": {}, "machine": machine()}
    with server(run, options) as (address, process):
        found["http"] = through_http(address, process, found["inside"]["nodes"], options)
        found["overload"] = overload(address, process, found["inside"]["nodes"], options)
        process.send_signal(signal.SIGTERM)
        found["stopped_with"] = process.wait(60)
    print(json.dumps(found, indent=2))


def gamlp(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "gamlp", *map(str, words)], check=True, stdout=sys.stderr)


def trained(folder: Path, options: argparse.Namespace) -> Path:
    """Generate the graph and train on it, unless both are there."""
    from gamlp.storage.sizes import parse_size
    from gamlp.synth.draw import shape_named
    from gamlp.synth.write import write_synth

    graph, run = folder / f"products-{options.scale:g}", folder / f"run-{options.scale:g}-{options.hidden}"
    if not graph.exists():  # few test nodes: the run need not speak of all nodes to be served
        shape = replace(shape_named("products").scaled(options.scale), test=0.01)
        write_synth(graph, shape, seed=0, memory=parse_size(options.memory))
    if not run.exists():
        words = ("--recipe", "ogbn-products", "--method", "gamlp-recursive", "--seeds", 1, "--set", "epochs=1")
        sizes = ("--set", "rows=labelled", "--set", f"hidden={options.hidden}", "--memory", options.memory)
        gamlp("train", graph, *words, *sizes, "--out", run)
    return run


def body(random: np.random.Generator, nodes: int, features: int, count: int = 1) -> bytes:
    """Return a request: new nodes with EDGES edges each."""
    ids = [nodes + at for at in range(count)]
    values = random.normal(size=(count, features)).astype(np.float32).round(4)
    table = {"id": ids, "features": values.tolist()}
    ends = random.integers(0, nodes, EDGES * count).tolist()
    return json.dumps({"nodes": table, "edges": {"source": np.repeat(ids, EDGES).tolist(), "target": ends}}).encode()


def inside(run: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure single requests and batches in this process."""
    from gamlp.cli.options import ComputeOptions
    from gamlp.cli.serve import opened
    from gamlp.serve.body import read_tables
    from gamlp.serve.limits import Limits

    limits, random = Limits(), np.random.default_rng(0)
    most = {"nodes": limits.rows, "edges": limits.edges}
    started = time.perf_counter()
    service = opened(run, None, None, ComputeOptions(memory=options.memory), limits).service
    ready = time.perf_counter() - started
    facts = service.about()
    nodes, features = facts["nodes"], facts["features"]
    warm(service)

    def answer(content: bytes) -> bytes:
        return json.dumps(service.predict(read_tables(content, most, needed=("nodes",)))).encode()

    bodies = [body(random, nodes, features) for _ in range(min(options.requests, 1_000))]
    for content in bodies[:50]:
        answer(content)
    times, own = [], []
    for at in range(options.requests):
        before, cpu = time.perf_counter(), time.thread_time()
        answer(bodies[at % len(bodies)])
        times.append(time.perf_counter() - before)
        own.append(time.thread_time() - cpu)  # one thread: what an idle machine would take
    large = [body(random, nodes, features, limits.rows) for _ in range(min(options.batches, 3))]
    before = time.perf_counter()
    for at in range(options.batches):
        answer(large[at % len(large)])
    rate = options.batches * limits.rows / (time.perf_counter() - before)
    return {
        "nodes": nodes, "entries": facts["entries"], "features": features, "ready_seconds": round(ready, 2),
        "kept_bytes": service.living.bytes, "requests": options.requests, **quantiles(times),
        "processor": quantiles(own), "batch_nodes": limits.rows, "batch_nodes_a_second": round(rate),
    }  # fmt: skip


def warm(service: Any) -> None:
    """Read what is mapped once, so that the system's cache has it."""
    for states in service.living.states:
        float(np.asarray(states.values[:, ::2, ::16]).sum(dtype=np.float64))


@contextmanager
def server(run: Path, options: argparse.Namespace) -> Any:
    words = ["serve", str(run), "--port", "0", "--json", "--quiet", "--memory", options.memory]
    started = subprocess.Popen([sys.executable, "-m", "gamlp", *words], stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(started.stdout.readline())["address"].removeprefix("http://"), started
    finally:
        if started.poll() is None:
            started.kill()
        started.wait()


def through_http(address: str, process: Any, nodes: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure single requests over one connection, and the size of the server meanwhile."""
    random, connection = np.random.default_rng(1), HTTPConnection(address, timeout=60)
    features = json.loads(ask(connection, "GET", "/about")[1])["features"]
    bodies = [body(random, nodes, features) for _ in range(min(options.requests, 1_000))]
    times, sizes = [], []
    for at in range(options.requests):
        if at % max(1, options.requests // 10) == options.requests // 20:
            sizes.append(resident(process))
        before = time.perf_counter()
        status, _ = ask(connection, "POST", "/predict", bodies[at % len(bodies)])
        times.append(time.perf_counter() - before)
        assert status == 200
    return {**quantiles(times), "requests": options.requests, "resident_mib": sizes}


def overload(address: str, process: Any, nodes: int, options: argparse.Namespace) -> dict[str, Any]:
    """Ask over many connections at once, then over one again."""
    random, connection = np.random.default_rng(2), HTTPConnection(address, timeout=60)
    features = json.loads(ask(connection, "GET", "/about")[1])["features"]
    content, ends = body(random, nodes, features, 20), time.monotonic() + options.seconds
    statuses: Counter[int] = Counter()
    times: dict[int, list[float]] = {200: [], 503: []}

    def client() -> None:
        own = HTTPConnection(address, timeout=60)
        while time.monotonic() < ends:
            before = time.perf_counter()
            status, _ = ask(own, "POST", "/predict", content)
            statuses[status] += 1
            times.setdefault(status, []).append(time.perf_counter() - before)
            if status == 503:
                time.sleep(0.05)  # a client that tries again soon, sooner than Retry-After says

    threads = [threading.Thread(target=client) for _ in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after, connection = [], HTTPConnection(address, timeout=60)  # the first was idle for too long
    for _ in range(50):
        before = time.perf_counter()
        ask(connection, "POST", "/predict", body(random, nodes, features))
        after.append(time.perf_counter() - before)
    return {
        "clients": options.clients, "nodes_a_request": 20, "seconds": options.seconds,
        "statuses": dict(statuses),
        "answered_ms": quantiles(times[200]), "refused_ms": quantiles(times[503]), "afterwards": quantiles(after),
        "resident_mib": resident(process),
    }  # fmt: skip


def ask(connection: HTTPConnection, method: str, path: str, content: bytes | None = None) -> tuple[int, bytes]:
    connection.request(method, path, content, JSON if content else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def resident(process: Any) -> int:
    """Return what the server holds of its own, in MiB, without pages of mapped files, which the system takes back."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.split("RssAnon:")[1].split()[0]) // 1024


def quantiles(times: list[float]) -> dict[str, float]:
    """Return the median and the 99th of a hundred, in milliseconds."""
    if not times:
        return {}
    return {f"p{q}_ms": round(1000 * float(np.percentile(times, q)), 3) for q in (50, 99)}


def machine() -> dict[str, Any]:
    """Say what it ran on, and how busy that was: others' work makes every figure worse."""
    return {
        "processors": len(os.sched_getaffinity(0)), "machine": platform.machine(), "load": round(os.getloadavg()[0], 1),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }  # fmt: skip


if __name__ == "__main__":
    main()
