"""Bring features into the kernel's layout and results out of it.

Inside, a block of columns is a matrix (N, padded columns) of float32 or float16, see `huge_pages`; it holds
y = D^(−r) x, times a power of two for each column (see `block`).

A hop pays for every cache line that a row of a block touches. Columns beyond the last whole line would cost each
neighbour one line more, so a few of them go in a block of their own where that block stays in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gamlp.errors import NotFiniteError
from gamlp.propagate import float16
from gamlp.propagate.kernels import LANES, cpu_features, padded
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import LINE
from gamlp.storage.numba_cache import cached_njit

TILE = 64  # rows, and so values of a column, that are turned at a time: of LANES columns they stay in the nearest cache
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


def pack(values: Array, scale: Array, columns: Array, x: Array) -> None:
    """Write x[i, f] = values[i, f] · scale[i] · columns[f], and zeros into the padding; values in either order."""
    if values.flags.c_contiguous:
        pack_rows(values, scale, columns, x)
    else:
        pack_columns(values.T, scale, columns, x)


def peaks(values: Array, scale: Array) -> Array:
    """Return the largest |values[i, f]|·scale[i] of each column f; infinite or NaN if one of them is."""
    if values.flags.c_contiguous:
        return np.asarray(peaks_of_rows(values, scale))
    return np.asarray(peaks_of_columns(values.T, scale))


def column_scales(peaks: Array) -> Array:
    """Return the power of two for each column that brings its peak just below 2¹⁵."""
    if not np.isfinite(peaks).all():
        raise NotFiniteError("Some features are NaN or infinite.\nFeatures must be finite numbers.")
    exponent = np.frexp(peaks)[1]
    return np.asarray(np.ldexp(np.float32(1), np.clip(15 - exponent, -100, 100)), dtype=np.float32)


@cached_njit
def pack_rows(values: Array, scale: Array, columns: Array, x: Array) -> None:
    """See `pack`."""
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            x[i, f] = stored(x, values[i, f] * scale[i] * columns[f])
        for f in range(values.shape[1], x.shape[1]):
            x[i, f] = 0


@cached_njit
def pack_columns(values: Array, scale: Array, columns: Array, x: Array) -> None:
    """See `pack`; values (F, N).  As many columns as a vector has are turned together: their number is a constant."""
    whole = values.shape[0] // LANES * LANES
    for start in range(0, values.shape[1], TILE):
        stop = min(start + TILE, values.shape[1])
        for begin in range(0, whole, LANES):
            for i in range(start, stop):
                for f in range(begin, begin + LANES):
                    x[i, f] = stored(x, values[f, i] * scale[i] * columns[f])
        for f in range(whole, values.shape[0]):
            for i in range(start, stop):
                x[i, f] = stored(x, values[f, i] * scale[i] * columns[f])
        for f in range(values.shape[0], x.shape[1]):
            for i in range(start, stop):
                x[i, f] = 0


@cached_njit
def peaks_of_rows(values: Array, scale: Array) -> Array:
    """See `peaks`.

    Without their sign, floats are in the order of their bits as integers; infinities and NaN come last.
    """
    found = np.zeros(values.shape[1], np.int32)
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            found[f] = max(found[f], np.float32(values[i, f] * scale[i]).view(np.int32) & np.int32(0x7FFFFFFF))
    return found.view(np.float32)


@cached_njit
def peaks_of_columns(values: Array, scale: Array) -> Array:
    """See `peaks`; values (F, N)."""
    found = np.zeros(values.shape[0], np.int32)
    for f in range(values.shape[0]):
        largest = np.int32(0)
        for i in range(values.shape[1]):
            largest = max(largest, np.float32(values[f, i] * scale[i]).view(np.int32) & np.int32(0x7FFFFFFF))
        found[f] = largest
    return found.view(np.float32)


@cached_njit
def unpack(
    x: Array, rows: Array | None, scale: Array, columns: Array, out: Array, hop: int, column: int, first: int, last: int
) -> int:
    """Write out[i, hop, column + f] = x[j, f] · scale[i] · columns[f], j = rows[i]; return how many overflowed."""
    overflows = 0
    for i in range(first, last):
        j = i if rows is None else rows[i]
        for f in range(columns.shape[0]):
            value = stored(out, number(x[j, f]) * scale[i] * columns[f])
            out[i, hop, column + f] = value
            overflows += infinite(value)
    return overflows


@cached_njit
def return_to_start(
    x: Array, start: Array, rows: Array | None, scale: Array, columns: Array, alpha: float, bounds: Array
) -> None:
    """Write x[j, f] = clip(α x[j, f] + (1−α) s, scale[i]·bounds[:, f]), s = start[j, f]·scale[i]·columns[f].

    j = rows[i]; alpha is a float32. Where the scale is 0, x[j] becomes 0: a node without a degree passes nothing on.
    """
    for i in range(scale.shape[0]):
        j = i if rows is None else rows[i]
        for f in range(columns.shape[0]):
            value = np.float32(0)
            if scale[i] != 0:
                origin = number(start[j, f]) * scale[i] * columns[f]
                value = alpha * number(x[j, f]) + (np.float32(1) - alpha) * origin
                value = min(max(value, scale[i] * bounds[0, f]), scale[i] * bounds[1, f])
            x[j, f] = stored(x, value)


@intrinsic  # type: ignore[untyped-decorator]
def number(context: Any, value: Any) -> Any:
    """Return a stored value as float32."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single = signature.args[0] == types.float32
        return arguments[0] if single else float16.widen(builder, arguments[0], native=float16.native(cpu_features()))

    return types.float32(value), emit


@intrinsic  # type: ignore[untyped-decorator]
def stored(context: Any, matrix: Any, value: Any) -> Any:
    """Return a float32 as `matrix` stores it."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single = signature.return_type == types.float32
        return arguments[1] if single else float16.narrow(builder, arguments[1], native=float16.native(cpu_features()))

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
