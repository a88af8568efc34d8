"""Compiled loops over rows for training on a CPU: float32, one pass over memory each.

Every kernel takes a range of chunks of `CHUNK` rows and writes what it sums over rows (the sums of columns) once per
chunk, in float32; the caller adds the chunks up in float64, in order. So the bits depend neither on the number of
threads nor on who ran which chunk. Each is compared with plain torch in the tests.

`run` deals the chunks to Python threads (the kernels release the lock): numba's own thread pool would compete with
torch's, and is not safe to enter from several threads.
"""

# Compiled functions take plain positional arguments, and numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch

from gamlp.storage.numba_cache import cached_njit

CHUNK = 256
_ALONE = 1 << 17  # arrays with fewer elements than this are not worth a second thread

compiled = cached_njit(fastmath={"contract", "reassoc", "nsz"}, boundscheck=False)


def chunks_of(rows: int) -> int:
    """Return the number of chunks of so many rows."""
    return -(-rows // CHUNK)


def run(kernel: Callable[..., None], like: np.ndarray[Any, Any], *arguments: Any) -> None:
    """Call kernel(first, last, like, *arguments) for all chunks of rows of `like`, on torch's number of threads."""
    chunks = chunks_of(len(like))
    threads = min(torch.get_num_threads(), chunks) if like.size >= _ALONE else 1
    if threads == 1:
        kernel(0, chunks, like, *arguments)
        return
    bounds = [chunks * thread // threads for thread in range(threads + 1)]
    pool = _pool(os.getpid(), threads)
    others = [pool.submit(kernel, bounds[i], bounds[i + 1], like, *arguments) for i in range(1, threads)]
    kernel(0, bounds[1], like, *arguments)
    for other in others:
        other.result()


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return this process's threads; a forked process makes its own."""
    return ThreadPoolExecutor(threads - 1, thread_name_prefix=f"gamlp-{process}")


@compiled
def _mix(x):
    """MurmurHash3's finalizer, as in `dropout`; numba widens what it is not told to keep at 32 bits."""
    x = np.uint32(np.uint32(x ^ np.uint32(x >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    x = np.uint32(np.uint32(x ^ np.uint32(x >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(x ^ np.uint32(x >> np.uint32(16)))


@compiled
def draw(words, first, low, high):
    """Fill `words` (W,) uint32 with the keystream from word `first` on; low and high are the halves of its key."""
    start = np.uint32(np.uint32(first) + low)
    for j in range(len(words)):
        words[j] = _mix(np.uint32(_mix(np.uint32(start + np.uint32(j))) ^ high))


@compiled
def column_moments(first, last, x, shift, sums):
    """Sum x − shift and its square.  x (B, H), shift (H,) → sums (chunks, 2, H)."""
    rows, columns = x.shape
    for chunk in range(first, last):
        total, square = sums[chunk, 0], sums[chunk, 1]
        total[:] = 0
        square[:] = 0
        for row in range(chunk * CHUNK, min((chunk + 1) * CHUNK, rows)):
            for c in range(columns):
                d = x[row, c] - shift[c]
                total[c] += d
                square[c] += d * d


@compiled
def forward_rows(first, last, x, skip, scale, shift, slope, threshold, factor, low, high, out):
    """Compute out = dropout(PReLU(x·scale + shift + skip)).  skip (B, H), or (0, H) for none; the others (H,)."""
    rows, columns = x.shape
    words = np.zeros(columns // 4 + 2, np.uint32)
    bytes_ = words.view(np.uint8)
    for row in range(first * CHUNK, min(last * CHUNK, rows)):
        start = row * columns
        if threshold > 0:
            draw(words, start >> 2, low, high)
        draws = bytes_[start & 3 :]
        if len(skip) > 0:
            for c in range(columns):
                t = x[row, c] * scale[c] + shift[c] + skip[row, c]
                t = t if t > 0 else t * slope[c]
                out[row, c] = t * factor if draws[c] >= threshold else np.float32(0)
        else:
            for c in range(columns):
                t = x[row, c] * scale[c] + shift[c]
                t = t if t > 0 else t * slope[c]
                out[row, c] = t * factor if draws[c] >= threshold else np.float32(0)


@compiled
def backward_rows(first, last, x, skip, scale, shift, slope, mean, threshold, factor, low, high, grad, out, sums):
    """Compute out = gradient of x·scale + shift; sums (chunks, 3, H): out, out·(x − mean), gradient of the slope."""
    rows, columns = x.shape
    words = np.zeros(columns // 4 + 2, np.uint32)
    bytes_ = words.view(np.uint8)
    zero, one = np.float32(0), np.float32(1)
    before, passed = np.empty(columns, np.float32), np.empty(columns, np.float32)
    total, moment, slopes = np.empty(columns, np.float32), np.empty(columns, np.float32), np.empty(columns, np.float32)
    for chunk in range(first, last):
        total[:] = 0
        moment[:] = 0
        slopes[:] = 0
        for row in range(chunk * CHUNK, min((chunk + 1) * CHUNK, rows)):
            start = row * columns
            if threshold > 0:
                draw(words, start >> 2, low, high)
            draws = bytes_[start & 3 :]
            # Short loops over a row that stays in cache: with more arrays in one loop, it is not vectorised.
            for c in range(columns):
                before[c] = x[row, c] * scale[c] + shift[c]
            if len(skip) > 0:
                for c in range(columns):
                    before[c] += skip[row, c]
            for c in range(columns):
                passed[c] = factor if draws[c] >= threshold else zero
            for c in range(columns):
                passed[c] *= grad[row, c]
            for c in range(columns):
                out[row, c] = passed[c] * (one if before[c] > 0 else slope[c])
            for c in range(columns):
                slopes[c] += passed[c] * (zero if before[c] > 0 else before[c])
            for c in range(columns):
                total[c] += out[row, c]
            for c in range(columns):
                moment[c] += out[row, c] * (x[row, c] - mean[c])
        sums[chunk, 0], sums[chunk, 1], sums[chunk, 2] = total, moment, slopes


@compiled
def norm_backward_rows(first, last, x, mean, a, b, c, grad, out):
    """Compute out = a·grad + b·(x − mean) + c, columnwise: the gradient through a batch norm.  out may be grad."""
    rows, columns = x.shape
    for row in range(first * CHUNK, min(last * CHUNK, rows)):
        for k in range(columns):
            out[row, k] = a[k] * grad[row, k] + b[k] * (x[row, k] - mean[k]) + c[k]


@compiled
def product_rows(first, last, y, vectors, out):
    """Compute out[b, l, v] = y[b, l] · vectors[l, v]."""
    rows, hops, width = y.shape
    for row in range(first * CHUNK, min(last * CHUNK, rows)):
        for hop in range(hops):
            for v in range(vectors.shape[1]):
                total = np.float32(0)
                for c in range(width):
                    total += y[row, hop, c] * vectors[hop, v, c]
                out[row, hop, v] = total


@compiled
def product_backward_rows(first, last, y, vectors, grad, out, sums):
    """Compute out[b, l] = Σ_v grad[b, l, v]·vectors[l, v]; sums (chunks, K+1, V, H) of grad[b, l, v]·y[b, l]."""
    rows, hops, width = y.shape
    for chunk in range(first, last):
        sums[chunk] = 0
        for row in range(chunk * CHUNK, min((chunk + 1) * CHUNK, rows)):
            for hop in range(hops):
                out[row, hop] = 0
                for v in range(vectors.shape[1]):
                    g = grad[row, hop, v]
                    total = sums[chunk, hop, v]
                    for c in range(width):
                        out[row, hop, c] += g * vectors[hop, v, c]
                        total[c] += g * y[row, hop, c]


@compiled
def scale_rows(first, last, y, weights, out):
    """Compute out[b, l] = weights[b, l]·y[b, l]."""
    rows, hops, width = y.shape
    for row in range(first * CHUNK, min(last * CHUNK, rows)):
        for hop in range(hops):
            w = weights[row, hop]
            for c in range(width):
                out[row, hop, c] = w * y[row, hop, c]


@compiled
def scale_backward_rows(first, last, y, weights, grad, products):
    """Compute products[b, l] = grad[b, l]·y[b, l]; then multiply grad[b, l] by weights[b, l], in place."""
    rows, hops, width = y.shape
    for row in range(first * CHUNK, min(last * CHUNK, rows)):
        for hop in range(hops):
            w = weights[row, hop]
            total = np.float32(0)
            for c in range(width):
                g = grad[row, hop, c]
                total += g * y[row, hop, c]
                grad[row, hop, c] = w * g
            products[row, hop] = total
