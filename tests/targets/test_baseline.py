"""The share of the largest class stands beside every score, and a word of warning where it is nearly all."""

import numpy as np
import pytest

from gamlp import GAMLPClassifier
from gamlp.explain.report import write_report
from gamlp.runs.comparison import compare, comparison_for
from gamlp.runs.comparison_table import markdown
from gamlp.runs.record import read_run
from gamlp.runs.run import train_run
from gamlp.runs.spec import RunSpec
from gamlp.settings import Settings
from gamlp.targets.registry import SINGLE

QUICK = {"epochs": 2, "hops": 1, "hidden": 4}


def test_the_share_by_hand():
    found = SINGLE.scores(np.full((4, 3), 1 / 3, np.float32), np.array([2, 2, 0, 2]))
    assert found["largest_class"] == 3 / 4


def test_it_stands_in_results_pages_and_comparisons(planted, tmp_path):
    share = np.bincount(planted.labels[planted.split.test]).max() / len(planted.split.test)
    words = f"largest class {100 * share:.1f} % on test"
    spec = comparison_for(planted, ["sgc", "gcn"], overrides={"epochs": 2, "sgc.hops": 1}, seeds=[0])
    result = compare(planted, spec, folder=tmp_path)
    assert [row["test_largest_class"] for row in result["rows"]] == [share, share]
    assert words in markdown(result)
    assert words in repr(read_run(tmp_path / "sgc"))
    from gamlp.explain.comparison import write_comparison

    assert words in write_comparison([tmp_path]).read_text()
    page = write_report(planted, tmp_path / "sgc").read_text()
    assert f"<dt>Test largest class</dt><dd>{100 * share:.2f} %</dd>" in page


def test_runs_that_did_not_keep_it_are_read(planted, tmp_path):
    from gamlp.storage.files import read_json, write_json

    train_run(planted, RunSpec.of(planted, "sgc", overrides={"epochs": 1, "hops": 1}, seeds=[0]), folder=tmp_path)
    record = read_json(tmp_path / "run.json")
    old = ("accuracy", "macro_f1", "log_loss")
    keep = lambda key: not key.startswith(("valid_", "test_")) or any(name in key for name in old)  # noqa: E731
    balanced = lambda key: "balanced" in key  # noqa: E731
    for one in (record["result"], *record["result"]["runs"]):
        for key in [key for key in one if key == "metric" or not keep(key) or balanced(key)]:
            del one[key]
    write_json(tmp_path / "run.json", record)
    assert "largest class" not in repr(read_run(tmp_path))
    assert "valid" in repr(read_run(tmp_path))


@pytest.mark.parametrize(
    ("counts", "metric", "warned"),
    [((95, 5), "default", True), ((90, 10), "default", False), ((95, 5), "roc_auc", False)],
)
def test_nearly_one_class_alone_is_a_word_of_warning(counts, metric, warned):
    labels = np.repeat([0, 1], counts)
    said = SINGLE.doubt(labels, ("ok", "fraud"), Settings(metric=metric))
    assert (said is not None) == warned
    if warned:
        assert said.startswith("95.0 % of the training labels are 'ok'")
        assert "--metric average_precision" in said
        assert len(said.splitlines()) == 1


def test_the_estimator_warns_too():
    features = np.random.default_rng(0).normal(size=(100, 2))
    labels = (np.arange(100) < 4).astype(int)
    with pytest.warns(UserWarning, match="% of the training labels are '0'"):
        GAMLPClassifier(epochs=1, hidden=4, valid_fraction=0).fit(features, labels)
