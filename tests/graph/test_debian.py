"""Facts of Debian 12 that anyone can look up, and the packing undone by hand."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from gamlp.graph.graph import Graph
from gamlp.graph.readers.debian import (
    describe,
    load_debian,
    popularity,
    read_parts,
    read_stored,
    split_by_popularity,
    unpack_rows,
)
from gamlp.graph.splits import Split

INDEX = """\
Package: b
Source: abc (1.0)
Maintainer: Ada L <ada@example.org>
Depends: a (>= 2), c:any | d, ghost, mailer
Pre-Depends: a
Enhances: c
Provides: virtual (= 1)
Description: Red red apple and one pear
Tag: role::program, works-with::{text,
 image}
Section: contrib/fruit

Package: a
Maintainer: Ada L <ada@other.example>
Suggests: virtual, a
Description: red Apple-tree
Section: trees

Package: c
Maintainer: Bob <bob@example.org>
Recommends: a [amd64] | b
Description: red apples, apple trees
Section: trees
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_debian()


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "make_debian.py"
    specification = importlib.util.spec_from_file_location("make_debian", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def position(graph: Graph, name: str) -> int:
    assert graph.names is not None
    return int(np.flatnonzero(graph.names == name)[0])


def neighbours(graph: Graph, name: str) -> set[str]:
    assert graph.names is not None
    node = position(graph, name)
    start, end = graph.adjacency.indptr[node : node + 2]
    return set(graph.names[graph.adjacency.indices[start:end]].tolist())


@pytest.mark.parametrize(
    ("name", "section"), [("bash", "shells"), ("git", "vcs"), ("libc6", "libs"), ("vim", "editors")]
)
def test_sections_are_the_archives(graph: Graph, name: str, section: str) -> None:
    assert graph.classes[graph.labels[position(graph, name)]] == section


def test_sizes_and_types(graph: Graph) -> None:
    assert graph.nodes == 63_436  # distinct names among the index's `Package:` lines, counted with sort -u
    assert len(graph.classes) == 58
    assert graph.features.shape == (63_436, 128)
    assert graph.features.dtype == np.float32
    assert graph.labels.dtype == np.int64


def test_edges_are_undirected_and_known(graph: Graph) -> None:
    assert {"libc6", "libtinfo6", "base-files", "debianutils", "bash-completion", "bash-doc"} <= neighbours(
        graph, "bash"
    )
    assert "bash" in neighbours(graph, "bash-doc")
    assert "bash" not in neighbours(graph, "bash")


def test_every_package_stands_in_one_set(graph: Graph) -> None:
    split = graph.split
    assert isinstance(split, Split)
    assert len(split.train) == 6_344  # 10 % of 63,436
    assert len(split.valid) == 1_903  # 3 %
    assert np.array_equal(np.sort(np.concatenate([split.train, split.valid, split.test])), np.arange(63_436))
    assert position(graph, "libc6") in split.train
    assert position(graph, "hello") in split.test  # two packages ask for it


def test_training_packages_are_asked_for_most(graph: Graph) -> None:
    asking: list[set[int]] = [set() for _ in range(graph.nodes)]
    for kind in ("depends", "recommends", "suggests"):
        for source, target in zip(*(ends.tolist() for ends in read_parts().relations[kind]), strict=True):
            asking[target].add(source)
    count = np.array([len(packages) for packages in asking])
    assert isinstance(graph.split, Split)
    assert count[graph.split.train].min() >= count[graph.split.valid].max()
    assert count[graph.split.valid].min() >= count[graph.split.test].max()


def test_who_asks_twice_counts_once() -> None:
    depends = (np.array([0, 2]), np.array([1, 1]))
    suggests = (np.array([0, 1]), np.array([1, 2]))
    assert popularity([depends, suggests], 3).tolist() == [0, 2, 1]


def test_equals_are_split_by_number() -> None:
    count = np.zeros(100, dtype=np.int64)
    count[[40, 90]] = 7
    split = split_by_popularity(count)
    assert split.train.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 40, 90]
    assert split.valid.tolist() == [8, 9, 10]
    assert len(split.test) == 87


def test_words_become_features(graph: Graph) -> None:
    package, word = unpack_rows(read_stored("debian.npz"), "word")
    assert (np.linalg.norm(graph.features, axis=1) <= 1 + 1e-5).all()  # a projection of rows of length 1
    assert not graph.features[np.setdiff1d(np.arange(graph.nodes), package)].any()
    _, spread = np.unique(word, return_counts=True)
    assert spread.min() == 3


def test_features_do_not_depend_on_the_number_of_threads(graph: Graph) -> None:
    with threadpool_limits(1):
        assert np.array_equal(describe(read_stored("debian.npz")), graph.features)


def test_tf_idf_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamlp.graph.readers.debian.DIMENSIONS", 2)  # as many as words: only a rotation remains
    stored = {
        "labels": np.zeros(3, dtype=np.uint8),
        "words": np.frombuffer(b"apple\nred", dtype=np.uint8),
        "word_lengths": np.array([2, 1, 0], dtype=np.uint8),
        "word_steps": np.array([0, 1, 1], dtype=np.uint8),  # package 0: apple, red; package 1: red
        "word_counts": np.array([1, 2, 1], dtype=np.uint8),
    }
    features = describe(stored)
    apple, red = math.log(4 / 2) + 1, 2 * (math.log(4 / 3) + 1)
    cosine = red / math.hypot(apple, red)
    np.testing.assert_allclose(features @ features.T, [[1, cosine, 0], [cosine, 1, 0], [0, 0, 0]], atol=1e-5)


def test_the_twin_knows_git() -> None:
    parts = read_parts()
    assert {relation: len(ends) for relation, ends in parts.relations.items()}.keys() == parts.ends.keys()
    git = int(np.flatnonzero(parts.names["package"] == "git")[0])

    def ends(relation: str) -> set[str]:
        source, target = parts.relations[relation]
        return set(parts.names[parts.ends[relation]][target[source == git]].tolist())

    assert ends("maintained_by") == {"Jonathan Nieder"}
    assert ends("built_from") == {"git"}
    assert "git-man" in ends("depends")
    assert "less" in ends("recommends")
    assert "gitk" in ends("suggests")
    assert "devel::rcs" in ends("has_tag")


def test_relations_stay_in_range() -> None:
    parts = read_parts()
    for relation, (source, target) in parts.relations.items():
        assert source.shape == target.shape
        assert 0 <= source.min() <= source.max() < len(parts.names["package"])
        assert 0 <= target.min() <= target.max() < len(parts.names[parts.ends[relation]])
    for one_each in ("maintained_by", "built_from"):
        assert np.array_equal(parts.relations[one_each][0], np.arange(len(parts.names["package"])))
    assert not any("@" in name for name in parts.names["maintainer"].tolist())


def test_an_index_by_hand(maker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "FEWEST_PACKAGES", 2)
    packages = maker.read_packages(INDEX)
    arrays = maker.make_graph(packages)  # a = 0, b = 1, c = 2
    assert arrays["classes"].tobytes() == b"fruit\ntrees"
    assert arrays["labels"].tolist() == [1, 0, 1]
    assert arrays["words"].tobytes() == b"apple\nred"
    assert arrays["word_counts"].tolist() == [1, 1, 1, 2, 1, 1]

    def edges(kind: str) -> list[tuple[int, int]]:
        return list(zip(*(ends.tolist() for ends in unpack_rows(arrays, kind)), strict=True))

    assert edges("word") == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert edges("depends") == [(1, 0), (1, 2)]
    assert edges("recommends") == [(2, 0), (2, 1)]
    assert edges("suggests") == [(0, 1), (1, 2)]  # `virtual` is b; nobody suggests itself
    twin = maker.make_twin(packages)
    assert twin["maintainers"].tobytes() == b"Ada L\nBob"
    assert twin["sources"].tobytes() == b"a\nabc\nc"
    assert twin["tags"].tobytes() == b"role::program\nworks-with::image\nworks-with::text"
    assert list(zip(*(ends.tolist() for ends in unpack_rows(twin, "has_tag")), strict=True)) == [(1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(("providers", "resolved"), [(5, 5), (6, 0)])
def test_a_virtual_package_has_up_to_five_providers(maker: ModuleType, providers: int, resolved: int) -> None:
    stanzas = [f"Package: p{number}\nProvides: mailer" for number in range(providers)]
    packages = maker.read_packages("\n\n".join([*stanzas, "Package: user\nDepends: mailer"]))
    assert len(maker.Targets(packages).of("user", packages["user"], ("Depends",))) == resolved


def test_the_same_index_gives_the_same_bytes(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker, "FEWEST_PACKAGES", 2)
    arrays = maker.make_graph(maker.read_packages(INDEX))
    maker.write_npz(tmp_path / "one.npz", arrays)
    monkeypatch.setattr("time.time", lambda: 2e9)
    maker.write_npz(tmp_path / "two.npz", arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as stored:
        assert stored["labels"].tolist() == [1, 0, 1]
