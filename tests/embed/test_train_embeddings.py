"""Training as a whole: it learns what is there, repeats itself to the bit, and survives being killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gamlp.embed import EmbeddingSettings, Triples, load_embeddings, train_embeddings
from gamlp.errors import NotFiniteError, SettingsError

QUICK = EmbeddingSettings(dimension=16, batch_size=200, chunk=50, negatives=20, steps=60, held_out=20)


def shuffled_tails(triples: Triples) -> Triples:
    """The same triples with their tails dealt out at random: nothing is left to learn."""
    tails = np.random.default_rng(0).permutation(triples.tails)
    return Triples(triples.heads, triples.relations, tails, triples.entities, triples.relation_names)


@pytest.mark.parametrize("model", ["complex", "transe"])
def test_structure_is_learned_and_noise_is_not(ring, grid, model):
    """Every held-out fact follows from the others: by rotations on a ring, by translations on a grid."""
    triples = ring if model == "complex" else grid
    settings = EmbeddingSettings(
        model=model, dimension=64, batch_size=500, chunk=100, negatives=50, steps=400, held_out=75, learning_rate=0.3
    )
    learned = train_embeddings(triples, settings, seed=0).scores
    noise = train_embeddings(shuffled_tails(triples), settings, seed=0).scores
    assert learned.chance.mrr < 0.03
    assert learned.mrr > (40 if model == "complex" else 15) * learned.chance.mrr
    assert learned.hits_at_10 > 0.8
    assert noise.mrr < 4 * noise.chance.mrr


def test_same_seed_same_bits_and_another_seed_others(ring):
    one, two, other = (train_embeddings(ring, QUICK, seed=seed) for seed in (0, 0, 1))
    assert_array_equal(one.entities, two.entities)
    assert one.scores == two.scores
    assert (one.entities != other.entities).any()
    assert one.entities.dtype == np.float32
    assert (one.entities.shape, one.relations.shape) == ((300, 16), (5, 16))


def test_memory_mapped_triples_give_the_same(ring, tmp_path):
    mapped = []
    for name, column in zip(("heads", "relations", "tails"), ring.columns, strict=True):
        np.save(tmp_path / f"{name}.npy", column.astype(np.int32))
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    triples = Triples(*mapped, ring.entities, ring.relation_names)
    assert_array_equal(
        train_embeddings(triples, QUICK, seed=0).entities, train_embeddings(ring, QUICK, seed=0).entities
    )


def test_what_is_finished_is_returned_at_once(ring, tmp_path, monkeypatch):
    made = train_embeddings(ring, QUICK, seed=3, folder=tmp_path / "out")
    monkeypatch.setattr("gamlp.embed.train.run", None)  # no step is taken again
    for found in (train_embeddings(ring, QUICK, seed=3, folder=tmp_path / "out"), load_embeddings(tmp_path / "out")):
        assert_array_equal(found.entities, made.entities)
        assert_array_equal(found.relations, made.relations)
        assert (found.scores, found.settings, found.seed) == (made.scores, QUICK, 3)
        assert found.relation_names == ring.relation_names
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"entities.npy", "relations.npy", "embeddings.json"}


@pytest.mark.parametrize("change", ["seed", "settings", "triples"])
def test_a_folder_with_other_embeddings_is_refused(ring, tmp_path, change):
    train_embeddings(ring, QUICK, seed=3, folder=tmp_path)
    triples = shuffled_tails(ring) if change == "triples" else ring
    settings = QUICK.model_copy(update={"steps": 61}) if change == "settings" else QUICK
    with pytest.raises(SettingsError, match=f"other {change}") as refused:
        train_embeddings(triples, settings, seed=4 if change == "seed" else 3, folder=tmp_path)
    assert "another folder" in str(refused.value)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from conftest import ring_triples
from test_train_embeddings import QUICK
from gamlp.storage import files
from gamlp.embed import train
train.SAVE_EVERY = 0.0
calls = 0
def counted(function, at):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call
if {where!r} == "step":
    train.take_step = counted(train.take_step, 40)
else:
    files.os.fsync = counted(files.os.fsync, 3)  # its second save: written, not yet renamed
train.train_embeddings(ring_triples(), QUICK, seed=0, folder=Path({folder!r}))
"""


@pytest.mark.parametrize("where", ["step", "save"])
def test_killed_anywhere_it_goes_on_to_the_same_bits(ring, tmp_path, where):
    script = KILLED.format(tests=str(Path(__file__).parent), where=where, folder=str(tmp_path))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = subprocess.run(
        [sys.executable, "-c", script], check=False, env=environment, capture_output=True, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert (tmp_path / "checkpoint.npz").exists()
    assert not (tmp_path / "embeddings.json").exists()
    with np.load(tmp_path / "checkpoint.npz") as kept:
        untrained = kept["entity_sums"].max() == 0
    assert not untrained
    resumed = train_embeddings(ring, QUICK, seed=0, folder=tmp_path)
    whole = train_embeddings(ring, QUICK, seed=0)
    assert_array_equal(resumed.entities, whole.entities)
    assert_array_equal(resumed.relations, whole.relations)
    assert resumed.scores == whole.scores


def test_a_loss_that_is_no_number_is_said(ring):
    with pytest.raises(NotFiniteError, match="learning_rate"):
        train_embeddings(ring, QUICK.model_copy(update={"learning_rate": 1e30}), seed=0)
