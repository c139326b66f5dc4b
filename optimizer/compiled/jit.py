"""How kernels are compiled; `kernel_cache` says where their machine code is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import types

from stowplan.optimizer.compiled.kernel_cache import KernelCache, folder

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a function on first call, keep the machine code on disk, and let other threads run meanwhile.

    References to arrays are not counted: whoever calls from Python holds the arrays. Counting takes most of the time
    where a step passes dozens of arrays through dozens of functions, and most of the time to compile.
    """
    return _kept(function)


def inlined(function: F) -> F:
    """Like `compiled`, for small functions that are worth a copy at each place that calls them."""
    return _kept(function, forceinline=True)


def merged(function: F) -> F:
    """Like `compiled`, for functions that become part of whoever calls them before anything is compiled.

    Each compiled function is optimized together with all that it calls, and again as part of whoever calls it. Where a
    large function is called through several others, all but the first and the last had better be merged.
    """
    return _kept(function, inline="always")


def allocating(function: F) -> F:
    """Like `compiled`, for functions that make arrays: these alone count references."""
    return _kept(function, _nrt=True)


def _kept(function: F, **options: bool | str) -> F:
    settings: dict[str, bool | str] = {"nogil": True, "_nrt": False}
    kernel = cast(Any, numba.njit)(**settings | options)(function)
    _take_wide_numbers(kernel)
    kept = folder()
    if kept is not None:
        kernel._cache = KernelCache(function, kept)
    return cast(F, kernel)


def _take_wide_numbers(kernel: Any) -> None:
    """Have a kernel compiled once for all whole numbers with a sign, as 64 bits, and not anew for each constant.

    Callers convert what they pass. That is a third of the kernels, and of the time to compile.
    """
    fold = kernel._compiler.fold_argument_types

    def folded(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        signature, kinds = fold(args, keywords)
        return signature, tuple(_wide(kind) for kind in kinds)

    kernel._compiler.fold_argument_types = folded


def _wide(kind: Any) -> Any:
    numbers: Any = types
    kind = numbers.unliteral(kind)
    return numbers.int64 if isinstance(kind, numbers.Integer) and kind.signed else kind
