"""What can be set, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gamlp.errors import MissingExtraError, SettingsError
from gamlp.methods import BASES, method_named


def options_for(name, options):
    return method_named(name).settings_from(options)


class TestOptions:
    def test_a_method_starts_from_its_own_defaults(self):
        gat = options_for("gat", {"dropout": 0.3})
        assert (gat.heads, gat.hidden, gat.learning_rate, gat.dropout) == (8, 8, 0.005, 0.3)  # published: 8 heads of 8
        assert options_for("appnp", {}).teleport == 0.1

    def test_all_defaults_are_valid(self):
        for name, base in BASES.items():
            if base.network:
                options_for(name, {})

    def test_options_are_frozen(self):
        with pytest.raises(ValueError, match="frozen"):
            options_for("gcn", {}).hidden = 3

    def test_a_misspelt_key_is_named_with_the_right_one(self):
        with pytest.raises(SettingsError, match=r"gcn has no setting 'droput'\.\nDid you mean 'dropout'\?"):
            options_for("gcn", {"droput": 0.5})

    def test_a_setting_of_another_method_is_refused(self):
        with pytest.raises(SettingsError, match="gcn has no setting 'heads'"):
            options_for("gcn", {"heads": 8})

    @pytest.mark.parametrize(
        ("key", "value"),
        [("hidden", 0), ("dropout", 1.0), ("learning_rate", 0), ("weight_decay", float("nan")), ("epochs", 1.5)],
    )
    def test_an_impossible_value_is_named_with_the_default(self, key, value):
        with pytest.raises(SettingsError, match=rf"Setting {key} = .* of gcn: .*\nIts default is"):
            options_for("gcn", {key: value})

    def test_an_unknown_method(self):
        with pytest.raises(SettingsError, match="Did you mean 'graphsage'"):
            options_for("graphsagee", {})


def test_the_names_come_without_torch_or_pyg():
    code = (
        "import sys; from gamlp.methods import BASES, method_named; [method_named(name) for name in BASES]; "
        "sys.exit(any(each in sys.modules for each in ('torch', 'torch_geometric', 'scipy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_pyg_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "gamlp.message_passing.pyg", raising=False)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gamlp\[pyg\]'"):
        __import__("gamlp.message_passing.pyg")
