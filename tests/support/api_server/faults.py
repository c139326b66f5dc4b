"""What can go wrong between a client and the cluster, ordered by a test for requests to come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.api_server.errors import Object
from tests.support.api_server.store import Store


@dataclass(frozen=True, slots=True)
class Request:
    """A request as faults see it: what it wants (``evict``, ``get``, ``list``, …), and where."""

    wish: str
    path: str
    body: Object | None = None


class Cut(Exception):
    """Raised by a fault: the connection is cut after this share of the answer has gone out."""

    def __init__(self, share: float = 0.0) -> None:
        super().__init__(share)
        self.share = share


Deed = Callable[[Request], None]
"""Does its harm: raises `ApiError` or `Cut`, sleeps, or changes the cluster."""


@dataclass
class _Fault:
    wish: str
    matching: str
    skip: int
    times: int
    after: bool
    deed: Deed


class Faults:
    """Faults to come, in the order they were ordered; each strikes requests of one wish."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[_Fault] = []
        self.stale: Store | None = None
        """Where reads are answered from while lists are stale."""

    def on(
        self, wish: str, deed: Deed, *, matching: str = "", skip: int = 0, times: int = 1, after: bool = False
    ) -> None:
        """Order a fault.

        Parameters
        ----------
        wish
            ``evict``, ``get``, ``list``, ``watch``, ``create``, ``patch``, ``update``, ``delete``, ``discover``, or
            ``any``.
        matching
            A part of the path that the request must have.
        skip, times
            How many such requests pass unharmed first, and how many are struck then.
        after
            Strike when the request has been carried out, before it is answered.
        """
        with self._lock:
            self._faults.append(_Fault(wish, matching, skip, times, after, deed))

    def clear(self) -> None:
        """Forget all faults that have not struck."""
        with self._lock:
            self._faults.clear()

    def strike(self, request: Request, *, after: bool) -> None:
        """Let those faults strike whose turn it is."""
        due: list[Deed] = []
        with self._lock:
            for fault in self._faults:
                if (
                    fault.after != after
                    or fault.wish not in {request.wish, "any"}
                    or fault.matching not in request.path
                ):
                    continue
                if fault.skip:
                    fault.skip -= 1
                elif fault.times:
                    fault.times -= 1
                    due.append(fault.deed)
        for deed in due:
            deed(request)


def refuse(error: Exception) -> Deed:
    """Answer with a refusal."""

    def deed(request: Request) -> None:
        raise error

    return deed


def cut(share: float = 0.0) -> Deed:
    """Cut the connection after a share of the answer."""
    return refuse(Cut(share))


def hang(seconds: float) -> Deed:
    """Say nothing for a while."""
    return lambda request: time.sleep(seconds)
