"""Threads of the linear algebra library.

The matrices here are small. Several threads then wait for each other longer than they compute, on a busy machine ten
times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let matrices be multiplied by one thread, in the whole process."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
