"""How a field is asked for on the command line, said beside the field itself.

A field of a model or a dataclass becomes an option if its ``Annotated`` holds an `Option`. Its name, type, limits
and default are read from the field, so nothing about an option is written down twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PROBLEM, SEARCH, WAVES, CLUSTER = "Problem", "Search", "Waves", "Cluster"
"""Headings of options in the help of a command."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the command line.

    Parameters
    ----------
    help
        What the help of a command says.
    panel
        Heading of the option in the help; the general one if ``None``.
    flags
        What the user writes; by default ``--name-of-the-field``.
    negated
        The option says the opposite of the field.
    metavar
        Placeholder of the value in the help.
    show_default
        Whether the help shows the default.
    read
        Makes the field's value of the word that the user gives; raises ``ValueError`` where it cannot. Without it,
        the word is read by the type of the field.
    several
        The option may be repeated; ``read`` gets the list of words.
    write
        Writes a default as the user would give it.
    words
        Values that the shell completes; others may be as good.
    """

    help: str
    panel: str | None
    flags: tuple[str, ...] = ()
    negated: bool = False
    metavar: str | None = None
    show_default: bool = True
    read: Callable[[Any], Any] | None = None
    several: bool = False
    write: Callable[[Any], str] = str
    words: tuple[str, ...] = ()

    def flag(self, field: str) -> str:
        """Return the long form of what the user writes."""
        long = [flag for flag in self.flags if flag.startswith("--")]
        return long[0] if long else "--" + field.replace("_", "-")
