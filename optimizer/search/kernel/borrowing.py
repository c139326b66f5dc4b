"""Arrays without reference counts.

Counting references is atomic, and a step of the walk passes dozens of arrays through dozens of functions: it took
most of the time. Whoever calls a kernel from Python holds the arrays anyway, so inside they are only borrowed.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from optimizer.search.kernel.image import Image
from optimizer.search.kernel.jit import inlined

A = TypeVar("A")


def _borrowed(typing: Any, array: types.Array) -> tuple[Any, Any]:
    # Numba's own modules have no annotations.
    make_array, null = cast(Any, arrayobj).make_array, cast(Any, cgutils).get_null_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        borrowed = make_array(array)(context, builder, arguments[0])
        for owner in ("meminfo", "parent"):
            setattr(borrowed, owner, null(getattr(borrowed, owner).type))
        return borrowed._getvalue()

    return array(array), generate


borrowed = cast(Any, intrinsic)(_borrowed)
"""Return an array that refers to the same memory and does not keep it alive."""


@inlined
def borrow(s: Image) -> Image:
    """Return an image whose arrays are borrowed."""
    return Image(
        borrowed(s.head),
        borrowed(s.cls),
        borrowed(s.fix),
        borrowed(s.live),
        borrowed(s.weight),
        borrowed(s.fill),
        borrowed(s.pod),
        borrowed(s.on),
        borrowed(s.on_at),
        borrowed(s.width),
        borrowed(s.delta),
        borrowed(s.mask),
        borrowed(s.choice),
        borrowed(s.home),
        borrowed(s.member),
        borrowed(s.crew),
        borrowed(s.relation),
        borrowed(s.counter),
        borrowed(s.domain),
        borrowed(s.piece),
        borrowed(s.curve),
        borrowed(s.score),
        borrowed(s.load_weight),
        borrowed(s.prefer),
        borrowed(s.table),
        borrowed(s.opened),
        borrowed(s.excess_weight),
        borrowed(s.transient),
        borrowed(s.thing),
        borrowed(s.bundle),
        borrowed(s.bundle_at),
        borrowed(s.device),
        borrowed(s.held_part),
        borrowed(s.value),
    )
