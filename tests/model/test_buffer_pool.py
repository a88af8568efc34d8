"""Buffers are reused: never while they are in use, not after training, and without a trace in the numbers."""

import numpy as np
import torch
from numpy.testing import assert_array_equal

from gamlp.model import build_network
from gamlp.model.cpu import buffer_pool
from gamlp.model.cpu.buffer_pool import BufferPool, empty, reuse_buffers
from gamlp.settings import Settings


def test_a_buffer_is_reused_once_it_is_freed():
    pool, others = BufferPool(), []

    def taken(*shape: int) -> int:
        others.append(pool.empty(shape))
        return others[-1].ctypes.data

    first = pool.empty((4, 100))
    place = first.ctypes.data
    assert place % 64 == 0
    assert taken(4, 100) != place
    part = first[1]  # a view holds its buffer too
    del first
    assert taken(4, 100) != place
    del part
    assert taken(1, 199) != place  # less than half
    assert taken(1, 401) != place
    assert taken(3, 70) == place  # 210 of 400 values


def test_tensors_hold_their_buffer():
    pool = BufferPool()
    tensor = torch.from_numpy(pool.empty((2, 50)))
    place, view = tensor.data_ptr(), tensor.t()[1:]
    del tensor
    other = pool.empty((2, 50))
    assert other.ctypes.data != place
    del view
    assert pool.empty((2, 50)).ctypes.data == place


def test_no_more_is_free_than_allowed(monkeypatch):
    monkeypatch.setattr(buffer_pool, "LIMIT", 4 * 250)
    pool = BufferPool()
    taken = [pool.empty((100,)) for _ in range(3)]
    places = {array.ctypes.data for array in taken}
    taken.clear()
    again = [pool.empty((100,)) for _ in range(2)]
    assert {array.ctypes.data for array in again} <= places
    assert not pool._free


def test_the_pool_lasts_as_long_as_training():
    assert not buffer_pool._pools
    with reuse_buffers():
        outer = buffer_pool._pools[0]
        with reuse_buffers():
            assert buffer_pool._pools == [outer]
        assert buffer_pool._pools == [outer]
        held = empty((10, 10))
    assert not buffer_pool._pools
    held[:] = 1  # what is still held lives on
    assert empty((10, 10)).ctypes.data % 64 == 0


def test_the_numbers_are_the_same(monkeypatch):
    monkeypatch.setattr(buffer_pool, "LARGE", 1)  # every result has a buffer of the pool
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
    with reuse_buffers():
        assert_array_equal(trained(), alone)
        assert buffer_pool._pools[0]._returned or buffer_pool._pools[0]._free  # some were freed
