"""The cost model by hand: one small propagation, worked out line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gamlp.errors import SettingsError
from gamlp.machine.cost import (
    Constants,
    Gather,
    Work,
    block_lines,
    check_seconds,
    limited,
    on_cluster,
    predict,
    unlimited,
)

MIB, GIB = 2**20, 2**30
GATHERS = (Gather(1, MIB, 1e-8), Gather(7, MIB, 4e-8), Gather(1, 4 * MIB, 2e-8), Gather(7, 4 * MIB, 8e-8))
CONSTANTS = Constants(GATHERS, stream=1e10, disk_read=1e8, disk_write=5e7, sgemm=1e11)
WORK = Work(nodes=2**14, entries=10**6, features=64, hops=3, rows=1000)  # 4 lines of 64 bytes
LAST = 1000 / 2**14  # the share of the last hop, which is summed for the wanted rows alone


def test_seconds_of_an_entry_lie_between_what_was_measured():
    t = CONSTANTS.seconds_an_entry
    assert t(1, MIB) == pytest.approx(1e-8)
    assert t(7, 4 * MIB) == pytest.approx(8e-8)
    assert t(4, MIB) == pytest.approx(2.5e-8)  # half way from 1 to 7 lines
    assert t(1, 2 * MIB) == pytest.approx(1.5e-8)  # half way from 2²⁰ to 2²²
    assert t(1, 16 * MIB) == pytest.approx(3e-8)  # as far beyond
    assert t(1, 1024) == pytest.approx(1e-8)  # a state in the cache counts as the small one


def test_a_third_size_bends_the_line_and_noise_does_not():
    three = replace(CONSTANTS, gathers=(*GATHERS, Gather(1, 16 * MIB, 6e-8), Gather(7, 16 * MIB, 24e-8)))
    t = three.seconds_an_entry
    assert t(1, 2 * MIB) == pytest.approx(1.5e-8)  # below the second size as before
    assert t(1, 8 * MIB) == pytest.approx(4e-8)  # half way from 2²² to 2²⁴
    assert t(1, 64 * MIB) == pytest.approx(10e-8)  # as far beyond
    faster = replace(CONSTANTS, gathers=(*GATHERS, Gather(1, 16 * MIB, 1e-8), Gather(7, 16 * MIB, 4e-8)))
    assert faster.seconds_an_entry(1, 64 * MIB) == pytest.approx(2e-8)  # a larger state is never faster


def test_without_a_limit_by_hand():
    cost = unlimited(WORK, CONSTANTS)  # one block of 4 lines: a state of 64·4·2¹⁴ = 4 MiB
    hop = 10**6 * 5e-8 + 2 * 4 * MIB / 1e10  # 4 lines in 4 MiB: half way from 2e-8 to 8e-8
    features, result, adjacency = 4 * 2**14 * 64, 1000 * 4 * 64 * 4, 4 * 10**6 + 8 * 2**14
    assert cost.seconds == pytest.approx((2 + LAST) * hop + (features + result) / 1e10)
    assert cost.memory == adjacency + features + result + 2 * 4 * MIB + 12 * 2**14
    assert cost.disk == adjacency + features
    assert cost.blocks == 1


def test_within_a_limit_by_hand():
    cost = limited(WORK, CONSTANTS, memory=6 * MIB, ram=6 * MIB)  # room for 2 lines: two blocks
    adjacency, result, features = 4 * 10**6 + 8 * 2**14, 1000 * 4 * 64 * 4, 4 * 2**14 * 64
    reading = adjacency / 1e8  # 41 ms; computing takes 10⁶·(1.5e-8 + 0.75e-8) = 22 ms
    block = features / 2 / 1e8 + 3 * reading + result / 2 / 5e7
    assert cost.blocks == 2
    assert cost.seconds == pytest.approx(2 * block + result / 1e8 + result / 5e7)
    assert cost.memory == 6 * MIB
    assert cost.disk == adjacency + features + 2 * result


def test_files_in_the_systems_cache_are_read_at_half_the_stream():
    cached = limited(WORK, CONSTANTS, memory=6 * MIB, ram=GIB)
    result, features = 1000 * 4 * 64 * 4, 4 * 2**14 * 64
    hop = 10**6 * 2.25e-8 + 2 * 2 * MIB / 1e10  # 2 lines: 1.5e-8 at 1 MiB, 3e-8 at 4 MiB; 2 MiB lie half way
    reading = (4 * 10**6 + 8 * 2**14) / 5e9
    assert cached.seconds == pytest.approx(
        2 * (features / 2 / 5e9 + 2 * hop + max(LAST * hop, reading) + result / 2 / 5e7) + result / 1e8 + result / 5e7
    )


def test_a_cluster_shares_the_blocks_out():
    one = on_cluster(WORK, CONSTANTS, memory=6 * MIB, machines=1, ram=6 * MIB)
    assert (one.blocks, one.at_once) == (2, 1)
    assert one.seconds == limited(WORK, CONSTANTS, memory=6 * MIB, ram=6 * MIB).seconds
    two = on_cluster(WORK, CONSTANTS, memory=6 * MIB, machines=2, ram=6 * MIB)
    assert (two.blocks, two.at_once) == (2, 2)
    join = 1000 * 4 * 64 * 4 * (1 / 1e8 + 1 / 5e7)
    assert two.seconds - join == pytest.approx((one.seconds - join) / 2)
    many = on_cluster(WORK, CONSTANTS, memory=6 * MIB, machines=100, ram=6 * MIB)
    assert (many.blocks, many.at_once) == (4, 4)  # a line is the least that a machine can take
    roomy = on_cluster(WORK, CONSTANTS, memory=6 * MIB, machines=1, ram=12 * MIB)
    assert roomy.memory == 12 * MIB  # two blocks at once on one machine


def test_float16_halves_the_lines_and_its_blocks():
    half = replace(WORK, features=256, storage="float16")
    assert (half.lines, CONSTANTS.widest(half.item), half.result) == (8, 3, 1000 * 4 * 256 * 2)
    assert block_lines(half, CONSTANTS, GIB) == 3
    assert predict(half, CONSTANTS, memory=GIB)["limited"].blocks == 3


def test_too_little_memory_is_refused():
    with pytest.raises(SettingsError, match=r"16,384 nodes need at least 2\.0 MiB for one cache line"):
        block_lines(WORK, CONSTANTS, 2 * MIB)


def test_indices_of_very_large_graphs_have_eight_bytes():
    assert Work(2**31, 10, 1, 1, 1).adjacency == 8 * 10 + 8 * 2**31
    assert Work(2**31 - 1, 10, 1, 1, 1).adjacency == 4 * 10 + 8 * (2**31 - 1)


def test_blocks_are_as_wide_as_the_processor_that_was_measured_allows():
    """128 float32 are 8 lines: two blocks where registers hold 7 lines, one where they hold 14."""
    wide = replace(CONSTANTS, gathers=tuple(replace(one, lines=14) if one.lines == 7 else one for one in GATHERS))
    work = replace(WORK, features=128)
    assert (unlimited(work, CONSTANTS).blocks, unlimited(work, wide).blocks) == (2, 1)


def test_all_rows_wanted_cost_a_whole_last_hop():
    assert replace(WORK, rows=2**14).last == 1
    assert replace(WORK, rows=2**13).last == 0.5
    assert unlimited(replace(WORK, hops=0), CONSTANTS).seconds == pytest.approx((4 * 2**14 * 64 + 1000 * 64 * 4) / 1e10)


def test_a_graph_is_checked_as_fast_as_the_slower_of_disk_and_hash():
    graph = 4 * 10**6 + 8 * 2**14 + 4 * 2**14 * 64
    assert check_seconds(WORK, CONSTANTS) == pytest.approx(graph / 1e8)
    assert check_seconds(WORK, replace(CONSTANTS, checksum=1e7)) == pytest.approx(graph / 1e7)


def test_label_hops_keep_the_last_hop_alone():
    labels = replace(WORK, keep="last")
    assert (WORK.result, labels.result) == (1000 * 4 * 64 * 4, 1000 * 64 * 4)
    spared = 1000 * 3 * 64 * 4 * (2 / 5e7 + 1 / 1e8)  # written as blocks, read and written as a whole
    more, less = (limited(work, CONSTANTS, memory=GIB, ram=GIB).seconds for work in (WORK, labels))
    assert more - less == pytest.approx(spared)
