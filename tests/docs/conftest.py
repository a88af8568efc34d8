"""The built-in graph, read once: several pages and examples use it, and making its features takes seconds."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def debian_once():
    from gamlp.graph import debian

    graph = debian.load_debian()
    patch = pytest.MonkeyPatch()
    patch.setattr(debian, "load_debian", lambda: graph)
    yield
    patch.undo()
