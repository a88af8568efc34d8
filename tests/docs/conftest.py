"""The built-in graph, read once: several pages and examples use it, and making its features takes seconds."""

from functools import cache

import pytest


@cache
def read():
    from gamlp.graph.debian import load_debian

    return load_debian()


@pytest.fixture(scope="module", autouse=True)
def debian_once():
    graph = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gamlp.graph.debian.load_debian", lambda: graph)
        yield
