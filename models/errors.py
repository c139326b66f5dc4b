"""What can go wrong, as one tree.

::

    StowplanError
    ├── InputError            something the user gave us is wrong: file, object, field, what is right
    ├── UnsupportedFeature    understood, but outside what this release can answer for
    └── InternalError         two of our own judges disagree; never the user's fault
"""

from __future__ import annotations

from dataclasses import dataclass, replace


class StowplanError(Exception):
    """Base of everything stowplan raises on purpose. ``str()`` of it is one line for a person."""


@dataclass
class InputError(StowplanError):
    """Input that cannot be used.

    Parameters
    ----------
    problem
        What is wrong and what would be right, as a clause.
    file
        Where it was read, if known.
    obj
        The object it is about, such as ``Pod shop/web-1``.
    field
        The path inside the object, such as ``spec.containers[0].resources.requests.cpu``.
    """

    problem: str
    file: str | None = None
    obj: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.obj, self.field, self.problem) if part)

    def in_file(self, file: str) -> InputError:
        """Return the same error, with the file filled in when it was not known yet."""
        return self if self.file else replace(self, file=file)


@dataclass
class UnsupportedFeature(StowplanError):
    """Something Kubernetes allows and this release refuses to guess about."""

    feature: str
    obj: str | None = None

    def __str__(self) -> str:
        return f"{self.obj}: {self.feature}" if self.obj else self.feature


class InternalError(StowplanError):
    """Our own judges disagree, or an invariant is broken."""
