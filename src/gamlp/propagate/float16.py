"""float16 ↔ float32 in LLVM, with one instruction where the machine has it and with integer arithmetic where not.

Both ways round to the nearest, ties to even, and give the same bits for every finite value; what is beyond 65,504
becomes infinity. float16 values are held as 16-bit integers: sign, 5 bits of exponent, 10 bits of mantissa.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir


def native(features: frozenset[str]) -> bool:
    """Tell whether the machine converts vectors of float16 itself."""
    return bool({"f16c", "avx512f", "neon"} & features)


def widen(builder: Any, half: Any, *, native: bool) -> Any:
    """Return 16-bit integers as float32."""
    single, word = _like(half.type, ir.FloatType()), _like(half.type, ir.IntType(32))
    if native:
        return builder.fpext(builder.bitcast(half, _like(half.type, ir.HalfType())), single)
    bits = builder.zext(half, word)
    sign = builder.shl(builder.and_(bits, _all(word, 0x8000)), _all(word, 16))
    magnitude = builder.shl(builder.and_(bits, _all(word, 0x7FFF)), _all(word, 13))
    value = builder.fmul(builder.bitcast(magnitude, single), _all(single, 2.0**112))  # moves the exponent's origin
    return builder.bitcast(builder.or_(builder.bitcast(value, word), sign), single)


def narrow(builder: Any, single: Any, *, native: bool) -> Any:
    """Return float32 as 16-bit integers."""
    half, word = _like(single.type, ir.IntType(16)), _like(single.type, ir.IntType(32))
    if native:
        return builder.bitcast(builder.fptrunc(single, _like(single.type, ir.HalfType())), half)
    bits = builder.bitcast(single, word)
    sign = builder.and_(builder.lshr(bits, _all(word, 16)), _all(word, 0x8000))
    magnitude = builder.and_(bits, _all(word, 0x7FFFFFFF))
    # drop 13 bits of the mantissa; adding half of their range, less one where the last kept bit is 0, rounds
    odd = builder.and_(builder.lshr(magnitude, _all(word, 13)), _all(word, 1))
    rounded = builder.add(builder.add(magnitude, _all(word, 0xFFF)), odd)
    normal = builder.lshr(builder.sub(rounded, _all(word, 112 << 23)), _all(word, 13))
    # below 2⁻¹⁴ float16 counts in steps of 2⁻²⁴; so does float32 between 1/2 and 1, and adding 1/2 rounds
    shifted = builder.fadd(builder.bitcast(magnitude, single.type), _all(single.type, 0.5))
    small = builder.sub(builder.bitcast(shifted, word), _all(word, 126 << 23))
    value = builder.select(builder.icmp_unsigned("<", magnitude, _all(word, 113 << 23)), small, normal)
    large = builder.icmp_unsigned(">=", magnitude, _all(word, 0x477FF000))
    return builder.trunc(builder.or_(builder.select(large, _all(word, 0x7C00), value), sign), half)


def _like(shape: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType(element, shape.count) if isinstance(shape, ir.VectorType) else element


def _all(kind: ir.Type, value: float) -> ir.Constant:
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)
