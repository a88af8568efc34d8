"""Memory that serves again: never while it is in use, not after training, and without a trace in the numbers."""

import numpy as np
import torch
from numpy.testing import assert_array_equal

from gamlp.model import build_network
from gamlp.model.cpu import buffer_pool, fused
from gamlp.model.cpu.buffer_pool import Rooms, kept, room
from gamlp.settings import Settings


def test_a_room_serves_again_once_it_is_let_go():
    pool, others = Rooms(), []

    def lent(*shape: int) -> int:
        others.append(pool.lend(shape))
        return others[-1].ctypes.data

    first = pool.lend((4, 100))
    place = first.ctypes.data
    assert place % 64 == 0
    assert lent(4, 100) != place
    part = first[1]  # a view holds its room too
    del first
    assert lent(4, 100) != place
    del part
    assert lent(1, 199) != place  # less than half
    assert lent(1, 401) != place
    assert lent(3, 70) == place  # 210 of 400 values


def test_tensors_hold_their_room():
    pool = Rooms()
    tensor = torch.from_numpy(pool.lend((2, 50)))
    place, view = tensor.data_ptr(), tensor.t()[1:]
    del tensor
    other = pool.lend((2, 50))
    assert other.ctypes.data != place
    del view
    assert pool.lend((2, 50)).ctypes.data == place


def test_no_more_is_kept_than_allowed(monkeypatch):
    monkeypatch.setattr(buffer_pool, "MOST", 4 * 250)
    pool = Rooms()
    lent = [pool.lend((100,)) for _ in range(3)]
    places = {array.ctypes.data for array in lent}
    lent.clear()
    again = [pool.lend((100,)) for _ in range(2)]
    assert {array.ctypes.data for array in again} <= places
    assert not pool._kept


def test_rooms_are_kept_as_long_as_training_lasts():
    assert not buffer_pool._rooms
    with kept():
        outer = buffer_pool._rooms[0]
        with kept():
            assert buffer_pool._rooms == [outer]
        assert buffer_pool._rooms == [outer]
        held = room((10, 10))
    assert not buffer_pool._rooms
    held[:] = 1  # what is still held lives on
    assert room((10, 10)).ctypes.data % 64 == 0


def test_the_numbers_are_the_same(monkeypatch):
    monkeypatch.setattr(fused, "_LARGE", 1)  # every result has a room
    settings = Settings(combiner="jk", hops=2, hidden=16, head_layers=4, label_layers=3, dropout=0.4)
    random = np.random.default_rng(0)
    hops = torch.from_numpy(random.normal(size=(50, 3, 12)).astype(np.float32))
    labels = torch.from_numpy(random.dirichlet(np.ones(4), 50).astype(np.float32))

    def trained() -> torch.Tensor:
        network = build_network(settings, features=12, classes=4, seed=3)
        adam = torch.optim.Adam(network.parameters(), lr=0.01)
        for step in range(6):
            network.set_step(1, step)
            adam.zero_grad()
            rows = 50 if step % 3 else 31
            logits = network(hops[:rows], labels[:rows]).logits
            torch.nn.functional.cross_entropy(logits, torch.arange(rows) % 4).backward()
            adam.step()
        return torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])

    alone = trained()
    with kept():
        assert_array_equal(trained(), alone)
        assert buffer_pool._rooms[0]._back or buffer_pool._rooms[0]._kept  # some were let go
