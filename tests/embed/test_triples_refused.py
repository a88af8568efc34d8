"""Triples and settings that cannot be learned from are refused with what is wrong and what to do."""

import numpy as np
import pytest
from scipy import sparse

from gamlp.embed import (
    EmbeddingSettings,
    Triples,
    embedding_settings_from,
    load_embeddings,
    train_embeddings,
    triples_from,
)
from gamlp.errors import FormatError, IdError, InputError, MissingFileError, SettingsError, ShapeError
from gamlp.graph import from_scipy


def make(heads=(0, 1, 2), relations=(0, 0, 1), tails=(1, 2, 0), entities=3, names=("likes", "knows")):
    return Triples(np.array(heads), np.array(relations), np.array(tails), entities, names)


@pytest.mark.parametrize(
    ("triples", "error", "words"),
    [
        (make(heads=(0, 1, 3)), IdError, "Triple 2 has head 3, but there are 3 entities"),
        (make(tails=(1, -1, 0)), IdError, "Triple 1 has tail -1"),
        (make(relations=(0, 5, 1)), IdError, "Triple 1 has relation 5, but there are 2 relations"),
        (make(names=("likes", "knows", "hates")), InputError, "1 of 3 relations have no triples: hates"),
        (make(names=("likes", "likes")), InputError, "Two relations are called 'likes'"),
        (make(heads=(0, 1)), ShapeError, r"\(2,\), \(3,\), \(3,\)"),
        (make(heads=np.zeros((3, 1), int)), ShapeError, r"\(3, 1\)"),
        (make(heads=(0.0, 1.0, 2.0)), FormatError, "heads are float64"),
        (make(*(np.zeros(0, int),) * 3), InputError, "no triples"),
        (make((0,), (0,), (0,), entities=1, names=("is",)), InputError, "There is 1 entity"),
    ],
)
def test_bad_triples(triples, error, words):
    with pytest.raises(error, match=words) as refused:
        train_embeddings(triples, seed=0)
    assert len(str(refused.value).split("\n")) == 2


def test_a_bad_id_far_into_mapped_triples_is_found(monkeypatch):
    monkeypatch.setattr("gamlp.embed.triples.BLOCK", 2)
    with pytest.raises(IdError, match="Triple 2 has head 3"):
        make(heads=(0, 1, 3)).check()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dimensions": 3}, "Did you mean 'dimension'"),
        ({"model": "distmult"}, "Setting model = 'distmult'"),
        ({"dimension": 7}, "dimension = 7 is odd"),
        ({"steps": 0}, "Setting steps = 0"),
        ({"learning_rate": float("nan")}, "learning_rate"),
    ],
)
def test_bad_settings(values, words):
    with pytest.raises(SettingsError, match=words):
        embedding_settings_from(values)


def test_an_odd_dimension_is_refused_however_it_comes():
    with pytest.raises(SettingsError, match="odd"):
        train_embeddings(make(), EmbeddingSettings(dimension=3), seed=0)


def test_few_triples_are_embedded_without_a_score():
    found = train_embeddings(make(), EmbeddingSettings(dimension=4, steps=3), seed=0)
    assert found.entities.shape == (3, 4)
    assert found.scores is None


def test_folders_that_are_not_embeddings(tmp_path):
    with pytest.raises(MissingFileError):
        load_embeddings(tmp_path)
    (tmp_path / "checkpoint.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(FormatError, match=r"checkpoint\.npz is not a complete checkpoint"):
        train_embeddings(make(), EmbeddingSettings(dimension=4, steps=3), seed=0, folder=tmp_path)


def test_weights_of_edges_are_refused_not_ignored():
    path = sparse.coo_array(([2.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    with pytest.raises(InputError, match="The edges have weights"):
        triples_from(from_scipy(path, np.eye(2)))
    assert triples_from(from_scipy(path / 2, np.eye(2))).heads.tolist() == [0]
