"""How much memory this process and its descendants use, and when to do without a stage.

Processes and the machine are read by psutil. What it does not know are control groups: in a container or a systemd
slice, the group's limit is what counts, and that of every group around it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

from stowplan.models.stop import Either, Stop

PERIOD = 0.2
"""Seconds between two looks."""

SHARE = 0.8
"""Share of the memory that is free at the start which may be used without an explicit limit."""

SELF = Path("/proc/self")
"""Where the system tells of the control groups of this process: see ``cgroups(7)``."""


def used() -> int:
    """Return the bytes that this process and its descendants hold in physical memory."""
    process = psutil.Process()
    held: int = process.memory_info().rss
    for descendant in process.children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            held += descendant.memory_info().rss
    return held


def available() -> int:
    """Return the bytes that could be had on top: of the machine's memory, and within every control group's limit."""
    free: int = psutil.virtual_memory().available
    return max(0, min([free, *_free_in_groups()]))


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
        return cls(used() + int(SHARE * available()) if limit is None else limit)

    def admits(self, more: int) -> bool:
        """Whether so many more bytes stay within the limit."""
        return self.limit is None or used() + more <= self.limit

    @contextmanager
    def watched(self, stop: Stop) -> Iterator[Stop]:
        """Yield a signal that is set when the given one is, or when the limit is passed."""
        inner = Either(stop)
        limit = self.limit
        if limit is None:
            yield inner
            return
        done = threading.Event()

        def look() -> None:
            while not done.wait(PERIOD):
                if used() > limit:
                    inner.set()
                    return

        thread = threading.Thread(target=look, name="memory", daemon=True)
        thread.start()
        try:
            yield inner
        finally:
            done.set()
            thread.join()


# -- control groups -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Files:
    """What a version of control groups calls its files for memory.

    Parameters
    ----------
    cache
        Entry of ``memory.stat`` with the file cache that has not been used of late: it is counted as used, and given
        back when there is need.
    """

    limit: str
    usage: str
    cache: str


_FILES = {
    "cgroup": _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "cgroup2": _Files("memory.max", "memory.current", "inactive_file"),
}
"""By the name of the file system, which tells the versions apart."""


def _free_in_groups() -> Iterator[int]:
    """Yield what each control group of this process leaves free, if it limits memory."""
    for version, mount, root, group in _memory_groups():
        try:
            below = PurePosixPath(group).relative_to(root)
        except ValueError:
            below = PurePosixPath()  # the group lies outside of what is mounted: its root is all that can be seen
        for folder in (below, *below.parents):
            free = _free(mount / folder, _FILES[version])
            if free is not None:
                yield free


def _memory_groups() -> Iterator[tuple[str, Path, str, str]]:
    """Yield version, mount point, mounted root and group of this process for each hierarchy that counts memory."""
    try:
        groups = (SELF / "cgroup").read_text().splitlines()
        mounts = (SELF / "mountinfo").read_text().splitlines()
    except OSError:
        return  # not Linux
    # hierarchy:controllers:group, where version 2 names no controllers
    group_of = {
        "cgroup" if controllers else "cgroup2": group
        for _, controllers, group in (line.split(":", 2) for line in groups)
        if not controllers or "memory" in controllers.split(",")
    }
    for line in mounts:
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        version, options = after.split()[0], after.split()[-1]
        if version in group_of and (version == "cgroup2" or "memory" in options.split(",")):
            yield version, Path(mount), root, group_of[version]


def _free(folder: Path, files: _Files) -> int | None:
    """Return what one group leaves free, or ``None`` if it has no limit or does not tell."""
    try:
        limit = (folder / files.limit).read_text().strip()
        if limit == "max":
            return None
        usage = int((folder / files.usage).read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    # Version 1 has a very large number where there is no limit, which does no harm.
    return int(limit) - usage + int(counts.get(files.cache, 0))
