"""Kubernetes quantities, exactly.

A quantity is held as a whole number of *nanos* (10⁻⁹): every finite decimal that Kubernetes can represent is one,
because the API server itself rounds anything finer away from zero. Python's integers make sums and comparisons
exact; conversion to scheduler units happens once, at the point of use, and rounds up as the scheduler does.
"""

from __future__ import annotations

import re
from functools import lru_cache

NANO = 10**9
MAX_INT64 = 2**63 - 1

_SYNTAX = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d*)(?:\.(?P<fraction>\d*))?"
    r"(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_HINT = "is not a quantity such as 500m, 1.5, 2Gi, or 1e3; suffixes are n u m k M G T P E Ki Mi Gi Ti Pi Ei"


class Nanos(int):
    """A quantity that has been read: a whole number of nanos."""

    __slots__ = ()


def parse_quantity(value: str | int | float) -> Nanos:
    """Read a quantity as nanos.

    Parameters
    ----------
    value
        The text of a quantity, a JSON number (which is read as its text), or a quantity that has been read.

    Returns
    -------
    Nanos
        The value times 10⁹; finer parts are rounded away from zero. With a binary suffix the value is
        capped at 2⁶³−1, as upstream does.

    Raises
    ------
    ValueError
        If the text is not a quantity, or if it is too large for the int64 the scheduler computes with.
    """
    if isinstance(value, Nanos):
        return value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{value!r} {_HINT}")
    return _parse(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=65536)
def _parse(text: str) -> Nanos:
    match = _SYNTAX.fullmatch(text.strip(" "))
    if match is None or not (match["whole"] or match["fraction"]):
        raise ValueError(f"{text!r} {_HINT}")
    fraction = match["fraction"] or ""
    digits = int(match["whole"] + fraction)
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        nanos = min(_scale(digits << _BINARY[suffix], 9 - len(fraction)), MAX_INT64 * NANO)
    else:
        exponent = _DECIMAL[suffix] if suffix in _DECIMAL else _exponent(suffix[1:])
        nanos = _scale(digits, exponent + 9 - len(fraction))
        if nanos > MAX_INT64 * NANO:
            raise ValueError(f"{text!r} is too large; the maximum is {MAX_INT64}, as in the scheduler's int64")
    return Nanos(-nanos if match["sign"] == "-" else nanos)


def _exponent(text: str) -> int:
    # An exponent beyond ±400 is 0 or an overflow whatever the digits; do not build the power of ten.
    return max(-400, min(400, int(text)))


def _scale(digits: int, power: int) -> int:
    """Return ``digits · 10^power``, rounded up (the sign is applied later, so this is away from zero)."""
    ten: int = 10 ** abs(power)
    return digits * ten if power >= 0 else -(-digits // ten)


def whole(nanos: int) -> int:
    """Return the quantity as whole units, rounded up: what upstream calls ``Value()``."""
    return -(-nanos // NANO)


def milli(nanos: int) -> int:
    """Return the quantity as thousandths, rounded up: what upstream calls ``MilliValue()``."""
    return -(-nanos // (NANO // 1000))


def format_quantity(nanos: int) -> str:
    """Write a quantity exactly, with the coarsest of no suffix, ``m``, ``u`` and ``n``."""
    for suffix, size in (("", NANO), ("m", 1_000_000), ("u", 1_000)):
        if nanos % size == 0:
            return f"{nanos // size}{suffix}"
    return f"{nanos}n"
