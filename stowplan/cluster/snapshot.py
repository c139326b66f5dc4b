"""A snapshot of a live cluster, as a file that every command reads."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stowplan.cluster.kubectl import ClusterError, Kubectl
from stowplan.instances.completeness import ASKED, RESOURCES, statement
from stowplan.models.whole_file import write_whole

KINDS = tuple(RESOURCES)
"""All kinds that a snapshot is read from, as the API names them."""
NEEDED = ("nodes", "pods")


@dataclass(frozen=True, slots=True)
class Taken:
    """A dump of a cluster.

    Parameters
    ----------
    data
        A ``List``, as kubectl prints it.
    counts
        Objects by kind.
    notes
        What is missing from it, and why.
    """

    data: bytes
    counts: Counter[str]
    notes: tuple[str, ...]


class _Item(msgspec.Struct):
    kind: str = ""


class _List(msgspec.Struct):
    items: list[_Item]


def kinds_served(kubectl: Kubectl) -> tuple[str, ...]:
    """Return those of our kinds that the server serves."""
    served = kubectl.served()
    return tuple(kind for kind in KINDS if kind in served)


def take(kubectl: Kubectl, kinds: Sequence[str], *, needed: Sequence[str] = NEEDED, chunk: int = 500) -> Taken:
    """Dump kinds, as far as the user may see them.

    All are asked for by one kubectl, one after the other. Each kind is consistent in itself; between the first and the
    last, the cluster may have moved on.

    Raises
    ------
    ClusterError
        If one of the kinds that are needed cannot be listed, or any list could not be read to its end.
    """
    if lacking := [kind for kind in needed if kind not in kinds]:
        raise ClusterError(f"the server does not serve {' and '.join(lacking)}")
    listing = kubectl.get(kinds, chunk=chunk, partial=True)
    if forbidden := [message for message in listing.forbidden if message.startswith(tuple(needed))]:
        raise ClusterError(forbidden[0])
    notes = [f"the server does not serve {kind}" for kind in KINDS if kind not in kinds]
    notes += [f"left out: {message}" for message in listing.forbidden]
    try:
        items = msgspec.json.decode(listing.data, type=_List).items
    except msgspec.DecodeError as error:
        raise ClusterError(f"kubectl printed no list: {error}") from None
    got = [kind for kind in kinds if not any(message.startswith(kind) for message in listing.forbidden)]
    counts = Counter(item.kind for item in items)
    stated = statement((resource, counts[RESOURCES[resource][1]]) for resource in got)
    return Taken(_stating(listing.data, stated), counts, tuple(notes))


def _stating(data: bytes, stated: str) -> bytes:
    """Write into a list what was read to its end, so that it is known to be whole, and if something is lost later."""
    parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    meta = msgspec.json.decode(parts["metadata"], type=dict[str, Any]) if "metadata" in parts else {}
    meta |= {"annotations": {ASKED: stated}}
    return msgspec.json.encode({**parts, "metadata": msgspec.Raw(msgspec.json.encode(meta))})


def save(data: bytes, path: Path) -> None:
    """Write a file as a whole or not at all; a name that ends in ``.gz`` is compressed.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    if path.name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_whole(data, path)
