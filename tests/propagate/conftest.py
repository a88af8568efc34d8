"""A small Ray cluster on this machine, started once, where a test asks for it."""

import pytest


@pytest.fixture(scope="session")
def ray_here():
    """Three workers, a small store, no dashboard."""
    from gamlp.propagate.engines.ray_cluster import ENVIRONMENT

    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        ray.init(
            address="local",
            num_cpus=3,
            object_store_memory=100 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
        )
        yield ray
        ray.shutdown()
