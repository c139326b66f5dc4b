"""The beta distribution of a load between 0 and 1, fitted to a mean and a standard deviation.

``I_x(a, b)`` is computed as the Cephes library does it (S. L. Moshier, *Methods and Programs for Mathematical
Functions*, 1989), since upstream's library does: a power series, or one of two continued fractions, each cut off
after 301 steps. For very narrow distributions that is too early, and then the error is part of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

EPSILON = 2.0**-53
LARGE = 2.0**52
STEPS = 301

LARGEST_GAMMA = 171.624376956302725
"""Largest argument whose gamma function is a float."""
LARGEST_LOG, SMALLEST_LOG = 1024 * math.log(2), -1075 * math.log(2)

TINIEST = 5e-324


@dataclass(frozen=True, slots=True)
class Beta:
    """A beta distribution with parameters ``a`` and ``b``."""

    a: float
    b: float

    def below(self, x: float) -> float:
        """Return the probability of at most ``x``, for ``x`` from 0 to 1; 0 where it cannot be computed."""
        if x in (0.0, 1.0):
            return x
        try:
            p = incomplete_beta(self.a, self.b, x)
        except (ArithmeticError, ValueError):  # a logarithm of nothing, or a result beyond all floats
            return 0.0
        return p if 0 <= p <= 1 else 0.0


def highest_variance(mean: float) -> float:
    """Return the variance that no distribution from 0 to 1 with this mean reaches: ``μ(1 − μ)``."""
    return mean * (1 - mean) if 0 < mean < 1 else 0.0


def fit(mean: float, deviation: float) -> Beta | None:
    """Return the distribution with this mean and standard deviation, or ``None`` if there is none.

    With ``k = μ(1 − μ)/σ² − 1`` the parameters are ``μk`` and ``(1 − μ)k``. The variance is recovered from the
    second moment, as upstream does, so a tiny one is lost.
    """
    variance = (deviation * deviation + mean * mean) - mean * mean
    most = mean * (1 - mean)
    if not 0 <= mean <= 1 or not 0 <= variance < most:
        return None
    k = max(most / variance - 1, TINIEST) if variance else math.inf
    return Beta(mean * k, (1 - mean) * k)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function ``I_x(a, b)`` for positive ``a`` and ``b``, ``0 < x < 1``."""
    if math.isinf(a + b):
        return math.nan
    if b * x <= 1 and x <= 0.95:
        return _series(a, b, x)
    if x <= a / (a + b):
        return _fraction(a, b, x, 1 - x)
    # Beyond the mean, the other tail is the small one: I_x(a, b) = 1 − I_{1−x}(b, a).
    rest = 1 - x
    tail = _series(b, a, rest) if a * rest <= 1 and rest <= 0.95 else _fraction(b, a, rest, x)
    return 1 - max(tail, EPSILON)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _series(a: float, b: float, x: float) -> float:
    """``x^a / B(a, b) · Σ_n (1 − b)(2 − b)…(n − b) x^n / (n! (a + n))``."""
    product = (1 - b) * x
    first = term = product / (a + 1)
    total, n = 0.0, 2.0
    while abs(term) > EPSILON / a:
        product *= (n - b) * x / n
        term = product / (a + n)
        total += term
        n += 1
    total = total + first + 1 / a
    log_power = a * math.log(x)
    if a + b < LARGEST_GAMMA and abs(log_power) < LARGEST_LOG:
        return total * (1 / math.exp(_log_beta(a, b))) * math.pow(x, a)
    return _exponential(-_log_beta(a, b) + log_power + math.log(total))


def _fraction(a: float, b: float, x: float, rest: float) -> float:
    """``x^a (1 − x)^b / (a B(a, b))`` times a continued fraction in ``x``, or in ``x / (1 − x)`` where it is faster."""
    if x * (a + b - 2) - (a - 1) < 0:
        value = _continued(a, x, a + b, 1.0, b - 1, -1.0)
    else:
        value = _continued(a, x / (1 - x), b - 1, -1.0, a + b, 1.0) / rest
    log_power, log_rest = a * math.log(x), b * math.log(rest)
    if a + b < LARGEST_GAMMA and abs(log_power) < LARGEST_LOG and abs(log_rest) < LARGEST_LOG:
        return math.pow(rest, b) * math.pow(x, a) / a * value * (1 / math.exp(_log_beta(a, b)))
    return _exponential(log_power + (log_rest - _log_beta(a, b)) + math.log(value / a))


def _exponential(logarithm: float) -> float:
    return 0.0 if logarithm < SMALLEST_LOG else math.exp(logarithm)


def _continued(a: float, x: float, odd: float, odd_step: float, even: float, even_step: float) -> float:
    """Evaluate ``1 / (1 + d₁ / (1 + d₂ / …))`` forward, by its convergents.

    ``d`` with an odd index is ``−(a + n)(odd ± n) x / ((a + 2n)(a + 2n + 1))``, the next one
    ``(n + 1)(even ∓ n) x / ((a + 2n + 1)(a + 2n + 2))``, for ``n`` from 0.
    """
    above, above_before, below, below_before = 1.0, 0.0, 1.0, 1.0
    value = 1.0
    for n in range(STEPS):
        wide = a + 2 * n
        for d in (
            -(x * (a + n) * (odd + odd_step * n)) / (wide * (wide + 1)),
            (x * (n + 1) * (even + even_step * n)) / ((wide + 1) * (wide + 2)),
        ):
            above, above_before = above + above_before * d, above
            below, below_before = below + below_before * d, below
        ratio = above / below if below else value
        if ratio:
            change, value = abs((value - ratio) / ratio), ratio
            if change < 3 * EPSILON:
                break
        if abs(above) + abs(below) > LARGE:
            scale = 1 / LARGE
        elif min(abs(above), abs(below)) < 1 / LARGE:
            scale = LARGE
        else:
            continue
        above, above_before, below, below_before = (v * scale for v in (above, above_before, below, below_before))
    return value
