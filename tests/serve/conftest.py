"""One run, one service, and clients of it."""

import pytest
from serving import Client, Run, Standing, opened, train

from gamlp.serve.app import make_app


@pytest.fixture(scope="session")
def run(make_planted, tmp_path_factory) -> Run:
    graph = make_planted(nodes=90, features=4, degree=4, labelled=6)
    return train(graph, tmp_path_factory.mktemp("served"), method="gamlp-jk+rlu")


@pytest.fixture(scope="session")
def service(run):
    return opened(run.folder).service


@pytest.fixture
def client_of():
    """Return a function that makes a client for an app with options of its own."""
    made = []

    def client(service, *arguments, headers=None, **options):
        made.append(Client(make_app(Standing(service), *arguments, **options), headers=headers or {}))
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture
def client(client_of, service):
    return client_of(service)
