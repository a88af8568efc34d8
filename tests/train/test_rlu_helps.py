"""What reliable labels are for: few labels, faint features, classes that the edges tell."""

import numpy as np

from gamlp.methods import method_named
from gamlp.pipeline import Pipeline
from gamlp.runs.seed import train_seed
from gamlp.settings import settings_from

SETTINGS = {
    "hops": 3,
    "hop_layers": 0,
    "hidden": 32,
    "head_layers": 2,
    "residual": False,
    "batch_norm": False,
    "label_hops": 4,
    "label_layers": 1,
    "label_folds": 4,
    "learning_rate": 0.01,
    "weight_decay": 0.001,
    "patience": 40,
    "evaluate_every": 2,
    "threshold": 0.6,
    "temperature": 0.5,
    "reliable_from": "all",
    "gamma": 1.0,
    "feature_scaling": "standard",
}


def test_reliable_labels_beat_one_stage_by_more_than_the_spread(make_planted):
    graph = make_planted(nodes=1200, classes=4, features=16, degree=3, noise=4.0, labelled=4)
    found = {}
    for name, epochs in {"gamlp-recursive": [60], "gamlp-recursive+rlu": [60, 40]}.items():
        method = method_named(name)
        pipeline = Pipeline(method, settings_from({**SETTINGS, **method.fixed, "epochs": epochs}))
        results = [train_seed(pipeline, graph, seed=seed, folder=None) for seed in range(5)]
        found[name] = np.array([result["test_accuracy"] for result in results])
    one, many = found.values()
    assert many.mean() - one.mean() > max(one.std(ddof=1), many.std(ddof=1))
