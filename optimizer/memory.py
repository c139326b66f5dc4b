"""How much memory this process and its children use, and when to do without a stage."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stowplan.models.stop import Stop

PERIOD = 0.2
"""Seconds between two looks."""

SHARE = 0.8
"""Share of the memory that is free at the start which may be used if nobody says how much."""

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
PROC = Path("/proc")


def used() -> int:
    """Return the bytes that this process and its children hold; 0 where the system does not tell."""
    mine = os.getpid()
    return sum(_resident(pid) for pid in (mine, *_children(mine)))


def available() -> int | None:
    """Return the bytes that could be had on top, by the system's count and the control group's; ``None`` if unknown."""
    free = [_meminfo(), _cgroup()]
    known = [amount for amount in free if amount is not None]
    return min(known) if known else None


@dataclass(frozen=True, slots=True)
class Memory:
    """A limit on what may be held.

    Parameters
    ----------
    limit
        Bytes, or ``None`` for no limit.
    """

    limit: int | None

    @classmethod
    def granted(cls, limit: int | None) -> Memory:
        """Return the limit that was asked for, or most of what is free."""
        if limit is not None:
            return cls(limit)
        free = available()
        return cls(None if free is None else used() + int(SHARE * free))

    def admits(self, more: int) -> bool:
        """Whether so many more bytes stay within the limit."""
        return self.limit is None or used() + more <= self.limit

    @contextmanager
    def watched(self, stop: Stop) -> Iterator[Stop]:
        """Yield a signal that is set when the given one is, or when the limit is passed."""
        inner = Either(stop)
        if self.limit is None or not used():
            yield inner
            return
        done = threading.Event()

        def look() -> None:
            while not done.wait(PERIOD):
                if used() > self.limit:  # type: ignore[operator]
                    inner.set()
                    return

        thread = threading.Thread(target=look, name="memory", daemon=True)
        thread.start()
        try:
            yield inner
        finally:
            done.set()
            thread.join()


class Either(Stop):
    """A stop signal that another one sets too."""

    def __init__(self, other: Stop) -> None:
        super().__init__()
        self.other = other

    def is_set(self) -> bool:
        """Whether either is set."""
        return super().is_set() or self.other.is_set()


def _resident(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _children(pid: int) -> list[int]:
    found = []
    for file in PROC.glob(f"{pid}/task/*/children"):
        try:
            found += [int(child) for child in file.read_text().split()]
        except OSError:
            continue
    return found


def _meminfo() -> int | None:
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)


def _cgroup() -> int | None:
    """Return what the control group leaves, if it limits memory (version 2)."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        return None if limit == "max" else int(limit) - int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        return None
