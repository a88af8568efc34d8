"""The built-in graph, read at most once: several pages and examples use it, and making its features takes seconds."""

import pytest

KEPT = {}


@pytest.fixture(scope="module", autouse=True)
def debian_once():
    from gamlp.graph.readers import debian

    read = debian.load_debian
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(debian, "load_debian", lambda: KEPT.get("debian") or KEPT.setdefault("debian", read()))
        yield
