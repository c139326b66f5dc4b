"""The front door: whatever the user names, as a snapshot."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeAlias

from stowplan.instances.completeness import Gap, Listing, gaps, listing
from stowplan.instances.documents import Document, decoded, nothing_to_read, read_documents
from stowplan.instances.manifests import read_snapshot
from stowplan.instances.openb import is_openb, read_openb
from stowplan.instances.platform import is_platform, read_platform
from stowplan.models.errors import InputError
from stowplan.models.kubernetes.meta import keeping
from stowplan.models.snapshot import Snapshot

_SOME_NAMESPACES = Gap(
    "a must-gather holds some namespaces only, as a rule those of the platform: pods are missing, so it is unknown "
    "what is free on the nodes",
    fatal=True,
)

Source: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str]
"""A path, ``-`` for standard input, or an open file."""


def load(
    *sources: Source | Iterable[Source], skip_unknown_nodes: bool = False, annotations: Iterable[str] = ()
) -> Snapshot:
    """Read a snapshot from files, directories or standard input (``-``).

    The format is recognized by content: what ``kubectl`` prints (JSON or YAML, plain or gzip), an openb trace (two
    files, or a directory that holds them), or the files of an operations platform.

    Parameters
    ----------
    sources
        Paths and open files, one by one or in lists.
    skip_unknown_nodes
        Leave out pods that are bound to a node the input does not hold, instead of refusing them.
    annotations
        Keys of further annotations to keep; most are left out, and a configuration of IsolatedCPUs may name any.

    Raises
    ------
    InputError
        With file, object and field of the first thing that cannot be used.
    """
    keys = frozenset(annotations)
    with keeping(keys):
        snapshot = _read(sources, keys, skip_unknown_nodes=skip_unknown_nodes)
    return replace(snapshot, annotations=keys) if keys else snapshot


def load_bytes(data: bytes, name: str, *, annotations: Iterable[str] = ()) -> Snapshot:
    """Read a snapshot from bytes; ``name`` is named in errors, which are those of `load`."""
    source = io.BytesIO(data)
    source.name = name
    return load(source, annotations=annotations)


def _read(
    sources: Iterable[Source | Iterable[Source]], annotations: frozenset[str], *, skip_unknown_nodes: bool
) -> Snapshot:
    documents = (document for source in _one_by_one(sources) for document in _documents(source))
    first = next(documents, None)
    if first is None:
        return read_snapshot(iter(()))
    if is_platform(first):
        return read_platform([first, *documents])
    if is_openb(first) or first.is_met_table:
        tables = [first, *documents]
        if not any(is_openb(table) for table in tables):
            raise nothing_to_read(str(Path(first.name).parent))
        return read_openb(tables)
    listings: list[Listing] = []
    gathered: list[bool] = []
    snapshot = read_snapshot(
        _noting(itertools.chain([first], documents), listings, gathered), skip_unknown_nodes=skip_unknown_nodes
    )
    found = gaps(snapshot, tuple(listings), annotations)
    if any(gathered):
        found = (_SOME_NAMESPACES, *found)
    fatal = tuple(gap.what for gap in found if gap.fatal)
    words = tuple(gap.what for gap in found)
    return replace(snapshot, notes=(*words, *snapshot.notes), gaps=words, fatal_gaps=fatal)


def _noting(documents: Iterator[Document], listings: list[Listing], gathered: list[bool]) -> Iterator[Document]:
    """Pass documents on, and note what lists say of themselves, and which are of a must-gather."""
    for document in documents:
        listings.append(listing(document))
        gathered.append(document.is_gathered)
        yield document


def _one_by_one(sources: Iterable[Source | Iterable[Source]]) -> Iterator[Source]:
    for source in sources:
        # Files are iterable too, line by line.
        if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
            yield source  # type: ignore[misc]
        elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | Mapping):
            yield from source
        else:
            raise InputError(f"{source!r} is neither a path nor an open file")


def _documents(source: Source) -> Iterator[Document]:
    if isinstance(source, str | os.PathLike):
        return read_documents([os.fspath(source)])
    if not hasattr(source, "read"):
        raise InputError(f"{source!r} is neither a path nor an open file")
    name = str(getattr(source, "name", "open file"))
    try:
        data = source.read()
    except (OSError, ValueError) as error:  # closed, or open for writing
        raise InputError(f"cannot be read: {error}", file=name) from None
    return iter([Document(name, decoded(name, data.encode() if isinstance(data, str) else data))])
