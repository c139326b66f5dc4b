"""A file of lines that only grows, and that one process has open at a time: what journals are written to.

What it says is believed: that a pod was evicted, or holds a token. So it has to be a file that no other user can have
written, and what is looked at is the open file itself, not what its name leads to a moment later.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

_CHUNK = 1 << 20


class GrowingFile:
    """Such a file, open; it is made if it is not there, and the name of one without content is put on the disk.

    Raises
    ------
    BlockingIOError
        If another process has it open.
    OSError
        If it cannot be opened or made; if it is no file but a link or a pipe, belongs to another user, or can be
        written by others. The group may write it if it is one of ours, as volumes of Kubernetes have it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = _opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._size():
                self._sync_name()
        except BaseException:
            os.close(self._handle)
            raise

    def read(self) -> bytes:
        """Return the content."""
        return _content(self._handle)

    def append(self, data: bytes) -> None:
        """Write, and return when it is on the disk; of what cannot be written whole, nothing stays.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        before = self._size()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            os.fsync(self._handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, before)
            raise

    def cut(self, size: int) -> None:
        """Leave out what comes after so many bytes, if anything."""
        if size < self._size():
            os.ftruncate(self._handle, size)
            os.fsync(self._handle)

    def close(self) -> None:
        """Let others have it."""
        os.close(self._handle)

    def _size(self) -> int:
        return os.fstat(self._handle).st_size

    def _sync_name(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_lines(path: Path) -> bytes:
    """Return the content of such a file, which another process may have open.

    Raises
    ------
    FileNotFoundError
        If there is none.
    OSError
        If it cannot be read, or not be trusted.
    """
    handle = _opened(path, os.O_RDONLY)
    try:
        return _content(handle)
    finally:
        os.close(handle)


def _opened(path: Path, flags: int) -> int:
    """Open a file, and refuse one that other users can have written."""
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise (_refused("is a symbolic link") if error.errno == errno.ELOOP else error) from None
    try:
        status = os.fstat(handle)
        ours = status.st_gid in {os.getegid(), *os.getgroups()}
        if not stat.S_ISREG(status.st_mode):
            raise _refused("is no regular file")
        if status.st_uid != os.geteuid():
            raise _refused("belongs to another user")
        if status.st_mode & (stat.S_IWOTH if ours else stat.S_IWOTH | stat.S_IWGRP):
            raise _refused("can be written by other users")
    except BaseException:
        os.close(handle)
        raise
    return handle


def _content(handle: int) -> bytes:
    parts, at = [], 0
    while part := os.pread(handle, _CHUNK, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _refused(why: str) -> OSError:
    return PermissionError(errno.EPERM, f"it {why}, so what it says is not to be trusted")


def whole_lines(data: bytes) -> int:
    """Return how many bytes whole lines take; what follows was cut short when a process was killed or power failed."""
    return data.rfind(b"\n") + 1
