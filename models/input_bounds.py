"""Bounds on what is read: bytes of a file, what a packed file unpacks to, nesting, and what YAML aliases expand to.

Input may come from a stranger, and a small file can be made to need any memory and any time: gzip packs 1 GB of
zeros into 1 MB, and ten lines of YAML aliases expand to a billion words. What goes beyond a bound ends with one line
before it is expanded.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import IO

from stowplan.models.errors import InputError

MAX_INPUT = ContextVar("MAX_INPUT", default=2 << 30)
"""The largest document that is read, in bytes, after unpacking: some 100,000 pods as kubectl prints them."""
MAX_RATIO = 100
"""What a gzip file may unpack to, as a multiple of its size: dumps reach 40, bombs 1,000."""
SMALL = 4 << 20
"""Bytes that a gzip file of any size may unpack to."""
DENSE, SPARSE = 200_000, 8
"""A document may have so many values, and one more in every so many bytes: dumps have one in twelve at most."""
MAX_LINE = 16 << 20
"""Bytes of the longest line of a file that is read line by line: a cluster of 2,000 pods in a recorded decision."""
MAX_DEPTH = 200
"""Deepest nesting of YAML: schemas of custom resources reach 60; the parser itself needs stack for each level."""
MAX_EXPANSION = 10
"""What aliases of a YAML document may add up to, as a multiple of the document that is written out."""
SMALL_EXPANSION = 100_000
"""Nodes and characters that the aliases of any document may add up to."""

_CHUNK = 1 << 20
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,15})(k|M|G|Ki|Mi|Gi)?B?")


def parse_size(text: str) -> int:
    """Return a number of bytes, such as ``500M`` or ``4GiB``.

    Raises
    ------
    InputError
        If it is none, or zero.
    """
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[match[2] or ""] if match else 0
    if not size:
        raise InputError(f"is {text!r}; must be a number of bytes, such as 500M or 4Gi")
    return size


def read_bounded(source: IO[bytes], name: str) -> bytes:
    """Return what an open file holds.

    Raises
    ------
    InputError
        If it holds more than `MAX_INPUT`.
    """
    limit = MAX_INPUT.get()
    status = os.fstat(source.fileno()) if _has_descriptor(source) else None
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_size > limit:
        raise _too_large(name, limit)
    data = source.read(limit + 1) if status is not None and stat.S_ISREG(status.st_mode) else _stream(source, limit)
    if len(data) > limit:
        raise _too_large(name, limit)
    return data


def _has_descriptor(source: IO[bytes]) -> bool:
    try:
        source.fileno()
    except (AttributeError, OSError):
        return False
    return True


def _stream(source: IO[bytes], limit: int) -> bytes:
    """Read a pipe or a device piece by piece: asked for all that is allowed, it would take that memory at once."""
    parts, size = [], 0
    while size <= limit and (part := source.read(_CHUNK)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def unpack_gzip(data: bytes, name: str) -> bytes:
    """Return what gzip has packed.

    Raises
    ------
    InputError
        If it is damaged, or unpacks to more than `MAX_INPUT` or than `MAX_RATIO` times its size.
    """
    limit = MAX_INPUT.get()
    packed = io.BytesIO(data)
    parts: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=packed) as content:
            while part := content.read(_CHUNK):
                parts.append(part)
                size += len(part)
                if size > limit:
                    raise _too_large(name, limit)
                require_ratio(size, packed.tell(), name)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"is a damaged gzip file: {error}", file=name) from None
    return b"".join(parts)


def require_ratio(unpacked: int, packed: int, name: str) -> None:
    """Refuse what unpacks to more than `MAX_RATIO` times its size, unless that is small; both in bytes.

    Raises
    ------
    InputError
        If it does.
    """
    if unpacked > SMALL + MAX_RATIO * packed:
        raise InputError(f"unpacks to more than {MAX_RATIO} times its size; unpack it first", file=name)


def require_sparse(data: bytes, name: str) -> None:
    """Refuse a document that consists of commas and ends of lines, so to speak: each value takes a hundred bytes.

    Raises
    ------
    InputError
        If it has more values than `DENSE` and `SPARSE` allow.
    """
    if len(data) > DENSE and data.count(b",") + data.count(b"\n") > DENSE + len(data) // SPARSE:
        raise InputError(f"has a value in less than every {SPARSE} bytes, as no cluster's dump has", file=name)


def bounded_lines(source: IO[bytes] | gzip.GzipFile, name: str) -> Iterator[bytes]:
    """Yield the lines of an open file.

    Raises
    ------
    InputError
        If one has more than `MAX_LINE` bytes.
    """
    number = 0
    while line := source.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(f"line {number}: has more than {MAX_LINE:,} bytes", file=name)
        yield line


def _too_large(name: str, limit: int) -> InputError:
    return InputError(
        f"has more than {limit:,} bytes; must have at most that many, or a larger limit: stowplan --max-input SIZE",
        file=name,
    )
