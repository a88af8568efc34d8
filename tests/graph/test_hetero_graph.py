"""Heterogeneous graphs: what they are, by hand, and what they refuse."""

import numpy as np
import pytest

from gamlp.errors import IdError, InputError, NotFiniteError, SettingsError, ShapeError, SplitError
from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero, projected
from gamlp.graph.graph import check_trainable
from gamlp.graph.hetero import from_neighbours
from gamlp.graph.splits import Split

SPLIT = Split(np.array([0, 1]), np.array([2]), np.array([], np.int64))


def types(**changed):
    """Three papers with features, two authors and one field without."""
    papers = TypeParts(3, np.array([[1.0, 0], [3, 2], [5, 4]]), ["a", "b", "a"], split=SPLIT)
    return {"author": TypeParts(2), "paper": papers, "field": TypeParts(1)} | changed


def relations(**changed):
    """Author 0 wrote papers 0 and 1, author 1 paper 1; paper 0 cites 2 and 2 cites 0; paper 2 has the field."""
    return {
        "writes": RelationParts("author", "paper", np.array([0, 0, 1]), np.array([0, 1, 1])),
        "cites": RelationParts("paper", "paper", np.array([0, 2]), np.array([2, 0])),
        "about": RelationParts("paper", "field", np.array([2]), np.array([0])),
    } | changed


@pytest.fixture
def graph():
    return assemble_hetero(types(), relations(), target="paper", name="tiny")


def dense(adjacency):
    matrix = np.zeros((adjacency.nodes, adjacency.nodes))
    rows = np.repeat(np.arange(adjacency.nodes), np.diff(adjacency.indptr))
    matrix[rows, adjacency.indices] = 1 if adjacency.weights is None else adjacency.weights
    return matrix


def test_the_target_comes_first_and_the_rest_follows(graph):
    assert [(kind.name, kind.start, kind.stop) for kind in graph.types] == [
        ("paper", 0, 3),
        ("author", 3, 5),
        ("field", 5, 6),
    ]
    assert graph.labels.tolist() == [0, 1, 0, -1, -1, -1]
    assert graph.classes == ("a", "b")
    assert graph.features.tolist() == [[1, 0], [3, 2], [5, 4], [0, 0], [0, 0], [0, 0]]
    edges = {(0, 3), (1, 3), (1, 4), (0, 2), (2, 5)}
    expected = np.zeros((6, 6))
    for first, second in edges:
        expected[first, second] = expected[second, first] = 1
    assert (dense(graph.adjacency) == expected).all()


def test_entries_count_relations_and_not_repeated_edges():
    again = RelationParts("paper", "paper", np.array([2, 2, 1]), np.array([0, 0, 0]))
    graph = assemble_hetero(types(), relations(extends=again), target="paper")
    both = dense(graph.joined(["cites", "extends"]))
    assert both[0, 2] == both[2, 0] == 2  # cited and extended
    assert both[0, 1] == both[1, 0] == 1
    assert both.sum() == 6
    assert (dense(graph.joined(["cites"])) > 0).sum() == 2


def test_the_fingerprint_knows_the_relations(graph):
    names = {"wrote" if name == "writes" else name: part for name, part in relations().items()}
    other = assemble_hetero(types(), names, target="paper")
    assert (dense(other.adjacency) == dense(graph.adjacency)).all()
    assert other.fingerprint != graph.fingerprint


def test_types_without_features_take_their_neighbours_mean(graph):
    filled = from_neighbours(graph)
    assert filled[:3].tolist() == graph.features[:3].tolist()
    assert filled[3:].tolist() == [
        [2, 1],
        [3, 2],
        [5, 4],
    ]  # author 0: papers 0 and 1; author 1: paper 1; field: paper 2


def test_a_type_two_steps_away_is_filled_from_the_type_between(graph):
    chain = relations(at=RelationParts("author", "place", np.array([0, 1]), np.array([0, 0])))
    far = assemble_hetero(types(place=TypeParts(2)), chain, target="paper")
    filled = from_neighbours(far)
    assert filled[-2].tolist() == [2.5, 1.5]  # the mean of authors 0 and 1, themselves means of papers
    assert filled[-1].tolist() == [0, 0]  # a place where nobody works
    assert filled[3].tolist() == [2, 1]  # authors do not read back from places


def test_features_of_different_widths_are_projected_and_it_says_so():
    paper = TypeParts(3, np.ones((3, 2)), [0, 1, 0], split=SPLIT)
    author = TypeParts(2, np.arange(10.0).reshape(2, 5))
    graph = assemble_hetero(types(paper=paper, author=author), relations(), target="paper")
    assert graph.features.shape == (6, 5)
    assert graph.features[3:5].tolist() == np.arange(10.0).reshape(2, 5).tolist()
    assert graph.notes == ("The 2 features of 'paper' were projected at random to 5, the widest.",)
    again = assemble_hetero(types(paper=paper, author=author), relations(), target="paper")
    assert (again.features == graph.features).all()


def test_a_projection_nearly_keeps_lengths_and_angles():
    values = np.random.default_rng(0).standard_normal((20, 64)).astype(np.float32)
    moved = projected(values, 4096, key="paper")
    assert np.abs(moved @ moved.T - values @ values.T).max() < 0.15 * 64  # deviations of about 64 / sqrt(4096 / 2)
    assert (projected(values, 16, key="paper") == projected(values, 16, key="paper")).all()
    assert (projected(values, 16, key="paper") != projected(values, 16, key="author")).all()


def ends(source, target, heads, tails=None):
    return RelationParts(source, target, np.array(heads), np.array(heads if tails is None else tails))


DOUBLED = Split(*[np.array([0])] * 3)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"relations": {"writes": ends("autor", "paper", [0])}}, InputError, "no type 'autor'"),
        ({"relations": {"about": ends("paper", "field", [1])}}, IdError, "names field 1, there are 1"),
        ({"relations": {"cites": ends("paper", "paper", [-1])}}, IdError, "names paper -1"),
        ({"relations": {"cites": ends("paper", "paper", [0, 1], [1])}}, ShapeError, "2 sources"),
        ({"relations": {"cites": ends("paper", "paper", [0.5])}}, InputError, "float64"),
        ({"target": "papers"}, InputError, "Did you mean 'paper'"),
        ({"types": {"paper": TypeParts(3, np.ones((3, 1)), [0, 1])}}, ShapeError, "2 labels for 3 nodes of 'paper'"),
        ({"types": {"author": TypeParts(2, np.ones((3, 1)))}}, ShapeError, "Features of 'author'"),
        ({"types": {"author": TypeParts(2, np.array([[1.0], [np.nan]]))}}, NotFiniteError, "node 1 is nan"),
        ({"types": {"paper": TypeParts(3, np.ones((3, 1)), [0, 1, 0], split=DOUBLED)}}, SplitError, "more than one"),
    ],
)
def test_bad_input_is_refused_with_its_reason(changes, error, words):
    kinds, edges = types(**changes.get("types", {})), relations(**changes.get("relations", {}))
    with pytest.raises(error, match=words):
        assemble_hetero(kinds, edges, target=changes.get("target", "paper"))


def test_without_labels_it_can_be_read_but_not_trained_on():
    unlabelled = TypeParts(3, np.ones((3, 1)), [-1, -1, -1])
    for graph in (
        assemble_hetero(types(), relations(), target="author"),
        assemble_hetero(types(paper=unlabelled), relations(), target="paper"),
    ):
        assert graph.nodes == 6
        with pytest.raises(SplitError, match="No node of the target type has a label"):
            check_trainable(graph)


def test_targets_are_the_nodes_of_the_target_type(graph):
    assert graph.targets.tolist() == [0, 1, 2]


def test_the_adjacency_fingerprint_covers_relations_and_types(graph):
    turned = relations(cites=ends("paper", "paper", [2, 0], [0, 2]))  # the same undirected adjacency
    other = assemble_hetero(types(), turned, target="paper", name="tiny")
    assert other.adjacency.fingerprint == graph.adjacency.fingerprint
    assert differing(graph, other) == ["adjacency"]
    assert differing(graph, assemble_hetero(types(), relations(), target="paper", name="another")) == []


def test_columns_of_each_type_are_known_by_their_names():
    papers = TypeParts(3, np.array([[1.0, 0], [3, 2], [5, 4]]), ["a", "b", "a"], feature_names=("p", "q"))
    authors = TypeParts(2, np.array([[1.0], [2.0]]), feature_names=("age",))
    graph = assemble_hetero(types(paper=papers, author=authors), relations(), target="paper")
    assert graph.feature_names == ("paper.p", "paper.q", "author.age")
    other = graph.with_columns(("paper.q", "paper.p", "author.age"))
    assert other.features[:3].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert np.array_equal(other.features[3:], graph.features[3:])
    with pytest.raises(SettingsError, match=r"no feature column 'paper\.r'"):
        graph.with_columns(("paper.r", "paper.p", "author.age"))


def test_projected_columns_cannot_be_put_in_order():
    authors = TypeParts(2, np.ones((2, 2)), feature_names=("age", "size"))
    papers = TypeParts(3, np.ones((3, 3)), ["a", "b", "a"])
    graph = assemble_hetero(types(paper=papers, author=authors), relations(), target="paper")
    with pytest.raises(SettingsError, match=r"order author\.size, author\.age"):
        graph.with_columns(("author.size", "author.age"))


def differing(one, other):
    return [key for key, value in one.fingerprints.items() if other.fingerprints[key] != value]


def test_a_graph_without_relations_is_refused():
    with pytest.raises(InputError, match="no relations"):
        assemble_hetero(types(), {}, target="paper")


def test_an_unknown_relation_is_answered_with_one_like_it(graph):
    with pytest.raises(SettingsError, match="Did you mean 'cites'"):
        graph.joined(["cite"])


def test_a_split_of_other_nodes_than_the_targets_is_refused():
    paper = TypeParts(3, np.ones((3, 1)), [0, 1, 0], split=Split(np.array([0, 1]), np.array([2]), np.array([4])))
    with pytest.raises(IdError, match="names node 4, there are 3 nodes of 'paper'"):
        assemble_hetero(types(paper=paper), relations(), target="paper")
