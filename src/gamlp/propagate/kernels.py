"""The inner loop: out[i] = scale[i] · Σ_j w_ij x[j] over one row of the adjacency, with the sums held in registers.

LLVM sees V vectors of 16 float32 as V accumulators, so a row of x is read once, aligned, and nothing is spilled: one
hop costs E reads of a row, each asked for some entries ahead, and reading is all that takes time. Rows are padded to
16·V columns, or are one vector of 4 or 8; wider matrices go in column blocks (`widest_block`). Rows of float16 are
passed as uint16, widened on load and narrowed on store; the sums are float32 always.

Every element is summed in the order of the row's entries, without reassociation: the bits depend neither on the
number of threads nor on the width of the blocks.

The kernels run on one thread and without the interpreter's lock; what is compiled is kept on disk (`numba_cache`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from gamlp.propagate import float16
from gamlp.storage.files import Array
from gamlp.storage.huge_pages import LINE
from gamlp.storage.numba_cache import cached_njit

LANES = 16  # float32 values in an LLVM vector: one zmm, two ymm or four xmm registers
QUAD = 4  # float32 values in the narrowest vector; a kernel is compiled for a number of quads

Shape = tuple[int, ...]
Chunk = tuple[int, int, Array, Array, Array | None, Array]  # row, base, offsets, indices, weights, scale

_BYTE = ir.IntType(8)
_INDEX = ir.IntType(64)


def quads(columns: int) -> Shape:
    """Return the `shape` of the kernels for rows of so many padded columns: a zero for each four of them."""
    return (0,) * (columns // QUAD)


def prefetch_distances(row: int) -> tuple[int, ...]:
    """Return how many entries lie between asking for a row of so many bytes and adding it (`benchmarks/prefetch.py`).

    Of narrow rows more are under way at a time. A request may be dropped, so it is put again where that pays: for every
    row on AMD's processors; elsewhere for narrow ones alone, as measured on an Intel Xeon.
    """
    if cpu_name().startswith("znver"):
        return (256, 64) if row <= 2 * LINE else (128, 32) if row <= 4 * LINE else (64, 16)
    return (64, 16) if row <= 2 * LINE else (16,)


def padded(columns: int) -> int:
    """Return the columns that a row takes up: 4, 8, or whole vectors of 16."""
    return next(width for width in (QUAD, 2 * QUAD, -(-columns // LANES) * LANES) if width >= columns)


def cpu_name() -> str:
    """Return LLVM's name of the processor that numba compiles for, such as "znver4" or "cascadelake"."""
    return str(cpu_target.target_context.codegen().magic_tuple()[1])


def cpu_features() -> frozenset[str]:
    """Return the vector extensions that numba compiles for, such as {"avx2", "f16c"}."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    enabled = {word[1:] for word in str(features).split(",") if word.startswith("+")}
    return frozenset(enabled | ({"neon"} if str(triple).startswith(("aarch64", "arm64")) else set()))


def widest_block() -> int:
    """Return the most vectors whose sums fit the registers, with two left to work in."""
    features = cpu_features()
    if "avx512vl" in features:
        return 14  # 28 of 32 ymm, or 14 of 32 zmm
    if "avx" in features or "neon" in features:
        return 7  # 14 of 16 ymm, or 28 of 32 neon
    return 3  # 12 of 16 xmm


@cached_njit
def sum_rows(chunk: Chunk, x: Array, own: bool, out: Array, longest: int, first: int, last: int, shape: Shape) -> None:
    """Write rows row+first … row+last−1 of out = diag(scale) (A + own·I) x, but those of more than `longest` entries.

    The chunk of A begins with row `row` and entry `base`, as do its arrays; x and out are whole. `shape` is
    `quads(columns)`: numba compiles one kernel for each length.
    """
    row, base, offsets, indices, weights, scale = chunk
    for i in range(first, last):
        if offsets[i + 1] - offsets[i] <= longest:
            node = row + i if own else -1
            gather(indices, weights, offsets[i] - base, offsets[i + 1] - base, x, node, out, row + i, scale[i], shape)


@cached_njit
def sum_wanted(
    chunk: Chunk, x: Array, own: bool, out: Array, longest: int, wanted: Array, first: int, last: int, shape: Shape
) -> None:
    """The same for the rows wanted[first] … wanted[last−1] alone."""
    row, base, offsets, indices, weights, scale = chunk
    for at in range(first, last):
        i = wanted[at] - row
        if offsets[i + 1] - offsets[i] <= longest:
            node = row + i if own else -1
            gather(indices, weights, offsets[i] - base, offsets[i + 1] - base, x, node, out, row + i, scale[i], shape)


@cached_njit
def sum_marked(
    chunk: Chunk,
    x: Array,
    own: bool,
    out: Array,
    longest: int,
    marked: Array,
    reached: Array,
    first: int,
    last: int,
    shape: Shape,
) -> None:
    """The same as `sum_rows`, unweighted, of an x whose rows are zero but for the marked ones: a bit for each row.

    Only marked rows are read: a bit is found in a cache, a row mostly is not. reached[i] becomes 1 where one was added.
    """
    row, base, offsets, indices, _, scale = chunk
    found = np.empty(longest, indices.dtype)
    for i in range(first, last):
        start, stop = offsets[i] - base, offsets[i + 1] - base
        if stop - start <= longest:
            count = 0
            for k in range(start, stop):
                found[count] = indices[k]
                count += is_marked(marked, indices[k])
            node = row + i if own and is_marked(marked, row + i) else -1
            if count or node >= 0:
                gather(found[:count], None, 0, count, x, node, out, row + i, scale[i], shape)
                reached[row + i] = 1
            else:
                for f in range(out.shape[1]):
                    out[row + i, f] = 0


@cached_njit
def is_marked(marked: Array, row: int) -> int:
    """Return a row's bit."""
    return (marked[row >> 3] >> (row & 7)) & 1  # type: ignore[no-any-return]


@cached_njit
def sum_segments(segments: Array, chunk: Chunk, x: Array, sums: Array, first: int, last: int, shape: Shape) -> None:
    """Write sums[s], s = first … last−1, over the entries start … stop−1; segment s is (start, stop, own row or −1)."""
    base, indices, weights = chunk[1], chunk[3], chunk[4]
    for s in range(first, last):
        gather(indices, weights, segments[s, 0] - base, segments[s, 1] - base, x, segments[s, 2], sums, s, 1.0, shape)


@cached_njit
def join_segments(hubs: Array, starts: Array, sums: Array, out: Array, scale: Array, shape: Shape) -> None:
    """Write out[hubs[h]] = scale[h] · Σ of the sums starts[h] … starts[h+1]−1."""
    order = np.arange(sums.shape[0])
    for h in range(hubs.shape[0]):
        gather(order, None, starts[h], starts[h + 1], sums, -1, out, hubs[h], scale[h], shape)


@intrinsic  # type: ignore[untyped-decorator]
def gather(
    _: Any, ids: Any, weights: Any, start: Any, stop: Any, x: Any, own: Any, out: Any, row: Any, scale: Any, shape: Any
) -> Any:
    """Write out[row] = scale · (x[own] + Σ_k weights[k] · x[ids[k]]), k = start … stop−1; own < 0 adds nothing."""
    place = types.int64
    return types.void(ids, weights, place, place, x, place, out, place, types.float32, shape), _emit_gather


def _emit_gather(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    ids, weighting, _, _, x_type, _, out_type, _, _, shape = signature.args
    columns = shape.count * QUAD
    lanes = min(columns, LANES)
    kind = ir.VectorType(ir.FloatType(), lanes)
    indices = context.make_array(ids)(context, builder, arguments[0])
    source = _Rows(context, builder, x_type, arguments[4], lanes)
    target = _Rows(context, builder, out_type, arguments[6], lanes)
    sums = [cgutils.alloca_once(builder, kind) for _ in range(columns // lanes)]
    _start_sums(builder, sums, source, arguments[5])
    add = _adder(context, builder, weighting, arguments[1], kind)
    final = builder.sub(indices.nitems, _INDEX(1))
    with cgutils.for_range_slice(builder, arguments[2], arguments[3], _INDEX(1), _INDEX) as (entry, _):
        for distance in prefetch_distances(len(sums) * source.bytes):
            later = builder.add(entry, _INDEX(distance))
            later = builder.select(builder.icmp_signed("<", later, final), later, final)
            source.prefetch(_neighbour(builder, indices, later), len(sums))
        neighbour = source.at(_neighbour(builder, indices, entry))
        plus = add(entry)
        for v, total in enumerate(sums):
            builder.store(plus(builder.load(total), source.load(neighbour, v)), total)
    goal = target.at(arguments[7])
    factor = _broadcast(builder, arguments[8], kind)
    for v, total in enumerate(sums):
        target.store(builder.fmul(builder.load(total), factor), goal, v)
    return context.get_dummy_value()


def _neighbour(builder: Any, indices: Any, entry: Any) -> Any:
    column = builder.load(builder.gep(indices.data, [entry]))
    return builder.sext(column, _INDEX) if column.type.width < _INDEX.width else column


def _start_sums(builder: Any, sums: list[Any], source: _Rows, own: Any) -> None:
    """Begin with the node's own row, or with nothing."""
    with builder.if_else(builder.icmp_signed("<", own, _INDEX(0))) as (without, within):
        with without:
            for total in sums:
                builder.store(ir.Constant(source.sum, [0.0] * source.sum.count), total)
        with within:
            place = source.at(own)
            for v, total in enumerate(sums):
                builder.store(source.load(place, v), total)


def _adder(context: Any, builder: Any, weighting: Any, weights: Any, kind: ir.VectorType) -> Callable[[Any], Any]:
    """Return entry → (sum, value) → sum + weight[entry] · value, fused where the machine can."""
    if isinstance(weighting, types.NoneType):
        return lambda entry: builder.fadd
    array = context.make_array(weighting)(context, builder, weights)
    fused = bool({"fma", "neon"} & cpu_features())
    signature = ir.FunctionType(kind, [kind] * 3)
    multiply_add = cgutils.get_or_insert_function(builder.module, signature, f"llvm.fma.v{kind.count}f32")

    def at(entry: Any) -> Callable[[Any, Any], Any]:
        weight = _broadcast(builder, builder.load(builder.gep(array.data, [entry])), kind)
        if fused:
            return lambda total, value: builder.call(multiply_add, [value, weight, total])
        return lambda total, value: builder.fadd(total, builder.fmul(value, weight))

    return at


def _broadcast(builder: Any, scalar: Any, kind: ir.VectorType) -> Any:
    vector = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.IntType(32)(0))
    first = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(vector, vector, first)


class _Rows:
    """The rows of a matrix of float32, or of float16 seen as uint16, in vectors of some lanes."""

    def __init__(self, context: Any, builder: Any, matrix: Any, value: Any, lanes: int) -> None:
        array = context.make_array(matrix)(context, builder, value)
        self.builder = builder
        self.half = matrix.dtype == types.uint16
        self.native = float16.native(cpu_features())
        self.sum = ir.VectorType(ir.FloatType(), lanes)
        self.type = ir.VectorType(ir.IntType(16), lanes) if self.half else self.sum
        self.item = 2 if self.half else 4
        self.bytes = lanes * self.item
        self.data = builder.bitcast(array.data, _BYTE.as_pointer())
        self.stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]

    def at(self, row: Any) -> Any:
        return self.builder.gep(self.data, [self.builder.mul(row, self.stride)], source_etype=_BYTE)

    def _vector(self, place: Any, v: int) -> Any:
        pointer = self.builder.gep(place, [_INDEX(v * self.bytes)], source_etype=_BYTE)
        return self.builder.bitcast(pointer, self.type.as_pointer())

    def prefetch(self, row: Any, vectors: int) -> None:
        """Ask for a row's cache lines before they are needed."""
        pointer, flag = _BYTE.as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        function = self.builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        place = self.at(row)
        for offset in range(0, vectors * self.bytes, LINE):
            line = self.builder.gep(place, [_INDEX(offset)], source_etype=_BYTE)
            self.builder.call(function, [line, flag(0), flag(3), flag(1)])

    def load(self, place: Any, v: int) -> Any:
        vector = self.builder.load(self._vector(place, v), align=self.item)
        return float16.widen(self.builder, vector, native=self.native) if self.half else vector

    def store(self, vector: Any, place: Any, v: int) -> None:
        if self.half:
            vector = float16.narrow(self.builder, vector, native=self.native)
        self.builder.store(vector, self._vector(place, v), align=self.item)
