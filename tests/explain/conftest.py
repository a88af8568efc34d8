"""A small graph, and a finished run of it."""

import pytest
from run_files import make_run, path_with_star


@pytest.fixture
def tiny_graph():
    return path_with_star()


@pytest.fixture
def run_of(tmp_path):
    """Return a function that writes a run for a graph."""
    return lambda graph, **options: make_run(graph, tmp_path, **options)
