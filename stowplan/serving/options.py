"""How a plan is served: argument of the server and options of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from stowplan.models.command_line import Option
from stowplan.models.quantity import parse_quantity

LEASE_SECONDS, PATIENCE_SECONDS = 360.0, 300.0


class Mode(StrEnum):
    """What the extender answers about the nodes that a pod is not planned for."""

    PRIORITIZE = "prioritize"
    """They score less, and are filtered out only where the pod that is replaced has to be gone first."""

    FILTER = "filter"
    """They are filtered out."""


def read_bytes(word: str) -> int:
    """Return the bytes of a quantity such as ``64Mi``.

    Raises
    ------
    ValueError
        If it is no quantity, or none at all.
    """
    try:
        found = parse_quantity(word) // parse_quantity("1")
    except ValueError:
        found = 0
    if found <= 0:
        raise ValueError(f"is {word!r}; must be a quantity above 0, such as 64Mi")
    return found


@dataclass(frozen=True)
class Serving:
    """How a plan is served.

    Parameters
    ----------
    mode
        How firmly a pod is steered to its node.
    lease, patience
        Seconds; see `stowplan.serving.ledger.TokenLedger`.
    max_body
        Bytes of the largest question. Nodes that are sent as objects take some 10 kB each.
    """

    mode: Annotated[Mode, Option("prioritize: prefer the planned node. filter: allow no other node.", None)] = (
        Mode.PRIORITIZE
    )
    lease: Annotated[
        float,
        Field(ge=1.0),
        Option("Seconds without a request about a pod after which its lease ends.", None, metavar="SECONDS"),
    ] = LEASE_SECONDS
    patience: Annotated[
        float,
        Field(ge=1.0),
        Option("Seconds after which a pod that must wait for its node may use any.", None, metavar="SECONDS"),
    ] = PATIENCE_SECONDS
    max_body: Annotated[
        int,
        Field(ge=1),
        Option(
            "Maximum size of a request.",
            None,
            metavar="QUANTITY",
            read=read_bytes,
            write=lambda size: f"{size // 2**20}Mi",
        ),
    ] = 64 * 2**20
