"""Errors that stowplan raises.

::

    StowplanError
    ├── InputError       the user's input cannot be used: file, object, field, and what would be right
    └── InternalError    an invariant is broken, or two independent checks disagree: a defect of stowplan
"""

from __future__ import annotations

from dataclasses import dataclass, replace


class StowplanError(Exception):
    """Base of all errors that stowplan raises. Its text is one line."""


@dataclass
class InputError(StowplanError):
    """Input that cannot be used.

    Parameters
    ----------
    problem
        What is wrong and what would be right, as a clause.
    file
        File that was read, if known.
    obj
        Object concerned, such as ``Pod shop/web-1``.
    field
        Path of the field inside the object, such as ``spec.containers[0].resources.requests.cpu``.
    """

    problem: str
    file: str | None = None
    obj: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.obj, self.field, self.problem) if part)

    def in_file(self, file: str) -> InputError:
        """Return the same error with the file, unless it has one already."""
        return self if self.file else replace(self, file=file)


class InternalError(StowplanError):
    """An invariant is broken, or two independent checks disagree."""
