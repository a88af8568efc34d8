"""A cluster of two machines, played by two Ray daemons, loses one of them in the middle of a run.

`python lose_a_machine.py FOLDER`: FOLDER/hops then holds the hops; prints the machines before and after
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from gamlp.graph.build.csr import adjacency_from_edges
from gamlp.propagate import Propagation
from gamlp.propagate.engines.ray import RayEngine
from gamlp.propagate.engines.ray_cluster import ENVIRONMENT, cluster, machines

HOPS = 300


def graph():
    """Return an adjacency, and features of four cache lines: two blocks a machine."""
    random = np.random.default_rng(0)
    adjacency = adjacency_from_edges(*random.integers(0, 400, (2, 3000)), nodes=400)
    return adjacency, random.normal(size=(400, 64)).astype(np.float32)


def main(folder: Path) -> None:
    """Propagate, and take a machine away once a block has come through fifty hops."""
    os.environ.update(ENVIRONMENT)
    from ray.cluster_utils import Cluster

    there = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    lost, _kept = (there.add_node(num_cpus=2, memory=2**30) for _ in range(2))
    with cluster(there.address) as ray:
        before = at_work(ray)
        taker = threading.Thread(target=take_away, args=(there, lost, folder / "hops.partial"))
        taker.start()
        RayEngine(2**22).propagate_to(folder / "hops", *graph(), Propagation(HOPS))
        taker.join()
        after = at_work(ray)
        while after == before:  # the others may be done before Ray has given up on it
            time.sleep(0.1)
            after = at_work(ray)
    there.shutdown()
    print(before, after)


def at_work(ray) -> int:
    """Count the machines that are alive and compute."""
    return sum(one.processors > 0 for one in machines(ray))


def take_away(there, lost, folder: Path) -> None:
    """Kill the daemon of a machine, and with it all its workers."""
    fifty_hops = 50 * 400 * 16 * 4

    def far(path: Path) -> bool:
        with suppress(OSError):  # finished in the meantime
            return path.stat().st_size > fifty_hops
        return False

    while not any(map(far, folder.glob("block-*.tmp"))):
        time.sleep(0.01)
    there.remove_node(lost, allow_graceful=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
