"""One process at a time, and nothing left behind: locks, sweeping, exchange; and checksums that differ."""

import json
import os

import numpy as np
import pytest
import torch

from gamlp.errors import StorageError
from gamlp.storage import directories
from gamlp.storage.checksums import check_files, checksums_of
from gamlp.storage.files import read_json, write_json
from gamlp.storage.locks import hold, locked
from gamlp.train.checkpoint import Checkpoint, load_tensors, save_tensors


def test_a_second_process_on_the_same_folder_is_told_so(tmp_path):
    with locked(tmp_path / "run"):
        with pytest.raises(StorageError, match="Another process works on"), locked(tmp_path / "run"):
            pass
        with locked(tmp_path / "other"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_is_no_obstacle(tmp_path):
    (tmp_path / ".run.lock").touch()
    with locked(tmp_path / "run"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path):
    dead, living, other = (tmp_path / name for name in (".a.json.1.tmp", ".a.json.2.tmp", ".b.json.3.tmp"))
    for path in (dead, living, other):
        path.write_text("x")
    descriptor = os.open(living, os.O_RDONLY)
    hold(descriptor)
    write_json(tmp_path / "a.json", {})
    os.close(descriptor)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.json.2.tmp", ".b.json.3.tmp", "a.json"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_takes_the_place_of_an_older_one(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(directories, "exchange", lambda one, other: False)
    for content in ("old", "new"):
        with directories.making(tmp_path / "g") as folder:
            (folder / "file").write_text(content)
        assert (tmp_path / "g" / "file").read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


def test_a_failed_rename_brings_the_older_folder_back(tmp_path, monkeypatch):
    with directories.making(tmp_path / "g") as folder:
        (folder / "file").write_text("old")
    monkeypatch.setattr(directories, "exchange", lambda one, other: False)
    plain = type(tmp_path).rename

    def rename(path, target):
        if path.suffix == ".tmp":
            raise OSError(5, "Input/output error")
        return plain(path, target)

    monkeypatch.setattr(type(tmp_path), "rename", rename)
    with pytest.raises(StorageError, match="Input/output error"), directories.making(tmp_path / "g"):
        pass
    assert (tmp_path / "g" / "file").read_text() == "old"


def test_a_changed_json_file_is_refused(tmp_path):
    write_json(tmp_path / "a.json", {"classes": ["a", "b"], "by number": {2: 1, 10: 2}})
    assert read_json(tmp_path / "a.json") == {"classes": ["a", "b"], "by number": {"2": 1, "10": 2}}
    content = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps({**content, "classes": ["a", "c"]}))
    with pytest.raises(StorageError, match="checksum differs"):
        read_json(tmp_path / "a.json")


def test_changed_files_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    checksums = checksums_of([tmp_path / "a.npy", tmp_path / "not there.npy"])
    assert list(checksums) == ["a.npy"]
    check_files(tmp_path, {**checksums, "../outside.npy": "0"})
    np.save(tmp_path / "a.npy", np.array([0, 0, 1e-9]))
    with pytest.raises(StorageError, match="has changed"):
        check_files(tmp_path, checksums)


def test_a_flipped_bit_of_a_model_is_found(tmp_path):
    path = tmp_path / "m.safetensors"
    save_tensors(path, {"w": torch.ones(4), "step": torch.tensor(3.0)}, {"epoch": 1})
    assert load_tensors(path)[1] == {"epoch": 1}
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StorageError, match="checksum differs"):
        load_tensors(path)


def test_a_checkpoint_of_another_stage_is_refused(tmp_path):
    facts = {"epoch": 1, "best_epoch": 0, "best_score": [0.5, -1.0], "history": []}
    Checkpoint(tmp_path / "c", of="one").save({"w": torch.ones(2)}, facts)
    assert Checkpoint(tmp_path / "c", of="one").load()[1]["epoch"] == 1
    with pytest.raises(StorageError, match="another run, seed or stage"):
        Checkpoint(tmp_path / "c", of="two").load()
