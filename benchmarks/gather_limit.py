"""Loops that read the rows a hop must read and do as little else as possible: the most that memory allows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

WORDS_A_LINE = 8
AHEAD = (8, 16, 32, 128, 256)  # entries; the last two are for rows of a line or two


def limits(x: np.ndarray) -> dict[str, Callable[..., int]]:
    """Return loop(indices, words, first, last) for a buffer x (N, 16·V), seen as words of 8 bytes."""
    words = x.shape[1] * x.itemsize // WORDS_A_LINE
    lines = tuple(range(0, words, WORDS_A_LINE))
    return {
        "a word a line": _reader(lines, 0),
        **{f"a word a line, {ahead} ahead": _reader(lines, ahead) for ahead in AHEAD},
        "two words a line": _reader(tuple(range(0, words, WORDS_A_LINE // 2)), 0),
    }


@cache
def _reader(touched: tuple[int, ...], ahead: int) -> Callable[..., int]:
    """Return a loop that adds up the touched words of each row, and prefetches the row `ahead` entries later."""
    body = "\n".join(f"        total += words[j, {word}]" for word in touched)
    early = "\n".join(f"        prefetch(words, j, {line})" for line in touched)
    look = f"        j = indices[min(k + {ahead}, last - 1)]\n{early}\n" if ahead else ""
    text = (
        "def read(indices, words, first, last):\n    total = 0\n    for k in range(first, last):\n"
        f"{look}        j = indices[k]\n{body}\n    return total\n"
    )
    space: dict[str, Any] = {"prefetch": prefetch}
    exec(text, space)  # the lines of a row, written out one by one, as a compiler would
    loop: Callable[..., int] = njit(nogil=True)(space["read"])
    return loop


@intrinsic
def prefetch(context: Any, matrix: Any, row: Any, column: Any) -> Any:
    """Ask for one cache line of a row."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        stride = builder.extract_value(array.strides, 0)
        offset = builder.add(builder.mul(arguments[1], stride), builder.mul(arguments[2], ir.IntType(64)(8)))
        place = builder.gep(builder.bitcast(array.data, byte), [offset], source_etype=ir.IntType(8))
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        builder.call(function, [place, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(matrix, types.int64, types.int64), emit
