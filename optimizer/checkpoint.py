"""The best answers so far in a file, from which the same search goes on after its process has died.

A file holds one answer for each problem, since a command may solve several, such as one for each limit on moves. A
problem is known by its fingerprint, so an answer is never taken for another problem's.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stowplan.models.errors import InputError
from stowplan.models.problem import Placement, Problem
from stowplan.models.whole_file import write_whole

KIND = "stowplan/checkpoint/v1"
"""What a file says of itself."""

EVERY = 1.0
"""Least seconds from one writing to the next."""

LEAST_BETWEEN = 20.0
"""And at least this many times as long as writing takes, so that it never takes over a twentieth of a search."""


class Checkpoint:
    """The answer to one problem in a file.

    Parameters
    ----------
    path
        The file; it is made if it is not there, and keeps what it holds about other problems.

    Raises
    ------
    InputError
        If it is no checkpoint, or cannot be written.
    """

    def __init__(self, path: str, problem: Problem) -> None:
        self._path = Path(path)
        self._name = fingerprint(problem)
        self._shape = problem.shape
        self._answers = _read(self._path)
        self._written_at = -EVERY
        self._took = 0.0
        self._unwritten = False
        self._write()

    def recall(self) -> Placement | None:
        """Return the answer that the file holds for the problem, if it has one.

        Raises
        ------
        InputError
            If the answer is damaged.
        """
        found = self._answers.get(self._name)
        if found is None:
            return None
        try:
            entries = np.array([found[name] for name in ("cls", "node", "count")], dtype=np.int64)
            beyond = (entries < 0).any(axis=1) | (entries.max(axis=1, initial=-1) >= (*self._shape, 2**31))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError("has an answer that cannot be read; remove it to begin anew", str(self._path)) from None
        if beyond.any():
            raise InputError("has an answer with pods or nodes that are not there", str(self._path))
        return Placement.of(zip(*entries.tolist(), strict=True))

    def keep(self, placement: Placement, values: Sequence[int]) -> None:
        """Take the best answer so far, and write it unless one was written a moment ago.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        self._answers[self._name] = {
            "values": list(values),
            "cls": placement.cls.tolist(),
            "node": placement.node.tolist(),
            "count": placement.count.tolist(),
        }
        self._unwritten = True
        if time.monotonic() >= self._written_at + max(EVERY, LEAST_BETWEEN * self._took):
            self.flush()

    def flush(self) -> None:
        """Write what was not written yet.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        if self._unwritten:
            self._write()

    def _write(self) -> None:
        began = time.monotonic()
        write_whole(json.dumps({"kind": KIND, "answers": self._answers}).encode(), self._path)
        self._written_at = time.monotonic()
        self._took = self._written_at - began
        self._unwritten = False


def fingerprint(problem: Problem) -> str:
    """Return what tells problems apart: 64 hexadecimal digits, the same in every process."""
    digest = hashlib.sha256()
    _add(digest, problem)
    return digest.hexdigest()


def _add(digest: Any, value: object) -> None:
    """Add a value with all that it holds, each part behind its type and length."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        digest.update(type(value).__name__.encode())
        for one in fields(value):
            digest.update(one.name.encode())
            _add(digest, getattr(value, one.name))
    elif isinstance(value, tuple | list):
        digest.update(f"[{len(value)}]".encode())
        for part in value:
            _add(digest, part)
    elif isinstance(value, str | int | float | bytes | np.generic) or value is None:
        text = repr(value).encode()
        digest.update(f"{len(text)}:".encode() + text)
    else:  # the cost of a final state, which follows from the rest
        digest.update(type(value).__name__.encode())


def _read(path: Path) -> dict[str, Any]:
    """Return the answers in a file, none if there is no file."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    except ValueError:
        content = None
    answers = content.get("answers") if isinstance(content, dict) and content.get("kind") == KIND else None
    if not isinstance(answers, dict):
        raise InputError("is no checkpoint; must be one that --checkpoint wrote, or not be there", str(path))
    return answers
