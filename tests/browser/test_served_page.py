"""The page of gamlp serve in a browser: it looks nodes up, tries new ones, asks for a token, and asks nobody else."""

import threading
import time
from urllib.parse import quote

import pytest
import uvicorn
from serving import opened, train

from gamlp.serve.app import make_app
from gamlp.serve.server import address_of, bind

HOSTILE = "<img src=x onerror=alert(1)> {}"
TOKEN = "correct-horse-battery"
PAPER = "getComputedStyle(document.body).backgroundColor"
SECONDS = 60


@pytest.fixture(scope="module")
def versions(make_planted, tmp_path_factory):
    graph = make_planted(nodes=60, features=3, degree=4, labelled=6)
    return opened(train(graph, tmp_path_factory.mktemp("page"), method="gamlp-jk", ids=HOSTILE).folder)


@pytest.fixture
def serve():
    """Return a function that serves an app on this machine, until the test ends."""
    started = []

    def address(app):
        bound = bind("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, log_level="error", ws="none", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        started.append((server, thread))
        end = time.monotonic() + SECONDS
        while not server.started:  # the socket listens from here on
            assert time.monotonic() < end
            time.sleep(0.01)
        return address_of(bound)

    yield address
    for server, thread in started:
        server.should_exit = True
        thread.join(SECONDS)


def eventually(browser, expression):
    """Say whether an expression becomes true."""
    end = time.monotonic() + SECONDS
    while not browser.run(f"!!({expression})"):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def fill(browser, name, text):
    browser.run(f"document.getElementById({name!r}).value = {text!r}")


def submit(browser, form):
    browser.run(f"document.querySelector('#{form} button').click()")


def text_of(browser, name):
    return browser.run(f"document.getElementById({name!r}).innerText")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_node_is_looked_up_and_a_new_one_is_tried(browser, serve, versions, width):
    address = serve(make_app(versions))
    browser.looks(width=width, phone=width < 600)
    browser.open(address)
    assert eventually(browser, "document.getElementById('about').textContent.includes('60 nodes')")
    fill(browser, "node", HOSTILE.format(7))
    submit(browser, "look-form")
    assert eventually(browser, "document.querySelector('#result table')")
    said = versions.service.node(HOSTILE.format(7))
    assert HOSTILE.format(7) in text_of(browser, "result")  # text, not an image
    assert said["predicted"] in text_of(browser, "result")
    assert browser.run("location.hash") == f"#node={quote(HOSTILE.format(7), safe='()')}"
    neighbour = browser.run("document.querySelector('#result a').textContent")
    browser.run("document.querySelector('#result a').click()")
    assert eventually(browser, f"document.querySelector('#result h3')?.textContent === {neighbour!r}")
    fill(browser, "joined", f"{HOSTILE.format(1)}\n{HOSTILE.format(2)}")
    submit(browser, "fill-form")
    assert eventually(browser, "document.getElementById('body').value")
    submit(browser, "try-form")
    assert eventually(browser, "document.querySelector('#tried table')")
    assert "a new node" in text_of(browser, "tried")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []
    assert all(url.startswith(address) for url in browser.requests)


def test_a_new_node_without_hops_is_shown_as_well(browser, serve, make_planted, tmp_path):
    """Label propagation weighs no hops: the classes stand alone."""
    graph = make_planted(nodes=60, features=3, degree=4, labelled=6)
    browser.open(serve(make_app(opened(train(graph, tmp_path, method="label-propagation").folder))))
    assert eventually(browser, "document.getElementById('about').textContent.includes('60 nodes')")
    fill(browser, "joined", "node-1")
    submit(browser, "fill-form")
    assert eventually(browser, "document.getElementById('body').value")
    submit(browser, "try-form")
    assert eventually(browser, "document.querySelector('#tried table')")
    assert browser.run("document.querySelectorAll('#tried table').length") == 1
    assert browser.complaints == []


def test_what_is_wrong_is_shown(browser, serve, versions):
    browser.open(f"{serve(make_app(versions))}/#node=nobody")
    assert eventually(browser, "document.querySelector('#result .wrong')")
    assert "nobody" in text_of(browser, "result")
    fill(browser, "body", '{"nodes": []}')
    submit(browser, "try-form")
    assert eventually(browser, "document.querySelector('#tried .wrong')")
    assert "no rows" in text_of(browser, "tried")


def test_the_token_is_asked_for(browser, serve, versions):
    browser.open(serve(make_app(versions, token=TOKEN)))
    assert eventually(browser, "!document.getElementById('token-form').hidden")
    assert "nodes" not in text_of(browser, "about")
    fill(browser, "token", TOKEN)
    submit(browser, "token-form")
    assert eventually(browser, "document.getElementById('about').textContent.includes('60 nodes')")
    assert browser.run("document.getElementById('token-form').offsetParent === null")


def test_the_colours_follow_the_system(browser, serve, versions):
    address = serve(make_app(versions))
    for page in ("", "/api"):
        browser.looks()
        browser.open(f"{address}{page}")
        assert browser.run(PAPER) == "rgb(255, 255, 255)"
        browser.looks(dark=True)
        assert browser.run(PAPER) == "rgb(18, 22, 28)"
    assert browser.run("document.documentElement.scrollWidth") <= 1280
    assert browser.complaints == []
