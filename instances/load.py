"""The front door: whatever the user names, as a snapshot."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from stowplan.instances.documents import nothing_to_read, read_documents
from stowplan.instances.manifests import read_snapshot
from stowplan.instances.openb import is_openb, read_openb
from stowplan.models.snapshot import Snapshot


def load(paths: Sequence[str], *, skip_unknown_nodes: bool = False) -> Snapshot:
    """Read a snapshot from files, directories or standard input (``-``).

    The format is recognised by content: what ``kubectl`` prints (JSON or YAML, plain or gzip), or an openb trace: two
    files, or a directory that holds them.

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
    if is_openb(first) or first.is_met_table:
        tables = [first, *documents]
        if not any(is_openb(table) for table in tables):
            raise nothing_to_read(str(Path(first.name).parent))
        return read_openb(tables)
    return read_snapshot(itertools.chain([first], documents), skip_unknown_nodes=skip_unknown_nodes)
