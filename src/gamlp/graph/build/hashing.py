"""A hash table from 64-bit hashes to rows, with open addressing: kernels. Integers are hashed one to one."""

from __future__ import annotations

import numpy as np

from gamlp.storage.files import Array
from gamlp.storage.numba_cache import cached_njit

FREE = -1


@cached_njit
def mixed(value: np.uint64) -> np.uint64:
    """Spread the bits of a number over all 64; one to one."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@cached_njit
def hash_numbers(values: Array) -> Array:
    """Hash integers."""
    result = np.empty(len(values), np.uint64)
    for at in range(len(values)):
        result[at] = mixed(np.uint64(values[at]))
    return result


@cached_njit
def hash_strings(ends: Array, letters: Array) -> Array:
    """Hash strings: letter by letter into 64 bits, mixed after every eight and at the end with the length."""
    result = np.empty(len(ends) - 1, np.uint64)
    for at in range(len(ends) - 1):
        state, chunk, held = np.uint64(0x9E3779B97F4A7C15), np.uint64(0), 0
        for letter in range(ends[at], ends[at + 1]):
            chunk = (chunk << np.uint64(8)) | np.uint64(letters[letter])
            held += 1
            if held == 8:
                state = mixed(state ^ chunk) + np.uint64(0x9E3779B97F4A7C15)
                chunk, held = np.uint64(0), 0
        state = mixed(state ^ chunk) + np.uint64(ends[at + 1] - ends[at])
        result[at] = mixed(state)
    return result


@cached_njit
def insert(hashes: Array, rows: Array, found: Array, first: int) -> int:
    """Give the ids the rows first, first+1, …; return the number of the first that is there already, or −1."""
    mask = np.uint64(len(hashes) - 1)
    for at in range(len(found)):
        slot = found[at] & mask
        while rows[slot] != FREE:
            if hashes[slot] == found[at]:
                return at
            slot = (slot + np.uint64(1)) & mask
        hashes[slot], rows[slot] = found[at], first + at
    return -1


@cached_njit
def look_up(hashes: Array, table: Array, found: Array) -> Array:
    """Return the rows of ids, −1 where there is none."""
    mask = np.uint64(len(hashes) - 1)
    rows = np.empty(len(found), table.dtype)
    for at in range(len(found)):
        slot = found[at] & mask
        while table[slot] != FREE and hashes[slot] != found[at]:
            slot = (slot + np.uint64(1)) & mask
        rows[at] = table[slot]
    return rows
