"""The front door: whatever the user names, as a snapshot."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from instances.documents import read_documents
from instances.manifests import read_snapshot
from instances.openb import is_openb, read_openb
from models.snapshot import Snapshot


def load(paths: Sequence[str], *, skip_unknown_nodes: bool = False) -> Snapshot:
    """Read a snapshot from files, directories or standard input (``-``).

    The format is recognised by content: what ``kubectl`` prints (JSON or YAML, plain or gzip), or an openb trace.

    Parameters
    ----------
    skip_unknown_nodes
        Leave out pods that are bound to a node the input does not hold, instead of refusing them.

    Raises
    ------
    InputError
        With file, object and field of the first thing that cannot be used.
    """
    documents = read_documents(paths)
    first = next(documents, None)
    if first is None:
        return read_snapshot(iter(()))
    if is_openb(first):
        return read_openb([first, *documents])
    return read_snapshot(itertools.chain([first], documents), skip_unknown_nodes=skip_unknown_nodes)
