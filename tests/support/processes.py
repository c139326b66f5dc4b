"""Looks at the worker processes of another process."""

from __future__ import annotations

import time

import psutil


def workers_of(pid: int | None = None) -> list[psutil.Process]:
    """Return the workers that a process, by default this one, has begun, and those that they have begun."""
    begun = psutil.Process(pid).children(recursive=True)
    return [process for process in begun if "spawn_main" in " ".join(process.cmdline())]


def ended(processes: list[psutil.Process], seconds: float = 10.0) -> bool:
    """Wait for processes to end, whosever children they are; return whether they have."""
    until = time.monotonic() + seconds
    while any(map(_runs, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(_runs, processes))


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
