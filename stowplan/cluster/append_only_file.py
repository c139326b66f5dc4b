"""A file of lines that only grows, and that one process has open at a time: what journals are written to."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class GrowingFile:
    """Such a file, open; it is made if it is not there, and the name of one without content is put on the disk.

    Raises
    ------
    BlockingIOError
        If another process has it open.
    OSError
        If it cannot be opened or made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._size():
                self._sync_name()
        except BaseException:
            os.close(self._handle)
            raise

    def read(self) -> bytes:
        """Return the content."""
        return self.path.read_bytes()

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
        folder = os.open(self.path.resolve().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def whole_lines(data: bytes) -> int:
    """Return how many bytes whole lines take; what follows was cut short when a process was killed or power failed."""
    return data.rfind(b"\n") + 1
