"""Options of engines that do not go together are refused before anything is read."""

import pytest

from gamlp.cli.options import ComputeOptions
from gamlp.errors import SettingsError
from gamlp.propagate.engines.registry import EngineChoice


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "tape"}, "no engine 'tape'"),
        ({"engine": "local", "address": "head:6379"}, "--address head:6379 was given for the engine 'local'"),
        ({"address": "head:6379"}, "--address head:6379"),
        ({"memory": "much"}, "--memory much"),
        ({"memory": "-1GiB"}, "--memory -1GiB"),
        ({"device": "gpu"}, "no device 'gpu'"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(SettingsError, match=words):
        ComputeOptions(**options).choice()


@pytest.mark.parametrize(
    ("text", "size"), [("2GiB", 2 * 2**30), ("500MB", 500 * 10**6), ("2gb", 2 * 10**9), ("1024", 1024)]
)
def test_amounts_of_memory(text, size):
    assert ComputeOptions(memory=text).choice() == EngineChoice(memory=size)


def test_a_cache_is_found_again_from_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from pathlib import Path

    assert ComputeOptions(cache=Path("hops")).choice().cache == tmp_path / "hops"
