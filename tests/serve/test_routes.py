"""What the routes answer: the same numbers as the command line, from the same run."""

import json

import numpy as np
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyarrow import parquet
from serving import Standing, outcome, run_gamlp

NEW = {"id": "new", "x0": 1.0, "x1": -0.5, "x2": 0.25, "x3": 2.0}


def test_a_node_is_told_as_explain_tells_it(client, run):
    told = json.loads(run_gamlp("explain", run.folder, "--node", "node-7", "--json"))
    found = client.get("/nodes/node-7")
    assert found.status_code == 200
    for key in ("degree", "member", "label", "predicted", "confidence", "top", "rings"):
        assert found.json()[key] == told[key]
    assert found.json()["id"] == "node-7"


def test_probabilities_and_shares_add_up(client):
    found = client.get("/nodes/node-7").json()
    assert sum(found["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert list(found["probabilities"]) == ["a", "b", "c"]
    assert sum(one["share"] for one in found["neighbours"]) <= 1 + 1e-9
    shares = [one["share"] for one in found["neighbours"]]
    assert shares == sorted(shares, reverse=True)


def test_features_are_those_of_the_table(client, run):
    from pyarrow import csv

    row = csv.read_csv(run.nodes).slice(7, 1).to_pylist()[0]
    found = client.get("/nodes/node-7?features=true").json()["features"]
    assert found == {f"x{at}": np.float32(row[f"x{at}"]) for at in range(4)}


def test_an_unknown_node_is_404_and_says_which_are_alike(client):
    found = client.get("/nodes/nod-7")
    assert found.status_code == 404
    assert found.json()["error"] == "IdError"
    assert "node-7" in found.json()["remedy"]


def test_rows_and_columns_are_the_same_table(client):
    edges = [{"source": "new", "target": "node-1"}, {"source": "new", "target": "node-2"}]
    by_rows = client.post("/predict", {"nodes": [NEW], "edges": edges})
    columns = {"nodes": {name: [value] for name, value in NEW.items()},
               "edges": {"source": ["new", "new"], "target": ["node-1", "node-2"]}}  # fmt: skip
    assert by_rows.status_code == 200, by_rows.text
    assert by_rows.json() == client.post("/predict", columns).json()
    said = by_rows.json()["nodes"][0]
    assert said["id"] == "new"
    assert said["probabilities"][said["predicted"]] == said["confidence"] == max(said["probabilities"].values())
    assert len(said["weights"]) == 3  # 2 hops and the node itself


def test_columns_are_matched_by_name(client):
    shuffled = {name: NEW[name] for name in ("x3", "x1", "id", "x0", "x2")}
    edges = [{"target": "node-1", "source": "new"}]
    body = {"nodes": [NEW], "edges": edges}
    assert client.post("/predict", {**body, "nodes": [shuffled]}).json() == client.post("/predict", body).json()


def test_new_nodes_see_each_other(client):
    both = [NEW, {**NEW, "id": "other", "x0": -3.0}]
    alone = client.post("/predict", {"nodes": both}).json()
    joined = client.post("/predict", {"nodes": both, "edges": [{"source": "new", "target": "other"}]}).json()
    assert joined["nodes"][0]["probabilities"] != alone["nodes"][0]["probabilities"]


def test_metrics_are_prometheus_text(client):
    client.post("/predict", {"nodes": [NEW]})
    client.get("/nodes/node-1")
    client.get("/nodes/no-such-node")
    client.get("/made/up")
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {one.name: one for one in text_string_to_metric_families(found.text)}
    counts = {(one.labels["route"], one.labels["status"]): one.value for one in families["gamlp_requests"].samples
              if one.name.endswith("_total")}  # fmt: skip
    assert counts["/nodes/{id:path}", "200"] == counts["/nodes/{id:path}", "404"] == counts["/predict", "200"] == 1
    assert counts["none", "404"] == 1  # what a client made up is no label
    assert families["gamlp_predicted_nodes"].samples[0].value == 1
    assert families["gamlp_graph_nodes"].samples[0].value == 90


def test_the_document_lists_every_route(client, service):
    from gamlp.serve.app import make_app

    routes = {route.path.replace(":path", "") for route in make_app(Standing(service)).routes} - {"/", "/api"}
    found = client.get("/openapi.json").json()
    assert set(found["paths"]) == routes
    assert found["openapi"].startswith("3.")
    for path in found["paths"]:
        assert path in client.get("/api").text


def test_the_document_is_valid_json_schema(client):
    """Its one schema says what is taken: checked by another library."""
    import jsonschema

    found = client.get("/openapi.json").json()
    content = found["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    jsonschema.Draft202012Validator.check_schema(content["schema"])
    jsonschema.validate(content["example"], content["schema"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"edges": []}, content["schema"])


def test_the_answers_are_those_of_predict_new(client, run, tmp_path):
    """The same tables, as files and as JSON, to the last bit."""
    random = np.random.default_rng(5)
    rows = [{"id": f"new-{at}", **{f"x{column}": float(random.normal()) for column in range(4)}} for at in range(7)]
    ids = [row["id"] for row in rows] + [f"node-{at}" for at in range(90)]
    edges = [{"source": f"new-{at % 7}", "target": ids[int(random.integers(97))]} for at in range(40)]
    for name, table in (("edges", edges), ("nodes", rows)):
        parquet.write_table(pa.Table.from_pylist(table), tmp_path / f"{name}.parquet")
    files = (tmp_path / "edges.parquet", tmp_path / "nodes.parquet")
    run_gamlp("predict", run.folder, "--new", *files, "--probabilities", "--out", tmp_path / "said.parquet")
    expected = parquet.read_table(tmp_path / "said.parquet").to_pylist()
    found = client.post("/predict", {"nodes": rows, "edges": edges}).json()["nodes"]
    assert [one["id"] for one in found] == [one["id"] for one in expected]
    assert [one["predicted"] for one in found] == [one["predicted"] for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one["probabilities"] == {name: other[f"probability_{name}"] for name in ("a", "b", "c")}


def test_errors_are_those_of_predict_new(client, run, tmp_path):
    """The same message, but for the name of the table."""
    for name, table in (("edges", [{"source": "a", "target": "zz"}]), ("nodes", [{**NEW, "id": "a"}])):
        parquet.write_table(pa.Table.from_pylist(table), tmp_path / f"{name}.parquet")
    files = (tmp_path / "edges.parquet", tmp_path / "nodes.parquet")
    code, told, _ = outcome("predict", run.folder, "--new", *files, "--json")
    found = client.post("/predict", {"nodes": [{**NEW, "id": "a"}], "edges": [{"source": "a", "target": "zz"}]}).json()
    assert code == 2
    assert found["error"] == json.loads(told)["error"]
    assert found["message"].replace("the edges", str(files[0])) == json.loads(told)["message"]
