"""`layers.activate`, `layers.product` and the sums of `hop_nets` as single operations for the CPU, with gradients.

    activate:   t = scale·x + shift + skip,   scale = γ/√(σ²+ε),   shift = β + scale·(bias − μ);   y = dropout(PReLU(t))

A bias in front of a batch norm in training is cancelled by it: it moves the running mean alone and has gradient 0.
Backward draws the dropout mask again from its key and computes t again from x: x is all that is saved.
"""

# Autograd functions are untyped in torch; the lines below them give them types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, override"

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gamlp.model.cpu import kernels
from gamlp.model.cpu.buffer_pool import empty_tensor
from gamlp.model.cpu.products import multiply, multiply_transposed

if TYPE_CHECKING:
    from gamlp.model.dropout import Dropout
    from gamlp.model.layers import BatchNorm

Array = np.ndarray[Any, Any]


def keystream(words: int, key: int) -> Tensor:
    """Return the first bytes of a key's stream, as `dropout.keystream` defines them: (4·words,) uint8."""
    out = np.empty(words, np.uint32)
    kernels.draw(out, 0, np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32))
    return torch.from_numpy(out.view(np.uint8))


class Affine(NamedTuple):
    """Columnwise scale·x + shift, and the mean and 1/√(σ²+ε) of x it was made from (0 and 1 without a norm)."""

    scale: Array
    shift: Array
    mean: Array
    inverse: Array


def _affine(x: Array, bias: Tensor | None, norm: BatchNorm | None) -> Affine:
    """Return what bias and batch norm do to x; in training, also track the norm's running statistics."""
    columns = x.shape[1]
    offset = np.zeros(columns, np.float32) if bias is None else _array(bias)
    if norm is None:
        ones = np.ones(columns, np.float32)
        return Affine(ones, offset, np.zeros(columns, np.float32), ones)
    if norm.training:
        mean, variance = _moments(x)
        tracked = torch.from_numpy((mean + offset).astype(np.float32))
        norm.track(tracked, torch.from_numpy(variance.astype(np.float32)), rows=len(x))
    else:
        mean, variance = _array(norm.running_mean) - offset, _array(norm.running_variance)
    inverse = 1 / np.sqrt(variance + norm.epsilon)
    scale = _array(norm.weight) * inverse
    values = (scale, _array(norm.bias) - mean * scale, mean, inverse)
    return Affine(*(np.ascontiguousarray(value, np.float32) for value in values))


def _moments(x: Array) -> tuple[Array, Array]:
    """Return the mean and (biased) variance of each column, in float64."""
    sums = np.empty((kernels.chunks_of(len(x)), 2, x.shape[1]), np.float32)
    kernels.run(kernels.column_moments, x, x[0], sums)
    first, second = sums.sum(axis=0, dtype=np.float64) / len(x)
    return x[0] + first, np.maximum(second - first * first, 0)


class _Activate(torch.autograd.Function):
    """dropout(PReLU(norm(x + bias) + skip)), x (B, H); the norm's parameters come too, for their gradients."""

    @staticmethod
    def forward(ctx: Any, x, bias, skip, slope, norm, dropout, *parameters):
        x = x.contiguous()
        skip = None if skip is None else skip.contiguous()
        ctx.affine = _affine(_array(x), bias, norm)
        ctx.static = norm is None or not norm.training
        ctx.drop = _drop_arguments(dropout)
        ctx.has = (bias is not None, norm is not None, skip is not None, slope is not None)
        out = empty_tensor(x.shape)
        affine, slopes = ctx.affine, _slopes(slope, x.shape[1])
        arguments = (_skip(skip, x), affine.scale, affine.shift, slopes, *ctx.drop)
        kernels.run(kernels.forward_rows, _array(x), *arguments, _array(out))
        ctx.save_for_backward(x, skip, slope)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, skip, slope = ctx.saved_tensors
        has_bias, has_norm, has_skip, has_slope = ctx.has
        rows, columns = x.shape
        a: Affine = ctx.affine
        sums = np.empty((kernels.chunks_of(rows), 3, columns), np.float32)
        inner = empty_tensor(x.shape)
        arguments = (_skip(skip, x), a.scale, a.shift, _slopes(slope, columns), a.mean, *ctx.drop)
        kernels.run(kernels.backward_rows, _array(x), *arguments, _array(grad.contiguous()), _array(inner), sums)
        total, moment, slopes = sums.sum(axis=0, dtype=np.float64)
        dx = inner
        if has_norm:
            dx = empty_tensor(x.shape) if has_skip else inner
            share = 0.0 if ctx.static else 1 / rows
            b, c = (-share * a.scale * a.inverse**2 * moment), (-share * a.scale * total)
            columnwise = (a.scale, b.astype(np.float32), c.astype(np.float32))
            kernels.run(kernels.norm_backward_rows, _array(x), a.mean, *columnwise, _array(inner), _array(dx))
        d_bias = _tensor(a.scale * total * float(ctx.static)) if has_bias else None
        d_slope = _tensor(slopes.reshape(len(slope), -1).sum(axis=1)) if has_slope else None
        d_norm = (_tensor(moment * a.inverse), _tensor(total)) if has_norm else ()
        return dx, d_bias, inner if has_skip else None, d_slope, None, None, *d_norm


class _Product(torch.autograd.Function):
    """x W and both gradients, as torch's own but for where the results lie.  x (B, F), weight (F, H) → (B, H)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiply(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        dx = multiply(grad, weight.T) if ctx.needs_input_grad[0] else None
        return dx, multiply_transposed(x, grad)


class _HopLinear(torch.autograd.Function):
    """xˡ Wˡ, reading and writing the hops where they lie.  x (B, K+1, F), weight (K+1, F, H) → (B, K+1, H)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        out = empty_tensor((len(x), len(weight), weight.shape[2]))
        for hop in range(len(weight)):
            multiply(x[:, hop], weight[hop], out[:, hop])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        d_weight = torch.empty_like(weight)
        for hop in range(len(weight)):
            d_weight[hop] = multiply_transposed(x[:, hop], grad[:, hop])
            if dx is not None:
                multiply(grad[:, hop], weight[hop].T, dx[:, hop])
        return dx, d_weight


class _HopProducts(torch.autograd.Function):
    """y[b, l]·vectors[l, v].  y (B, K+1, H), vectors (K+1, V, H) → (B, K+1, V)."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, vectors: Tensor) -> Tensor:
        vectors = vectors.contiguous()
        ctx.save_for_backward(y, vectors)
        out = y.new_empty(*y.shape[:2], vectors.shape[1])
        kernels.run(kernels.product_rows, _array(y), _array(vectors), _array(out))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        y, vectors = ctx.saved_tensors
        sums = np.empty((kernels.chunks_of(len(y)), *vectors.shape), np.float32)
        dy = empty_tensor(y.shape)
        arguments = (_array(vectors), _array(grad.contiguous()), _array(dy), sums)
        kernels.run(kernels.product_backward_rows, _array(y), *arguments)
        return dy, _tensor(sums.sum(axis=0, dtype=np.float64))


class _HopSum(torch.autograd.Function):
    """Σ_l weights[b, l]·y[b, l] Wˡ in one product.  y (B, K+1, H), weights (B, K+1), matrix (K+1, H, H') → (B, H')."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, weights: Tensor, matrix: Tensor) -> Tensor:
        weights = weights.contiguous()
        scaled = empty_tensor(y.shape)
        kernels.run(kernels.scale_rows, _array(y), _array(weights), _array(scaled))
        ctx.save_for_backward(y, weights, matrix, scaled)
        return multiply(scaled.flatten(1), matrix.flatten(0, 1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        y, weights, matrix, scaled = ctx.saved_tensors
        d_matrix = multiply_transposed(scaled.flatten(1), grad)
        dy, products = empty_tensor(y.shape), torch.empty_like(weights)
        multiply(grad, matrix.flatten(0, 1).T, dy.flatten(1))
        kernels.run(kernels.scale_backward_rows, _array(y), _array(weights), _array(dy), _array(products))
        return dy, products, d_matrix.view_as(matrix)


activate: Callable[..., Tensor] = _Activate.apply
product: Callable[[Tensor, Tensor], Tensor] = _Product.apply
hop_linear: Callable[[Tensor, Tensor], Tensor] = _HopLinear.apply
hop_products: Callable[[Tensor, Tensor], Tensor] = _HopProducts.apply
hop_sum: Callable[[Tensor, Tensor, Tensor], Tensor] = _HopSum.apply


def _array(x: Tensor) -> Array:
    return x.detach().numpy()


def _tensor(x: Array) -> Tensor:
    return torch.from_numpy(x.astype(np.float32))


def _skip(skip: Tensor | None, x: Tensor) -> Array:
    return np.empty((0, x.shape[1]), np.float32) if skip is None else _array(skip)


def _slopes(slope: Tensor | None, columns: int) -> Array:
    return np.ones(columns, np.float32) if slope is None else np.repeat(_array(slope), columns // len(slope))


def _drop_arguments(dropout: Dropout | None) -> tuple[int, np.float32, np.uint32, np.uint32]:
    """Return threshold, factor of what is kept, and the two halves of the key."""
    if dropout is None or not dropout.active:
        return 0, np.float32(1), np.uint32(0), np.uint32(0)
    low, high = dropout.key & 0xFFFFFFFF, dropout.key >> 32
    return dropout.threshold, np.float32(dropout.scale), np.uint32(low), np.uint32(high)
