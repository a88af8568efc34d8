"""Dropout as a function of (seed, step, call, site): no state to save, and the same masks on every device.

Each place in the network that drops is a site; they are numbered in the order of its modules. Element i of a site's
input is kept if byte i of a stream is at least 256·rate, and is then divided by the share kept, which preserves the
mean:

    word(j) = mix(mix(j + k₀) xor k₁)                    (k₀, k₁) = 64 bits hashed from (seed, step, call, site)
    byte(i) = byte (i mod 4) of word(i div 4)            mix: the finalizer of MurmurHash3, on 32 bits

One hash serves four elements, and backward can draw the same mask again instead of keeping it. The price is that rates
are multiples of 1/256: 0.5 is exact, 0.2 is 51/256 = 0.199.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn

from gamlp.model.cpu import fused, runs_on

_LOW32 = 0xFFFFFFFF
_LOW64 = 0xFFFFFFFFFFFFFFFF
MIX_1, MIX_2 = 0x85EBCA6B, 0xC2B2AE35


class Dropout(nn.Module):
    """One site: drops in training, passes its input on in evaluation."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.threshold, self.key = byte_threshold(rate), 0

    @property
    def scale(self) -> float:
        """What a kept element is multiplied by."""
        return 256 / (256 - self.threshold)

    @property
    def active(self) -> bool:
        """Whether anything is dropped now."""
        return self.training and self.threshold > 0

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of x, of any shape."""
        if self.active and runs_on(x) and x.dim() > 1:
            return fused.activate(x.reshape(len(x), -1), None, None, None, None, self).view_as(x)
        mask = self.mask(x.shape, x)
        return x if mask is None else x * mask

    def mask(self, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
        """Return what to multiply by, 0 or 256 / (256 − threshold), or None where nothing is dropped."""
        if not self.active:
            return None
        length = prod(shape)
        if like.device.type == "cpu":
            stream = fused.keystream((length + 3) // 4, self.key)[:length]
        else:
            stream = keystream(length, key=self.key, device=like.device)
        return (stream >= self.threshold).view(shape).to(like.dtype).mul_(self.scale)


def byte_threshold(rate: float) -> int:
    """Return the smallest byte that is kept; a rate above 0 is never rounded down to none, nor up to all."""
    return min(max(round(256 * rate), 1), 255) if rate > 0 else 0


def set_keys(network: nn.Module, *, seed: int, step: int, call: int) -> None:
    """Key every dropout of the network, each a site of its own, for one forward pass."""
    shared = hash64(hash64(hash64(seed) ^ step) ^ call)
    for site, dropout in enumerate(module for module in network.modules() if isinstance(module, Dropout)):
        dropout.key = hash64(shared ^ site)


def hash64(x: int) -> int:
    """Return 64 well-mixed bits of x (the SplitMix64 step)."""
    x = (x + 0x9E3779B97F4A7C15) & _LOW64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _LOW64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _LOW64
    return x ^ (x >> 31)


def keystream(length: int, *, key: int, device: torch.device) -> Tensor:
    """Return the first bytes of a key's stream: (length,) uint8."""
    word = torch.arange((length + 3) // 4, dtype=torch.int64, device=device)
    word = _mix(_mix((word + (key & _LOW32)) & _LOW32) ^ (key >> 32))
    return word.view(torch.uint8).view(-1, 8)[:, :4].reshape(-1)[:length]


def _mix(x: Tensor) -> Tensor:
    """MurmurHash3's finalizer on 32-bit numbers held in int64, whose products may wrap: only low bits are kept."""
    x = ((x ^ (x >> 16)) * MIX_1) & _LOW32
    x = ((x ^ (x >> 13)) * MIX_2) & _LOW32
    return x ^ (x >> 16)
