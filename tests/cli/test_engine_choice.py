"""Options of engines that do not go together are refused before anything is read."""

import importlib.util

import pytest

from gamlp.cli.engines import Choice, chosen
from gamlp.errors import MissingExtraError, SettingsError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("tape", None, None, "cpu"), "no engine 'tape'"),
        (("memory", "1GiB", None, "cpu"), "--memory was given for the engine in memory"),
        (("disk", None, "head:6379", "cpu"), "--address head:6379 was given for the engine 'disk'"),
        ((None, None, "head:6379", "cpu"), "--address head:6379"),
        (("ray", None, None, "cuda"), "'ray' was asked to use 'cuda'"),
        ((None, "much", None, "cpu"), "--memory much"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(SettingsError, match=words):
        chosen(*options)


def test_memory_chooses_the_disk():
    assert chosen(None, None, None, "cpu") == Choice(None, None)
    assert chosen(None, "2GiB", None, "cpu") == Choice(2 * 2**30, None)
    assert chosen("disk", None, None, "cpu").memory == 4 * 2**30


def test_ray_that_is_not_installed_is_said_at_once(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gamlp\[ray\]'"):
        chosen("ray", None, None, "cpu")
