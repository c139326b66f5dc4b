"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a function on first call, keep the machine code on disk, and let other threads run meanwhile."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def inlined(function: F) -> F:
    """Like `compiled`, for small functions that are worth a copy at each place that calls them."""
    return cast(F, numba.njit(cache=True, nogil=True, forceinline=True)(function))
