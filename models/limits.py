"""Limits on the evictions in a wave of a plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from stowplan.models.command_line import WAVES, Option
from stowplan.models.document import Document

Positive = Annotated[int, Field(ge=1)]
Percent = Annotated[str, Field(pattern=r"^(100|[1-9][0-9]?)%$")]
ANY = "any"
"""Word for no limit on the command line."""


def read_share(word: str) -> int | str | None:
    """Return a number, a percentage, or ``None`` for ``any``.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    share: int | str | None = None if word == ANY else int(word) if word.isdecimal() and len(word) < 19 else word
    try:
        return _SHARE.validate_python(share)
    except ValidationError:
        raise ValueError(
            f"{word!r} is neither a number of 1 or more, nor a percentage such as 25%, nor {ANY}"
        ) from None


_SHARE: TypeAdapter[int | str | None] = TypeAdapter(Positive | Percent | None)


class LimitsDocument(Document):
    """Maximum number of evictions in a wave; ``None`` for no limit.

    Parameters
    ----------
    per_owner
        Of one owner's pods: a number, or a share of the owner's pods such as ``25%``, rounded up.
    per_node
        From one node.
    per_namespace
        In one namespace.
    total
        In all.
    """

    per_owner: Annotated[
        Positive | Percent | None,
        Option(
            "Maximum evictions of one owner's pods in a wave: a number, a share such as 25%, or any.",
            WAVES,
            flags=("--max-per-owner",),
            metavar="NUMBER|PERCENT",
            read=read_share,
        ),
    ] = None
    per_node: Annotated[
        Positive | None,
        Option("Maximum evictions from one node in a wave.", WAVES, flags=("--max-per-node",), show_default=False),
    ] = None
    per_namespace: Annotated[
        Positive | None,
        Option(
            "Maximum evictions in one namespace in a wave.", WAVES, flags=("--max-per-namespace",), show_default=False
        ),
    ] = None
    total: Annotated[
        Positive | None, Option("Maximum evictions in a wave.", WAVES, flags=("--max-per-wave",), show_default=False)
    ] = None
