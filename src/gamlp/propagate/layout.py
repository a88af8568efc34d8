"""Bring features into the kernel's layout and results out of it.

Inside, a block of columns is a matrix (N, padded columns) of float32 or float16, see `huge_pages`; it holds
y = D^(−r) x, times a power of two for each column (see `memory`).

A hop pays for every cache line that a row of a block touches. Columns beyond the last whole line would cost each
neighbour one line more, so a few of them go in a block of their own where that block stays in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from gamlp.propagate import float16
from gamlp.propagate.kernels import LANES, cpu_features, padded
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import LINE

CACHED = 2**26  # bytes of a narrow block; one that stays in the cache is nearly free


def column_blocks(width: int, widest: int, *, nodes: int, itemsize: int = 4) -> list[slice]:
    """Cut F columns into blocks of at most 16·widest: equal ones in whole cache lines, then perhaps a narrow one."""
    line = LINE // itemsize
    rest = width % line
    if width < line or rest > line // 2 or nodes * padded(rest) * itemsize > CACHED:
        rest = 0
    main = width - rest
    vectors = -(-main // LANES)
    each = -(-vectors // -(-vectors // widest))
    each = min(widest, -(-each * LANES // line) * line // LANES) * LANES
    blocks = [slice(at, min(at + each, main)) for at in range(0, main, each)]
    return blocks + ([slice(main, width)] if rest else [])


def bits(array: Array) -> Array:
    """Return float16 as uint16, which is how the kernels know it; anything else as it is."""
    return array.view(np.uint16) if array.dtype == np.float16 else np.asarray(array)


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def pack(chunk: Array, scale: Array, columns: Array, x: Array, first: int) -> None:
    """Write x[first + i, f] = chunk[i, f] · scale[first + i] · columns[f], and zeros into the padding."""
    for i in range(chunk.shape[0]):
        for f in range(chunk.shape[1]):
            x[first + i, f] = stored(x, chunk[i, f] * scale[first + i] * columns[f])
        for f in range(chunk.shape[1], x.shape[1]):
            x[first + i, f] = 0


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def unpack(
    x: Array,
    rows: Array | None,
    scale: Array,
    columns: Array,
    values: Array,
    hop: int,
    column: int,
    first: int,
    last: int,
) -> int:
    """Write values[i, hop, column + f] = x[j, f] · scale[j] · columns[f], j = rows[i]; return how many overflowed."""
    overflows = 0
    for i in range(first, last):
        j = i if rows is None else rows[i]
        for f in range(columns.shape[0]):
            value = stored(values, number(x[j, f]) * scale[j] * columns[f])
            values[i, hop, column + f] = value
            overflows += infinite(value)
    return overflows


@intrinsic  # type: ignore[untyped-decorator]
def number(context: Any, value: Any) -> Any:
    """Return a stored value as float32."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if signature.args[0] == types.float32:
            return arguments[0]
        return float16.widen(builder, arguments[0], native=float16.native(cpu_features()))

    return types.float32(value), emit


@intrinsic  # type: ignore[untyped-decorator]
def stored(context: Any, matrix: Any, value: Any) -> Any:
    """Return a float32 as `matrix` stores it."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if signature.return_type == types.float32:
            return arguments[1]
        return float16.narrow(builder, arguments[1], native=float16.native(cpu_features()))

    return matrix.dtype(matrix, types.float32), emit


@intrinsic  # type: ignore[untyped-decorator]
def infinite(context: Any, value: Any) -> Any:
    """Return 1 where a float16 is infinite or NaN; float32 is not asked."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        if signature.args[0] == types.float32:
            return word(0)
        exponent = builder.and_(arguments[0], ir.IntType(16)(0x7C00))
        return builder.zext(builder.icmp_unsigned("==", exponent, ir.IntType(16)(0x7C00)), word)

    return types.int64(value), emit
