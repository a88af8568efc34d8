"""The published recipes on folders in OGB's raw layout, as a user would run them."""

import gzip
import json

import numpy as np
import pytest

NODES = 300
QUICK = ("epochs=2,1", "hidden=16", "batch_size=64")
PARTS = {"train": (0, 150), "valid": (150, 200), "test": (200, 260)}  # the last 40 nodes are in no set


def put(file, array, fmt):
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = (",".join(fmt % value for value in row) for row in np.atleast_2d(array.T).T)
    file.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode()))


def write_split(folder, made):
    for part, (first, last) in PARTS.items():
        put(folder / "split" / made / f"{part}.csv.gz", np.arange(first, last), "%d")


def content(features, classes):
    random = np.random.default_rng(0)
    labels = np.arange(NODES) % classes
    edges = random.integers(0, NODES, (2, 6 * NODES))
    return edges, random.normal(size=(NODES, features)).astype(np.float32), labels


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """ogbn-products and ogbn-arxiv as text, ogbn-papers100M as arrays."""
    root = tmp_path_factory.mktemp("data")
    for name, features, classes, made in (
        ("ogbn_products", 100, 47, "sales_ranking"),
        ("ogbn_arxiv", 128, 40, "time"),
    ):
        edges, values, labels = content(features, classes)
        raw = root / name / "raw"
        put(raw / "edge.csv.gz", edges.T, "%d")
        put(raw / "node-feat.csv.gz", values, "%.4f")
        put(raw / "node-label.csv.gz", labels, "%d")
        put(raw / "num-node-list.csv.gz", np.array([NODES]), "%d")
        write_split(root / name, made)
    edges, values, labels = content(128, 172)
    raw = root / "ogbn_papers100M" / "raw"
    raw.mkdir(parents=True)
    known = np.where(np.arange(NODES) < 260, labels, np.nan).astype(np.float32)[:, None]
    np.savez(raw / "data.npz", edge_index=edges, node_feat=values, num_nodes_list=[NODES], num_edges_list=[6 * NODES])
    np.savez(raw / "node-label.npz", node_label=known)
    write_split(root / "ogbn_papers100M", "time")
    return root


def trained(gamlp, root, out, *words):
    quick = [word for setting in QUICK for word in ("--set", setting)]
    done = gamlp("train", *words, "--root", root, "--seeds", 1, "--out", out, *quick, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out), json.loads((out / "run.json").read_text())


@pytest.mark.parametrize(
    ("dataset", "recipe", "method", "rows"),
    [
        ("ogbn-products", "ogbn-products", "gamlp-recursive+rlu", 300),
        ("ogbn-papers100M", "ogbn-papers100M", "gamlp-jk+rlu", 260),
        ("ogbn-papers100M", "ogbn-papers100M-published", "gamlp-recursive+rlu", 260),
    ],
)
def test_a_published_recipe_trains(gamlp, root, tmp_path, dataset, recipe, method, rows):
    result, record = trained(gamlp, root, tmp_path / "run", dataset, "--recipe", recipe)
    assert (result["dataset"], result["method"], result["recipe"]) == (dataset, method, recipe)
    for key in ("valid_accuracy", "test_accuracy", "valid_macro_f1", "test_log_loss"):
        assert 0 <= result[key] < 20
    assert len(result["runs"][0]["stages"]) == 2
    assert record["settings"]["label_hops"] == 9
    assert record["settings"]["epochs"] == [2, 1]
    assert np.load(tmp_path / "run" / "seed-0" / "rows.npy").shape == (rows,)


def test_a_dataset_finds_its_own_recipe_or_the_default(gamlp, root, tmp_path):
    assert trained(gamlp, root, tmp_path / "products", "ogbn-products")[0]["recipe"] == "ogbn-products"
    assert trained(gamlp, root, tmp_path / "arxiv", "ogbn-arxiv")[0]["recipe"] == "default"


def test_the_networks_have_the_published_numbers_of_parameters(gamlp):
    done = gamlp("recipes", "--json")
    assert done.code == 0, done.err
    found = {recipe["name"]: recipe for recipe in json.loads(done.out)["recipes"]}
    assert found["ogbn-products"]["parameters"] == 3_335_831
    unused = 128 * 1024 + 1024 + 1  # a residual map with bias and a PReLU, which the published network never uses
    assert found["ogbn-papers100M-published"]["parameters"] == 16_308_751 - unused
    assert found["ogbn-products"]["published"]["sgc"] == [75.87, None]
    assert found["ogbn-products"]["published"]["gamlp-recursive+rlu"] == [84.59, 0.1]
    shown = gamlp("recipes")
    assert shown.code == 0
    assert "3,335,831" in shown.out
