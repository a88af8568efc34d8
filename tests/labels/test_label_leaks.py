"""What is not an argument cannot leak: only the chooser takes validation labels, and nothing takes test labels."""

from __future__ import annotations

import inspect
import subprocess
import sys

import gamlp.labels


def test_no_function_takes_labels_of_nodes_it_must_not_see():
    takes = {}
    for name in gamlp.labels.__all__:
        words = inspect.signature(getattr(gamlp.labels, name)).parameters
        takes[name] = {word for word in words if "label" in word or "truth" in word or word == "graph"}
    assert takes.pop("choose_correct_and_smooth") == {"train_labels", "valid_labels"}
    assert {word for words in takes.values() for word in words} == {"train_labels"}


def test_every_public_name_is_found_whatever_was_imported_first():
    code = (
        "import gamlp.labels, importlib, pkgutil\n"
        "for module in pkgutil.iter_modules(gamlp.labels.__path__):\n"
        "    importlib.import_module(f'gamlp.labels.{module.name}')\n"
        "assert all(callable(getattr(gamlp.labels, name)) for name in gamlp.labels.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_losses_load_no_graph_and_label_sets_load_no_torch():
    code = (
        "import sys, gamlp.labels\n"
        "from gamlp.labels import initial_labels, reliable_set, enlarged_training_set\n"
        "assert 'torch' not in sys.modules and 'numba' not in sys.modules\n"
        "from gamlp.labels import distillation_loss, consistency_loss\n"
        "assert 'numba' not in sys.modules and 'gamlp.graph' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
