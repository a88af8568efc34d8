"""What version 0.1.0 got wrong, a test each, by files, the command line and the estimator alone.

Nothing else of the package is imported, so the same file runs against 0.1.0, where all of them fail.
"""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

LINEAR = ("--set", "hops=2", "--set", "learning_rate=0.02")  # sgc has no more to set
QUICK = (*LINEAR, "--set", "hidden=8", "--set", "head_layers=2")
STAGED = (
    *QUICK,
    "--set",
    "label_layers=1",
    "--set",
    "label_folds=3",
    "--set",
    "epochs=[6,4]",
    "--set",
    "threshold=0.4",
)
NODES, CLASSES = 90, 3


def gamlp(*words):
    """Run the command line in this process: exit code, standard output, standard error."""
    from gamlp.cli import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0, out.getvalue(), err.getvalue()


def done(*words):
    code, out, err = gamlp(*words)
    assert code == 0, err
    return out


def refused(*words):
    code, out, err = gamlp(*words)
    assert code != 0, out
    assert "Traceback" not in err
    return " ".join(err.split())


class Tables:
    """A graph of three classes whose edges mostly stay inside a class, as two tables in a folder."""

    def __init__(self, folder):
        rng = np.random.default_rng(5)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.edges_file, self.nodes_file = folder, folder / "edges.csv", folder / "nodes.csv"
        self.classes = np.arange(NODES) % CLASSES
        self.ids = np.array([f"n{at}" for at in rng.permutation(NODES)])
        source = rng.integers(0, NODES, 260)
        target = (source + CLASSES * rng.integers(1, 30, 260) + (rng.random(260) < 0.25)) % NODES
        self.source, self.target = source, target
        features = np.eye(CLASSES, 4)[self.classes] + rng.normal(0, 1.2, (NODES, 4))
        split = np.repeat(["train", "valid", "test"], [30, 30, 30])[rng.permutation(NODES)]
        columns = {f"x{at}": features[:, at] for at in range(4)}
        names = np.array(["red", "green", "blue"])[self.classes]
        self.nodes = pa.table({"id": self.ids, "label": names, "split": split, **columns})
        csv.write_csv(pa.table({"source": self.ids[source], "target": self.ids[target]}), self.edges_file)
        self.write(self.nodes)

    def write(self, nodes, name="nodes.csv"):
        csv.write_csv(nodes, self.folder / name)
        return self.folder / name

    def with_column(self, name, values):
        at = self.nodes.column_names.index(name)
        return self.nodes.set_column(at, name, pa.array(values))

    @property
    def files(self):
        return self.edges_file, self.nodes_file


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path / "tables")


def train(tables, method, *words, out="run", quick=QUICK):
    run = tables.folder / out
    done("train", *tables.files, "--method", method, *quick, "--seeds", 1, *words, "--out", run)
    return run


def predicted(run, *words, out):
    done("predict", run, *words, "--out", out)
    table = parquet.read_table(out).to_pydict()
    return dict(zip(table["id"], zip(table["predicted"], table["confidence"], strict=True), strict=True))


def assert_stored(run, ids, found):
    """Assert that what was predicted is what the run keeps, to the bit."""
    stored = np.load(run / "seed-0" / "probabilities.npy").max(axis=1)  # of all nodes, in the order of the table
    np.testing.assert_array_equal([found[one][1] for one in ids], stored)


PEAK = """
import resource, sys
from gamlp.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def peak_of(*words):
    """Return the peak of a command in a process of its own, in MiB."""
    ran = subprocess.run([sys.executable, "-c", PEAK, *map(str, words)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stderr.split()[-1]) / 1024


def test_01_label_hops_keep_within_memory(tmp_path):
    """400,000 nodes × 200 classes are 305 MiB a state; one column of features is next to nothing."""
    rng = np.random.default_rng(0)
    nodes, classes = 400_000, 200
    np.save(tmp_path / "edges.npy", rng.integers(0, nodes, (200_000, 2)))
    labels = np.full(nodes, -1)
    labels[:2000] = np.arange(2000) % classes
    split = np.array([""] * nodes, dtype=object)
    split[:2000] = np.array(["train", "valid", "test"])[np.arange(2000) // classes % 3]
    known = pa.array(labels, mask=labels < 0)
    table = pa.table({"id": np.arange(nodes), "label": known, "split": pa.array(split), "x": rng.normal(size=nodes)})
    parquet.write_table(table, tmp_path / "nodes.parquet")
    small = ["hidden=8", "hops=1", "head_layers=1", "label_layers=1", "label_hops=4", "epochs=1", "rows=labelled"]
    words = ["train", tmp_path / "edges.npy", tmp_path / "nodes.parquet", "--method", "gamlp-jk", "--seeds", 1]
    words += [word for one in small for word in ("--set", one)]
    peaks = {}
    for labels_used in ("false", "true"):
        more = ("--set", f"labels={labels_used}", "--memory", "64MiB", "--out", tmp_path / labels_used)
        peaks[labels_used] = peak_of(*words, *more)
    assert peaks["true"] - peaks["false"] < 250  # MiB: less than one state


def test_02_edges_in_arrays_name_nodes_by_their_ids_within_memory_too(tables, tmp_path):
    numbers = np.random.default_rng(1).permutation(NODES) * 7 + 3
    nodes = tables.write(tables.nodes.set_column(0, "id", pa.array(numbers)))
    np.save(tmp_path / "edges.npy", np.stack([numbers[tables.source], numbers[tables.target]], axis=1))
    done("import", tmp_path / "edges.npy", nodes, "--out", tmp_path / "plain")
    done("import", tmp_path / "edges.npy", nodes, "--memory", "64MiB", "--out", tmp_path / "limited")
    for name in ("indptr.npy", "indices.npy"):
        (one,), (two,) = (tmp_path / "plain").rglob(name), (tmp_path / "limited").rglob(name)
        np.testing.assert_array_equal(np.load(one), np.load(two))


def test_03_the_estimator_smooths_where_its_name_says_so():
    from gamlp import GAMLPClassifier

    rng = np.random.default_rng(3)
    labels = np.arange(NODES) % CLASSES
    source = rng.integers(0, NODES, 300)
    adjacency = np.zeros((NODES, NODES))
    adjacency[source, (source + 3 * rng.integers(1, 30, 300)) % NODES] = 1
    features = np.eye(CLASSES)[labels] + rng.normal(0, 1.5, (NODES, CLASSES))
    known = np.where(rng.random(NODES) < 0.6, labels, -1)
    said = {}
    for name in ("sgc", "sgc+cs"):
        model = GAMLPClassifier(name, epochs=5, valid_fraction=0.3).fit(features, known, adjacency)
        said[name] = model.predict_proba(features, adjacency)
    assert np.abs(said["sgc"] - said["sgc+cs"]).max() > 1e-3


def test_04_resume_takes_everything_from_the_run_and_nothing_beside_it(tables):
    run = train(tables, "sign", "--memory", "64MiB", "--set", "epochs=3")
    for option in (("--seeds", 2), ("--device", "cpu"), ("--root", tables.folder)):
        assert option[0] in refused("train", "--resume", run, *option)
    done("report", run)
    page = (run / "report.html").read_text()
    assert re.search(r"gamlp train [^<]*--memory", page)


def test_05_a_folder_named_like_a_data_set_does_not_hide_it(tmp_path, monkeypatch):
    (tmp_path / "debian").mkdir()
    monkeypatch.chdir(tmp_path)
    done("propagate", "debian", "--set", "hops=0", "--set", "components=0", "--out", tmp_path / "hops")


def test_06_compare_and_tune_take_a_memory_limit(tables):
    shared = (*tables.files, *QUICK, "--set", "epochs=2", "--seeds", 1, "--memory", "64MiB")
    done("compare", *shared, "--methods", "sign", "--out", tables.folder / "all")
    done("tune", *shared, "--method", "sign", "--trials", 1, "--out", tables.folder / "found.toml")


def test_07_message_passing_gets_the_embeddings_that_are_asked_for(tables):
    csv.write_csv(pa.table({"who": np.arange(NODES) % 20, "what": tables.ids}), tables.folder / "wrote.csv")
    (tables.folder / "hetero.toml").write_text(
        'target = "paper"\n[nodes.paper]\nfile = "nodes.csv"\n[nodes.author]\ncount = 20\n'
        '[relations.cites]\nfile = "edges.csv"\nsource = "paper"\ntarget = "paper"\n'
        '[relations.wrote]\nfile = "wrote.csv"\nsource = "author"\ntarget = "paper"\ncolumns = ["who", "what"]\n'
    )
    shared = ("--method", "rgcn", "--seeds", 1, "--set", "hidden=8", "--set", "epochs=3", "--set")
    for kind, more in (("neighbours", ()), ("embeddings", ("--set", "embedding={dimension=8, steps=5}"))):
        done("train", tables.folder, *shared, f"featureless={kind}", *more, "--out", tables.folder / kind)
    said = [np.load(tables.folder / kind / "seed-0" / "probabilities.npy") for kind in ("neighbours", "embeddings")]
    assert np.abs(said[0] - said[1]).max() > 1e-4


def test_08_the_figure_of_hops_is_made_of_the_components_of_the_run(tables):
    said = {}
    for components in (0, 1):
        run = train(
            tables,
            "sgc",
            "--set",
            f"components={components}",
            "--set",
            "epochs=20",
            out=f"run-{components}",
            quick=LINEAR,
        )
        out = done("explain", run, "--hop-figure", "--runs", 3, "--json", "--out", tables.folder / f"f{components}")
        said[components] = json.dumps(json.loads(out)).replace(f"run-{components}", "").replace(f"f{components}", "")
    assert said[0] != said[1]


@pytest.mark.parametrize(
    ("command", "what"),
    [(command, what) for command in ("predict", "explain", "report", "train") for what in ("labels", "split", "ids")]
    + [("predict", "classes"), ("train", "classes")],
)
def test_09_a_graph_that_changed_is_refused_by_whatever_opens_the_run(tables, command, what):
    run = train(tables, "gamlp-jk", "--set", "epochs=3")
    labels, split = tables.nodes["label"].to_pylist(), tables.nodes["split"].to_pylist()
    at = split.index("train")
    if what == "labels":
        labels[at] = "red" if labels[at] != "red" else "blue"
    if what == "classes":
        labels[at] = "aaa"
    if what == "split":
        split[at] = "test"
    changed = tables.with_column("split", split)
    changed = changed.set_column(1, "label", pa.array(labels))
    if what == "ids":  # of the nodes and of the edges alike: the graph is the same but for the names
        renamed = np.array([f"m{one}" for one in tables.ids])
        changed = changed.set_column(0, "id", pa.array(renamed))
        ends = {"source": renamed[tables.source], "target": renamed[tables.target]}
        csv.write_csv(pa.table(ends), tables.edges_file)
    tables.write(changed)
    words = {
        "predict": ("predict", run, "--out", tables.folder / "p.csv"),
        "explain": ("explain", run, "--node", changed["id"][5]),
        "report": ("report", run),
        "train": ("train", "--resume", run),
    }[command]
    assert what in refused(*words)


def test_10_another_graph_is_corrected_and_smoothed_too(tables):
    run = train(tables, "sgc+cs", "--set", "epochs=10", quick=LINEAR)
    copied = tables.write(tables.nodes, "copied.csv")
    assert_stored(run, tables.ids, predicted(run, tables.edges_file, copied, out=tables.folder / "p.parquet"))


def test_11_columns_go_by_name(tables):
    run = train(tables, "sign", "--set", "epochs=10")
    said = []
    for name, order in (("one", [0, 1, 2, 3]), ("other", [2, 0, 3, 1])):
        nodes = tables.write(tables.nodes.select(["id", *(f"x{at}" for at in order)]), f"{name}.csv")
        said.append(predicted(run, tables.edges_file, nodes, out=tables.folder / f"{name}.parquet"))
    assert said[0] == said[1]


def test_12_a_setting_against_the_name_is_refused(tables):
    message = refused(
        "train", *tables.files, "--method", "sgc+cs", "--set", "correct_and_smooth=false", "--out", tables.folder / "r"
    )
    assert "correct_and_smooth" in message


@pytest.mark.parametrize("method", ["gamlp-jk+rlu", "sagn+sle"])
def test_13_the_training_graph_given_again_is_predicted_as_it_was(tables, method):
    run = train(tables, method, quick=STAGED)
    copied = tables.write(tables.nodes, "copied.csv")
    assert_stored(run, tables.ids, predicted(run, tables.edges_file, copied, out=tables.folder / "p.parquet"))


def test_14_a_run_remembers_that_edges_are_directed(tables):
    run = train(tables, "sign", "--set", "epochs=10", "--directed")
    copied = tables.write(tables.nodes, "copied.csv")
    assert_stored(run, tables.ids, predicted(run, tables.edges_file, copied, out=tables.folder / "p.parquet"))


def test_15_labels_are_what_is_written(tables):
    names = np.array(["01", "1", "0x2"])[tables.classes]
    lines = [",".join(tables.nodes.column_names)]
    for row, name in zip(tables.nodes.to_pylist(), names, strict=True):
        lines.append(",".join(map(str, {**row, "label": name}.values())))
    tables.nodes_file.write_text("\n".join(lines) + "\n")
    run = train(tables, "sgc", "--set", "epochs=30", quick=LINEAR)
    found = {name for name, _ in predicted(run, out=tables.folder / "p.parquet").values()}
    assert found == {"01", "1", "0x2"}


def test_16_a_stopped_import_notices_that_features_were_replaced(tmp_path, monkeypatch):
    root = tmp_path / "ogbn_arxiv"
    rng = np.random.default_rng(2)
    lines = {
        "raw/edge": rng.integers(0, 60, (200, 2)), "raw/node-label": np.arange(60)[:, None] % 40,
        "raw/num-node-list": np.array([[60]]), "raw/num-edge-list": np.array([[200]]),
        "split/time/train": np.arange(40)[:, None], "split/time/valid": np.arange(40, 50)[:, None],
        "split/time/test": np.arange(50, 60)[:, None],
    }  # fmt: skip

    def put(name, rows):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(root / f"{name}.csv.gz", "wt") as file:
            file.writelines(",".join(map(str, row)) + "\n" for row in rows)

    for name, rows in lines.items():
        put(name, rows)
    old, new = (rng.integers(0, 9, (60, 128)) for _ in range(2))
    words = ("import", "ogbn-arxiv", "--root", tmp_path, "--memory", "64MiB", "--out")
    put("raw/node-feat", new)
    done(*words, tmp_path / "clean")
    wanted = np.load(next((tmp_path / "clean").rglob("features.npy")))
    for stop_at in range(1, 40):
        put("raw/node-feat", old)
        out = tmp_path / f"stopped-{stop_at}"
        with monkeypatch.context() as patch:
            stopped = stop_after(patch, stop_at)
            gamlp(*words, out)
        if not stopped:
            break
        put("raw/node-feat", new)
        code, _, err = gamlp(*words, out)
        if code:  # it may ask to begin anew, and then it does
            shutil.rmtree(out)
            done(*words, out)
        np.testing.assert_array_equal(np.load(next(out.rglob("features.npy"))), wanted, err)
    assert stop_at > 3


def stop_after(patch, times):
    """Stop the process like Ctrl-C at the so-manieth renamed file; the list that is returned says whether it did."""
    stopped, count, rename = [], [0], os.replace

    def replace(*words, **more):
        count[0] += 1
        if count[0] == times:
            stopped.append(words)
            raise KeyboardInterrupt
        return rename(*words, **more)

    patch.setattr(os, "replace", replace)
    patch.setattr(os, "rename", replace)
    return stopped


def test_17_a_search_that_was_killed_while_it_began_goes_on(tables, monkeypatch):
    import optuna

    out = tables.folder / "found.toml"
    words = ("tune", *tables.files, "--method", "sgc", "--set", "epochs=2", "--seeds", 1, "--trials", 1, "--out", out)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(optuna.Study, "set_user_attr", stop)
        gamlp(*words)
    done(*words)
    assert out.exists()


def test_18_a_comparison_keeps_its_rows_when_a_method_is_added(tables):
    shared = (*tables.files, "--seeds", 1, "--out", tables.folder / "all", "--json")
    done("compare", *shared, "--methods", "sgc")
    rows = json.loads(done("compare", *shared, "--methods", "mlp"))["rows"]
    assert {row["method"] for row in rows} == {"sgc", "mlp"}


def test_19_what_needs_no_classes_asks_for_none(tables):
    run = train(tables, "sign", "--set", "epochs=3")
    one = tables.write(tables.with_column("label", ["red"] * NODES), "one.csv")
    done("predict", run, tables.edges_file, one, "--out", tables.folder / "p.csv")
    done("propagate", tables.edges_file, one, "--out", tables.folder / "hops")
    unlabelled = tables.write(tables.nodes.drop_columns(["label"]), "unlabelled.csv")
    done("predict", run, tables.edges_file, unlabelled, "--out", tables.folder / "q.csv")


def test_20_predict_takes_a_memory_limit(tables):
    run = train(tables, "sign", "--set", "epochs=3")
    copied = tables.write(tables.nodes, "copied.csv")
    words = (tables.edges_file, copied, "--memory", "64MiB")
    assert_stored(run, tables.ids, predicted(run, *words, out=tables.folder / "p.parquet"))


def test_21_ids_in_a_column_of_another_name_are_no_feature(tables):
    numbers = np.random.default_rng(1).permutation(NODES)  # row numbers too, but of other rows
    csv.write_csv(
        pa.table({"source": numbers[tables.source], "target": numbers[tables.target]}), tables.folder / "e.csv"
    )
    nodes = tables.nodes.drop_columns(["id"]).add_column(0, "node_id", pa.array(numbers))
    run = tables.folder / "run"
    words = (tables.folder / "e.csv", tables.write(nodes, "n.csv"), "--method", "sgc", "--seeds", 1, "--out", run)
    code, _, err = gamlp("train", *words, *LINEAR, "--set", "epochs=20")
    assert code == 0, err
    assert "id = node_id, label = label, split = split, features = x0, …, x3 (4 × number)." in " ".join(err.split())
    plain = train(tables, "sgc", "--set", "epochs=20", out="plain", quick=LINEAR)
    np.testing.assert_array_equal(*(np.load(one / "seed-0" / "probabilities.npy") for one in (run, plain)))


def test_22_a_run_remembers_what_it_ignored(tables):
    nodes = tables.nodes.append_column("account_id", pa.array(np.arange(NODES) * 13))
    doubled = tables.write(nodes, "doubled.csv")
    words = (tables.edges_file, doubled, "--method", "sgc", "--seeds", 1, *LINEAR, "--set", "epochs=5")
    assert "'account_id'" in gamlp("propagate", tables.edges_file, doubled, "--out", tables.folder / "hops")[2]
    run = tables.folder / "run"
    done("train", *words, "--ignore", "account_id", "--out", run)
    for other in (tables.write(nodes, "again.csv"), tables.write(tables.nodes, "without.csv")):
        assert_stored(run, tables.ids, predicted(run, tables.edges_file, other, out=tables.folder / "p.parquet"))
    done("report", run)
    assert re.search(r"gamlp train [^<]*--ignore account_id", (run / "report.html").read_text())
