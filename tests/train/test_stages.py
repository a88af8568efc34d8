"""Honesty and repeatability of training: no leak, same seed same bits, killed and resumed to the same bits."""

import json

import numpy as np
import pytest

from gamlp.errors import FormatError, NotFiniteError
from gamlp.graph.splits import Split
from gamlp.propagate.engines.local import LocalEngine
from gamlp.settings import Settings
from gamlp.train import stage as stage_module
from gamlp.train import stages as stages_module
from gamlp.train.checkpoint import read_stage
from gamlp.train.hop_source import propagation_of
from gamlp.train.stages import StageTask, fit_stages, known_labels

SMALL = Settings(
    hops=2, hidden=16, head_layers=2, jk_layers=2, label_layers=2, hop_layers=1, epochs=(12, 8), batch_size=20,
    threshold=0.5, learning_rate=0.01,
)  # fmt: skip


def task_of(graph, settings=SMALL, seed=0):
    engine = LocalEngine()
    hops = engine.propagate(graph.adjacency, graph.features, propagation_of(settings, None))
    return StageTask(graph.adjacency, hops, len(graph.classes), settings, engine, seed)


def run(graph, settings=SMALL, seed=0, folder=None, split=None):
    task = task_of(graph, settings, seed)
    return fit_stages(task, known_labels(graph, split or graph.split, task.rows, settings), folder=folder)


def shuffled(graph, ids, seed=1):
    labels = graph.labels.copy()
    labels[ids] = np.random.default_rng(seed).permutation(labels[ids])
    return graph.with_labels(labels)


@pytest.mark.parametrize("combiner", ["smoothing", "recursive", "jk", "gate", "concat"])
def test_it_learns(planted, combiner):
    trained = run(planted, SMALL.model_copy(update={"combiner": combiner, "epochs": (40,)}))
    test = planted.split.test
    assert (trained.logits[test].argmax(axis=1) == planted.labels[test]).mean() > 0.7  # chance is 1/3
    np.testing.assert_allclose(trained.weights.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"consistency": 1.0},
        {"pseudo_labels": "train"},
        {"reliable_from": "all"},
        {"label_folds": 3},
        {"label_weights": "residual"},
        {"reliable_propagation": False},
        {"combined_dropout": 0.5},
        {"threshold": 0},
    ],
)
def test_hidden_labels_do_not_leak(planted, change):
    settings = SMALL.model_copy(update=change)
    honest, other = run(planted, settings), run(shuffled(planted, planted.split.test), settings)
    np.testing.assert_array_equal(honest.logits, other.logits)
    assert honest.history == other.history


def test_validation_labels_only_choose_the_epoch(planted):
    settings = SMALL.model_copy(update={"epochs": (12,), "patience": 100})
    honest, other = run(planted, settings), run(shuffled(planted, planted.split.valid), settings)
    assert [entry["loss"] for entry in honest.history] == [entry["loss"] for entry in other.history]
    assert honest.stages[0]["best_epoch"] != other.stages[0]["best_epoch"]  # the labels did change something


def test_training_labels_do_change_the_result(planted):  # the two tests above can fail
    assert not np.array_equal(run(planted).logits, run(shuffled(planted, planted.split.train)).logits)


def test_same_seed_same_bits_other_seed_other_bits(planted):
    first, again, other = run(planted), run(planted), run(planted, seed=1)
    np.testing.assert_array_equal(first.logits, again.logits)
    assert not np.array_equal(first.logits, other.logits)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("after", [3, 15])  # inside the first stage, and inside the second
@pytest.mark.parametrize("change", [{}, {"consistency": 1.0, "label_folds": 2}])
def test_a_killed_run_resumes_to_the_same_bits(planted, tmp_path, monkeypatch, after, change):
    settings = SMALL.model_copy(update=change)
    whole = run(planted, settings)
    monkeypatch.setattr("gamlp.train.checkpoint.Checkpoint.due", lambda self: self.path is not None)
    epochs = []
    real = stage_module.run_epoch

    def killing(*arguments, **named):
        if len(epochs) == after:
            raise Killed
        epochs.append(1)
        return real(*arguments, **named)

    monkeypatch.setattr(stage_module, "run_epoch", killing)
    with pytest.raises(Killed):
        run(planted, settings, folder=tmp_path)
    monkeypatch.setattr(stage_module, "run_epoch", real)
    resumed = run(planted, settings, folder=tmp_path)
    np.testing.assert_array_equal(resumed.logits, whole.logits)
    assert resumed.history == whole.history
    assert resumed.stages == whole.stages


def test_the_next_stage_learns_from_reliable_nodes_only(planted, caplog):
    caplog.set_level("WARNING", "gamlp")
    strict = run(planted, SMALL.model_copy(update={"threshold": 1.0}))
    assert "Stage 2 learned nothing from the one before" in caplog.text
    loose = run(planted, SMALL.model_copy(update={"threshold": 0.0}))
    assert [stage["reliable"] for stage in strict.stages] == [0, 0]  # an empty reliable set is no obstacle
    assert [stage["reliable"] for stage in loose.stages] == [0, len(planted.split.valid) + len(planted.split.test)]

    sure = run(planted, SMALL.model_copy(update={"threshold": 0.0, "pseudo_labels": "train"}))
    assert sure.stages[1]["reliable"] == loose.stages[1]["reliable"]


def test_consistency_that_has_no_node_to_act_on_is_said(planted, caplog):
    caplog.set_level("WARNING", "gamlp")
    none = np.zeros(0, np.int64)
    run(
        planted,
        SMALL.model_copy(update={"consistency": 1.0, "epochs": (1,)}),
        split=Split(planted.split.train, none, none),
    )
    assert "consistency loss has no effect: every node trains" in caplog.text


def test_without_validation_nodes_the_last_weights_are_kept(planted):
    split = planted.split
    trained = run(planted, split=Split(split.train, np.zeros(0, np.int64), split.test))
    assert trained.stages[0]["best_epoch"] == 12


def test_patience_ends_a_stage_early(planted):
    trained = run(planted, SMALL.model_copy(update={"epochs": (200,), "patience": 5}))
    stage = trained.stages[0]
    assert stage["epochs"] == stage["best_epoch"] + 5 < 200


def test_a_loss_that_is_no_number_ends_with_advice(planted):
    with pytest.raises(NotFiniteError, match="Lower learning_rate"):
        run(planted, SMALL.model_copy(update={"learning_rate": 1e30, "batch_norm": False}))


def test_the_stage_that_is_kept_is_the_last_or_the_best_on_validation(planted):
    split = planted.split
    scores, found = {}, {}
    for kept in ("last", "best"):
        settings = SMALL.model_copy(update={"epochs": (12, 1, 2), "keep_stage": kept})  # the second stage hardly learns
        trained = run(planted, settings)
        scores[kept] = [stage["valid_accuracy"] for stage in trained.stages]
        found[kept] = (trained.logits[split.valid].argmax(axis=1) == planted.labels[split.valid]).mean()
    assert scores["best"] == scores["last"][:2]  # nothing learns from a stage that is worse than the one before
    assert scores["best"][0] > scores["best"][1]
    assert found == {"last": pytest.approx(scores["last"][2]), "best": pytest.approx(scores["best"][0])}


@pytest.mark.parametrize("valid", [True, False])
@pytest.mark.parametrize("kept", ["last", "best"])
def test_a_stage_that_is_cut_short_is_kept_only_if_it_is_better(planted, monkeypatch, kept, valid):
    """The time is over when the second of three stages begins: it ends after its first epoch."""
    train, some, rest = planted.split.sets.values()
    split, clock = Split(train, some if valid else some[:0], rest), {"now": 0.0}
    settings = SMALL.model_copy(update={"epochs": (12, 8, 8), "keep_stage": kept})
    whole = run(planted, settings.model_copy(update={"epochs": (12,)}), split=split)
    task, plain = task_of(planted, settings), stages_module.stage_data

    def second(*asked):
        clock["now"] = 0.0 if asked[2] is None else 10.0
        return plain(*asked)

    monkeypatch.setattr("time.monotonic", lambda: clock["now"])
    monkeypatch.setattr(stages_module, "stage_data", second)
    trained = fit_stages(task, known_labels(planted, split, task.rows, settings)._replace(ends=5.0))
    assert [stage["epochs"] for stage in trained.stages] == [12, 1]
    np.testing.assert_array_equal(trained.logits, whole.logits)


def test_a_stage_whose_checksums_are_no_table_is_refused(tmp_path):
    facts = {"of": "key", "files": 3, "epoch": 1, "best_epoch": 1, "best_score": [0.5, -1.0], "history": []}
    (tmp_path / "stage-1.json").write_text(json.dumps(facts))
    with pytest.raises(FormatError, match="files"):
        read_stage(tmp_path / "stage-1", "key")


def test_without_reliable_propagation_predictions_are_taught_and_no_input(planted):
    """With γ = 0 as well, the second stage is a stage that has learned nothing of the first."""
    fresh = SMALL.model_copy(update={"reliable_propagation": False, "gamma": 0.0})
    both, neither = run(planted), run(planted, fresh)
    assert both.stages[1]["reliable"] == neither.stages[1]["reliable"] > 0
    assert not np.array_equal(both.logits, neither.logits)
    taught = run(planted, fresh.model_copy(update={"gamma": 1.0}))
    fed = run(planted, fresh.model_copy(update={"reliable_propagation": True}))
    assert len({logits.tobytes() for logits in (both.logits, neither.logits, taught.logits, fed.logits)}) == 4
