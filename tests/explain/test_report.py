"""The page of a run: complete in itself, and safe whatever the names are."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from gamlp.cli import main
from gamlp.errors import FormatError
from gamlp.explain.figures.chart import PALETTE, Chart, drawn
from gamlp.explain.figures.learning import loss_charts, series, stage_marks
from gamlp.explain.report import render_page, write_report
from gamlp.graph.splits import Split
from gamlp.storage.files import read_json, write_json

HOSTILE = "<script>alert(1)</script>"
VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """Collects elements, text and scripts, and fails on a tag that closes nothing."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.scripts, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID and not (tag in {"line", "rect"} and self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] == "script" else self.words).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def page_of(graph, run, **options):
    text = write_report(graph, run, **options).read_text(encoding="utf-8")
    return Page(text), text


def test_the_page_holds_the_numbers_of_the_run(tiny_graph, run_of):
    page, _ = page_of(tiny_graph, run_of(tiny_graph))
    for words in (
        "gamlp-jk on tiny",
        "Nodes most probably mislabelled",
        "node-4 blue red 90.00 %",
        "Accuracy by number of neighbours accuracy 1–4 (3) 66.7 %",
        "blue (2)",
        "1–4 (8) 0.375 0.375 0.250",
        # 0.7 right, 0.7 wrong and 0.6 right, 2/3 on average, are right in 2 of 3; 0.9 is wrong: (3 · 0 + 1 · 0.9) / 4
        "Expected calibration error: 22.5 %",
        "Without the temperature of 1.50, which was fitted on validation nodes, the error is 45.0 %",
        "the median number of neighbours 8 and 2",
        "an accuracy near 61 % is to be expected",
        "90 % asked for 75.0 % 1.50 50.0 % 0.0 %",
        "made by 40 validation nodes, which also chose the epoch",
        "stage 1",
        "stage 2",
        "stage 1 0 stage 2 3 Reliable nodes are those",
        "1 3 3 30.00 % 2 3 3 30.00 %",
        "--set hops=2",
        "All 10 predictions.",
    ):
        assert words in page.text, words


def test_hostile_names_are_text(tiny_graph, run_of):
    graph = replace(
        tiny_graph,
        names=np.array([f"{HOSTILE}{index}" for index in range(10)]),
        classes=(HOSTILE, '"><img src=x onerror=alert(1)>', "</title></style>&amp;"),
        name=HOSTILE,
    )
    page, text = page_of(graph, run_of(graph, method=HOSTILE))
    assert sum(tag == "script" for tag, _ in page.elements) == 2  # the data and our own
    assert not any(tag == "img" or any(name.startswith("on") for name in found) for tag, found in page.elements)
    assert "alert(1)" not in page.scripts[-1]
    assert f"{HOSTILE}4" in page.text
    assert HOSTILE not in text
    data = json.loads(page.scripts[0])
    assert data["classes"] == list(graph.classes)
    assert data["rows"][4][0] == f"{HOSTILE}4"


def test_nothing_is_asked_from_elsewhere(tiny_graph, run_of):
    page, text = page_of(tiny_graph, run_of(tiny_graph))
    for _, attributes in page.elements:
        for name in ("src", "href", "action", "data", "srcset"):
            assert (attributes.get(name) or "#").startswith("#")
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    policy = next(found["content"] for tag, found in page.elements if "http-equiv" in found)
    allowed = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in policy
    assert policy.startswith("default-src 'none'")


def test_a_method_without_attention_or_history(tiny_graph, run_of):
    run = run_of(tiny_graph, attention=None, method="label-propagation")
    (run / "seed-0" / "history.json").write_text("[]")
    record = read_json(run / "run.json")
    record["result"]["runs"][0]["stages"] = []
    write_json(run / "run.json", record)
    page, _ = page_of(tiny_graph, run)
    ids = {found.get("id") for _, found in page.elements}
    assert {"result", "mistakes", "all", "settings"} <= ids
    assert not ids & {"attention", "learning"}


def test_a_graph_without_test_labels(tiny_graph, run_of):
    split = Split(tiny_graph.split.train, tiny_graph.split.valid, np.zeros(0, dtype=np.int64))
    graph = replace(tiny_graph, split=split)
    run = run_of(graph)
    record = read_json(run / "run.json")
    for scores in (record["result"], *record["result"]["runs"]):
        scores |= {key: None for key in scores if key.startswith("test_")}
        scores["trust"] = {"temperature": 1.0, "coverage": []}
    write_json(run / "run.json", record)
    page, _ = page_of(graph, run)
    ids = {found.get("id") for _, found in page.elements}
    assert {"result", "learning", "attention"} <= ids
    assert not ids & {"mistakes", "calibration", "coverage", "doubted"}
    assert "Test accuracy –" in page.text


def test_where_peak_memory_is_unknown_the_page_is_written(tiny_graph, run_of):
    run = run_of(tiny_graph)
    record = read_json(run / "run.json")
    record["result"]["peak_memory_bytes"] = None
    write_json(run / "run.json", record)
    assert "– at most" in page_of(tiny_graph, run)[0].text


def test_debian_speaks_of_packages(tiny_graph, run_of):
    graph = replace(tiny_graph, name="debian")
    assert "Packages most probably filed in the wrong section" in page_of(graph, run_of(graph))[0].text


def test_a_large_run_stays_small(make_planted, run_of):
    graph = make_planted(nodes=60_000, classes=8, degree=2)
    graph = replace(graph, names=np.array([f"{index:x<400}" for index in range(graph.nodes)]))
    random = np.random.default_rng(0)
    probabilities = random.dirichlet([0.1] * 8, size=graph.nodes).astype(np.float32)
    run = run_of(graph, probabilities=probabilities, attention=random.dirichlet(np.ones(7), size=graph.nodes))
    page, text = page_of(graph, run)
    assert len(text.encode()) < 5_000_000
    assert len(json.loads(page.scripts[0])["rows"]) == 4_000
    assert json.loads(page.scripts[0])["total"] == 60_000
    assert "4,000 of 60,000 predictions" in page.text


def test_report_command(tiny_graph, run_of, tmp_path, capsys):
    out = tmp_path / "page.html"
    with pytest.raises(SystemExit) as left:
        main(["report", str(run_of(tiny_graph)), "--out", str(out), "--json"])
    assert left.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["out"] == str(out)
    assert facts["bytes"] == out.stat().st_size > 10_000


def test_epochs_go_on_over_the_stages():
    history = [
        {"stage": stage, "epoch": epoch, "loss": stage} for stage, last in ((1, 2), (2, 3)) for epoch in (1, last)
    ]
    assert series(history, "loss") == [(1, 1), (2, 1), (3, 2), (5, 2)]
    assert stage_marks(history) == [(1, "stage 1"), (3, "stage 2")]
    assert stage_marks(history[:2]) == []
    assert series([{"epoch": 1, "valid_loss": 4.0}], "valid_log_loss", "valid_loss") == [(1, 4.0)]


def test_the_curves_by_hand():
    history = [
        {"epoch": 1, "loss": 0.5},
        {"epoch": 2, "loss": 4.0, "valid_loss": 3.0},
        {"epoch": 3, "loss": float("nan")},
    ]
    (chart,) = loss_charts(history)
    with drawn(chart) as figure:
        training, validation = figure.axes[0].lines
        assert training.get_xydata()[:2].tolist() == [[1, 0.5], [2, 4]]
        assert validation.get_xydata().tolist() == [[2, 3]]
    assert loss_charts([]) == loss_charts([{"epoch": 1, "valid_accuracy": 0.5}]) == []


def test_a_picture_on_the_page_has_the_colours_of_the_page_and_no_id_twice():
    charts = [
        Chart(name, HOSTILE, (), [], lambda axes: axes.plot([1, 2], "o-", color="#0b5cad", label="a < $b$"))
        for name in ("one", "other")
    ]
    texts = [str(chart.svg()) for chart in charts]
    assert [str(chart.svg()) for chart in charts] == texts  # the same bytes again
    assert "stroke: var(--accent)" in texts[0]
    assert not re.search("|".join(PALETTE), texts[0])
    assert HOSTILE not in texts[0]
    ids = [re.findall(r' id="([^"]*)"', text) for text in texts]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])


def test_the_palette_is_that_of_the_light_page():
    page = render_page("page.html.j2", {"title": ""}, scripts=[])
    light = page[page.index(":root {") : page.index("@media")]
    assert {name: colour for colour, name in PALETTE.items()}.items() <= dict(
        re.findall(r"(--\w+): (#\w+);", light)
    ).items()


def test_relation_weights_are_shown_where_a_run_left_them(tiny_graph, run_of):
    run = run_of(tiny_graph)
    assert "Weights of the relations" not in page_of(tiny_graph, run)[0].text
    content = {"subsets": ["depends", HOSTILE], "weights": [[0.25, 0.5, 0.25], [0.1, 0.2, 0.3]]}
    (run / "seed-0" / "relations.json").write_text(json.dumps(content))
    page, text = page_of(tiny_graph, run)
    assert "depends 0.250 0.500 0.250" in page.text
    assert HOSTILE not in text
    (run / "seed-0" / "relations.json").write_text(json.dumps({"subsets": ["one"], "weights": [[1.0], [2.0]]}))
    with pytest.raises(FormatError, match="1 subsets for weights"):
        write_report(tiny_graph, run)
