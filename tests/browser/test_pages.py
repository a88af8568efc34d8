"""The pages in a browser, opened from files: they work, they are quick, and they ask nobody for anything."""

import time
from dataclasses import replace

import numpy as np
import pytest
from run_files import make_run, path_with_star

from gamlp.explain.comparison import write_comparison
from gamlp.explain.report import write_report

HOSTILE = "<script>alert(1)</script>"
ROWS = (
    "[...document.querySelectorAll('#predictions tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
)
PAPER = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture
def hostile_page(tmp_path):
    graph = path_with_star()
    graph = replace(graph, names=np.array([f"{HOSTILE}{index}" for index in range(10)]), name="a & b")
    return write_report(graph, make_run(graph, tmp_path))


def click(browser, selector):
    browser.run(f"document.querySelector({selector!r}).click()")


def search(browser, words):
    browser.run(f"(box => {{ box.value = {words!r}; box.dispatchEvent(new Event('input')) }})(document.all.search)")


def assert_quiet(browser, *pages):
    """No complaint of the console, and nothing asked for but the pages."""
    browser.run("new Promise(done => setTimeout(done, 50))")
    assert browser.complaints == []
    assert browser.requests == [page.resolve().as_uri() for page in pages]


def test_a_hostile_name_is_text(browser, hostile_page):
    browser.open(hostile_page)
    assert [row[0] for row in browser.run(ROWS)] == [f"{HOSTILE}{index}" for index in range(10)]
    assert browser.run("document.scripts.length") == 2  # the data and our own
    assert browser.run("document.title") == "gamlp-jk on a & b"
    assert_quiet(browser, hostile_page)


def test_the_table_sorts_and_searches(browser, hostile_page):
    browser.open(hostile_page)
    click(browser, "#predictions th[data-column='2'] button")  # confidence, the largest first
    rows = browser.run(ROWS)
    assert [row[2] for row in rows[:2]] == ["90.00 %", "80.00 %"]
    assert rows[0][0].endswith(">4")
    click(browser, "#predictions th[data-column='2'] button")
    assert browser.run(ROWS)[0][2] == "40.00 %"
    assert browser.run("document.querySelector('#predictions th[aria-sort]').textContent") == "confidence"
    click(browser, "#predictions th[data-column='5'] button")  # neighbours: node 4 has five
    assert browser.run(ROWS)[0][5] == "5"
    search(browser, "SCRIPT>7")
    assert [row[:2] for row in browser.run(ROWS)] == [[f"{HOSTILE}7", "green"]]
    assert browser.run("document.getElementById('predictions-status').textContent") == "1 of 1 rows"
    search(browser, "")
    browser.run("(only => { only.value = 'wrong'; only.dispatchEvent(new Event('change')) })(document.all.only)")
    assert sorted(row[0][-1] for row in browser.run(ROWS)) == ["4", "8"]
    assert_quiet(browser, hostile_page)


def eventually(browser, expression, expected, seconds=5.0):
    """Say whether an expression takes a value soon: the page hears of new colours after they are set."""
    end = time.monotonic() + seconds
    while browser.run(expression) != expected:
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_the_colours_follow_the_system_and_the_button(browser, hostile_page):
    browser.open(hostile_page)
    light = browser.run(PAPER)
    browser.looks(dark=True)
    dark = browser.run(PAPER)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(18, 22, 28)")
    assert eventually(browser, "document.getElementById('theme').textContent", "Light")
    click(browser, "#theme")
    assert browser.run(PAPER) == light
    click(browser, "#theme")
    assert browser.run(PAPER) == dark
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run(PAPER) == light
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.run("localStorage.clear()")
    assert_quiet(browser, hostile_page)


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_page_is_wider_than_the_window(browser, hostile_page, width):
    browser.looks(width=width, phone=width < 600)
    browser.open(hostile_page)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_a_run_of_60_thousand_nodes_opens_quickly(browser, tmp_path, make_planted):
    graph = make_planted(nodes=60_000, classes=8, degree=2)
    graph = replace(graph, names=np.array([f"package-number-{index}" for index in range(graph.nodes)]))
    random = np.random.default_rng(0)
    probabilities = random.dirichlet([0.1] * 8, size=graph.nodes).astype(np.float32)
    run = make_run(graph, tmp_path, probabilities=probabilities, attention=random.dirichlet(np.ones(7), graph.nodes))
    page = write_report(graph, run)
    assert page.stat().st_size < 5_000_000
    assert min(browser.open(page) for _ in range(3)) < 2
    assert len(browser.run(ROWS)) == 50
    assert_quiet(browser, page, page, page)


def test_the_page_of_several_runs(browser, tmp_path):
    graph = path_with_star()
    runs = [make_run(graph, tmp_path / name, method=method) for name, method in (("a", "gamlp-jk"), ("b", HOSTILE))]
    page = write_comparison(runs, out=tmp_path / "page.html")
    browser.open(page)
    names = "[...document.querySelectorAll('#result tbody th')].map(cell => cell.textContent)"
    assert browser.run(names) == ["gamlp-jk", HOSTILE]
    click(browser, "#result thead button")
    assert browser.run(names) == [HOSTILE, "gamlp-jk"]
    click(browser, "#result thead button")
    assert browser.run(names) == ["gamlp-jk", HOSTILE]
    assert_quiet(browser, page)
