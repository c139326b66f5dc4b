"""Floating-point operations that Go does in its own way, where a last bit could turn a score."""

from __future__ import annotations

import math

import numpy as np

from stowplan.models.arrays import Floats, Ints


def rounded(values: Floats) -> Ints:
    """Round half away from zero, as Go's ``math.Round`` does."""
    whole = np.trunc(values)
    up = np.abs(values - whole) >= 0.5
    result: Ints = (whole + np.where(up, np.copysign(1.0, values), 0.0)).astype(np.int64)
    return result


def clipped(values: Floats, highest: float | Floats = 1.0) -> Floats:
    """Return values between 0 and ``highest``."""
    result: Floats = np.maximum(np.minimum(values, highest), 0.0)
    return result


def power(base: float, exponent: float) -> float:
    """Return ``base ** exponent`` for a base from 0 to 1 and an exponent above 0.

    Go multiplies up the whole part of the exponent, takes square roots as such, and only for what then remains of
    the exponent goes through the logarithm; so squares and square roots are correctly rounded.
    """
    if base in (0.0, 1.0) or exponent == 1:
        return base
    if math.isinf(exponent):
        return 0.0
    if exponent == 0.5:
        return math.sqrt(base)
    part, whole = math.modf(exponent)
    if part > 0.5:
        part, whole = part - 1, whole + 1
    result = math.exp(part * math.log(base)) if part else 1.0
    square, left = base, int(whole)
    while left:
        if left & 1:
            result *= square
        square *= square
        left >>= 1
    return result
