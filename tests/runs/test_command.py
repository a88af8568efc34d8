"""The command that is printed is the command that was given: quoted, absolute, with every option."""

import shlex

import pytest

from gamlp.cli.options import overrides
from gamlp.graph.readers.source import GraphSource
from gamlp.propagate.engines.registry import EngineChoice
from gamlp.runs.comparison import ComparisonSpec
from gamlp.runs.spec import RunSpec, command_of, parse_value, written_value
from gamlp.runs.study import SearchSpec

FILES = GraphSource(what=("/d/a b.csv",), columns={"label": "topic"}, directed=True)
SPEC = RunSpec(
    source=FILES, method="gamlp-jk+rlu", recipe="default", settings={}, seeds=[2, 3], fingerprints={},
    overrides={"hops": 3, "labels": False, "epochs": [5, 6], "combiner": "jk"},
)  # fmt: skip


def test_the_command_of_a_run():
    assert command_of(SPEC) == (
        "gamlp train '/d/a b.csv' --column label=topic --directed --method gamlp-jk+rlu --recipe default --seeds 2 "
        "--seed 2 --set hops=3 --set labels=false --set 'epochs=[5, 6]' --set combiner=jk"
    )
    assert command_of(SPEC.model_copy(update={"source": None})) == ""


def test_the_command_says_where_it_was_computed():
    engine = EngineChoice(name="ray", memory=2**30, address="head:6379", cache="/c d")
    words = shlex.split(command_of(SPEC.model_copy(update={"engine": engine})))
    assert words[-8:] == ["--engine", "ray", "--memory", str(2**30), "--address", "head:6379", "--cache", "/c d"]
    card = SPEC.model_copy(update={"engine": EngineChoice(name="cuda"), "device": "cuda"})
    assert command_of(card).endswith("--set combiner=jk --device cuda")  # cuda is what such a device takes


def test_the_command_of_a_comparison_and_of_a_search():
    shared = {**dict(SPEC), "overrides": {"sgc.hops": 3}}
    spec = ComparisonSpec(**{**shared, "methods": ["sgc", "gamlp-jk+rlu"], "settings": {}})
    assert " --methods sgc,gamlp-jk+rlu --recipe default " in command_of(spec)
    assert command_of(spec).endswith("--set sgc.hops=3")
    search = SearchSpec(**dict(SPEC), trials=7, out="/o/mine.toml")
    assert command_of(search).startswith("gamlp tune '/d/a b.csv'")
    assert " --trials 7 --out /o/mine.toml " in command_of(search)


@pytest.mark.parametrize(
    "value",
    [3, 0.1, 1e-05, True, "jk", "3", "true", " a ", "it's", 'say "x"', "a=b", [1, 2], ["x", "y"], [["cites"], ["a b"]],
     {"dimension": 16, "rate": 0.5, "name": "x y", "deep": {"list": [1]}}, {}, []],
)  # fmt: skip
def test_every_value_comes_back(value):
    words = shlex.split(command_of(SPEC.model_copy(update={"overrides": {"embedding": value}})))
    assert overrides([words[-1]]) == {"embedding": value}
    assert parse_value(written_value(value), "") == value
