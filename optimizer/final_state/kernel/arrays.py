"""The arrays that the kernels work on, and how they are made of `ScoreTables`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from stowplan.models.arrays import Bools, Floats, Ints
from stowplan.models.problem import Attachments, ClassReadings, Reading, ScoreTables

LEAST, MOST, BALANCE, IMPROVEMENT = range(4)
KINDS = {"least": LEAST, "most": MOST, "balance": BALANCE, "improvement": IMPROVEMENT}

H_EVEN, H_ATTRACTED = range(2)
"""In ``head``: prices of a point of the two scores that read counts."""

F_LIMIT, F_COMPANY, F_APART, F_EVEN, F_ATTRACTED = range(5)
"""In ``first``: where the rows of a class begin, for each sort of reading; those of the next class end them."""

Q_COUNTS, Q_DOMAIN, Q_OWN, Q_KNOWN, Q_DOMAINS, Q_FROM_NONE, Q_ADDS, Q_SKEW, Q_WORTH = range(9)
"""Columns of ``reading``: counts, row of ``domain``, what a pod of the class itself is counted for, and the rest."""

E_DOMAIN, E_BY_NODE, E_SKEW, E_REPEATED, E_READ, E_READ_END = range(6)
"""Columns of ``even``; its counts are rows of ``even_read``, each with what a pod of the class is counted for."""


class Scores(NamedTuple):
    """Filters and scores of all classes, and a placement.

    Parameters
    ----------
    head
        Prices of points.
    allowed, fixed
        ``[c, n]``
    needs, adds
        ``[c, r]``
    reading, even, even_read
        See the columns.
    first
        ``[sort, c + 1]``
    domain
        ``[row, n]`` the domains that are read.
    known
        ``[i]`` of limits: the domains compared.
    complete, first_of_kind
        ``[c]``
    counted_at, counted
        ``[k]`` the first entry of such counts in ``counts``; ``[k, n]`` the entry in which a pod on a node counts, or
        -1.
    add, add_at
        ``[j, 2]`` the counts in which pods of a class are, and for how much; ``[c + 1]``.
    reader, reader_at
        The classes that read counts in which pods of a class are; ``[c + 1]``.
    logarithm
        ``[i]`` of ``i + 2``.
    use_kind, use_price, use_weight, use_own, use_asked, use_counted, use_capacity, use_scored
        ``[u]``, ``[u]``, ``[u, r]``, ``[u, c, r]``, ``[u, c, r]``, ``[u, c, r]``, ``[u, n, r]``, ``[u, c]``
    scaled_price, scaled_reverse, scaled_row, scaled_raw
        ``[i]``, ``[i]``; ``[i, c]`` the row of a class in ``scaled_raw``, or -1 where all nodes are alike; ``[row, n]``
    things, things_at, sort
        Things of all filters of attachments, by filter, sort and class; ``[key + 1]``; ``[filter, n]`` the key of the
        first class for the sort of a node.
    thing_limit, limit_most, limit_strict
        ``[i]``, ``[l, n]``, ``[l]``
    reads_feasible
        ``[c]`` whether a score depends on which nodes are feasible.
    counts, free, load, holders, distinct, pods
        What changes: ``[i]``; ``[n, r]``; ``[u, n, r]``; ``[thing, n]``; ``[l, n]``; ``[c, n]``.
    room, back, stay, own, compared
        ``[c, n]`` whether one more pod would have room, whether one that is there has, and whether all filters admit
        it there; price of its points by usage, and by comparison.
    total
        The price of all points, and what it seemed to be before classes were scored anew of which no pod had moved.
    stale, stale_list, later, touched
        What to score anew: classes, and nodes whose pods change.
    kept_at, kept_place, kept_stay, kept_compared, column_own, column_room, column_back
        What to restore when a step is undone: of places where such pods are, and of all classes on those nodes.
    work
        What was done so far: a node that is looked at for one reading of a pod is one unit.
    mask, raw, seen
        Scratch: ``[n]``, ``[n]``, and ``[d + 1]`` when a domain was seen last.
    """

    head: Ints
    allowed: Bools
    fixed: Ints
    needs: Ints
    adds: Ints
    reading: Ints
    even: Ints
    even_read: Ints
    first: Ints
    domain: Ints
    known: Bools
    complete: Bools
    first_of_kind: Bools
    counted: Ints
    counted_at: Ints
    add: Ints
    add_at: Ints
    reader: Ints
    reader_at: Ints
    logarithm: Floats
    use_kind: Ints
    use_price: Ints
    use_weight: Ints
    use_own: Ints
    use_asked: Ints
    use_counted: Bools
    use_capacity: Ints
    use_scored: Bools
    scaled_price: Ints
    scaled_reverse: Bools
    scaled_row: Ints
    scaled_raw: Ints
    things: Ints
    things_at: Ints
    sort: Ints
    thing_limit: Ints
    limit_most: Ints
    limit_strict: Bools
    reads_feasible: Bools
    counts: Ints
    free: Ints
    load: Ints
    holders: Ints
    distinct: Ints
    pods: Ints
    room: Bools
    back: Bools
    stay: Bools
    own: Ints
    compared: Ints
    total: Ints
    stale: Bools
    stale_list: Ints
    later: Ints
    touched: Ints
    kept_at: Ints
    kept_place: Ints
    kept_stay: Bools
    kept_compared: Ints
    column_own: Ints
    column_room: Bools
    column_back: Bools
    work: Ints
    mask: Bools
    raw: Floats
    seen: Ints


def scores_of(tables: ScoreTables, pods: int) -> Scores:
    """Return the arrays of a cluster with none of its pods in place; `kernel.following.begin` places them."""
    classes, nodes = tables.allowed.shape
    rows = _Rows(tables)
    counted_at = np.concatenate([[0], np.cumsum([len(counts.held) for counts in tables.counts])]).astype(np.int64)
    counted = np.array(
        [np.where(t.domain >= 0, t.domain + at, -1) for t, at in zip(tables.counts, counted_at, strict=False)],
        dtype=np.int64,
    ).reshape(len(tables.counts), nodes)
    added: list[list[tuple[int, int]]] = [[] for _ in range(classes)]
    for k, counts in enumerate(tables.counts):
        for c, amount in counts.amount.items():
            added[c].append((k, amount))
    add, add_at = _lists(added, 2)
    reader, reader_at = _lists([[(c,) for c in sorted(some)] for some in _readers(tables)], 1)
    things = _Things(tables.attachments, classes, nodes)
    most = max((len(one.weight) for one in tables.usage), default=0)

    def padded(name: str, dtype: type) -> np.ndarray:
        """``[u, c or n, r]``"""
        found = [np.pad(getattr(one, name), ((0, most - len(one.weight)), (0, 0))).T for one in tables.usage]
        width = nodes if name in ("held", "capacity") else classes
        return np.ascontiguousarray(np.array(found, dtype=dtype).reshape(len(tables.usage), width, most))

    differs = np.array([one.raw.any(axis=1) for one in tables.scaled], dtype=np.bool_)
    differs = differs.reshape(len(tables.scaled), classes)
    some = np.array([bool(one.even or one.attracted) for one in tables.classes], dtype=np.bool_)
    domains = max((int(row.max(initial=-1)) + 1 for row in rows.domains), default=0)
    table, places = (classes, nodes), min(pods, classes * nodes) + 1
    return Scores(
        head=np.array([tables.even_price, tables.attracted_price], dtype=np.int64),
        allowed=np.array(tables.allowed, order="C"),
        fixed=np.array(tables.fixed, order="C"),
        needs=np.array(tables.needs, order="C"),
        adds=np.array(tables.adds, order="C"),
        reading=rows.readings,
        even=rows.even,
        even_read=rows.even_reads,
        first=rows.first,
        domain=np.array(rows.domains, dtype=np.int64).reshape(len(rows.domains), nodes),
        known=np.array(rows.known, dtype=np.bool_),
        complete=np.array([one.complete for one in tables.classes], dtype=np.bool_),
        first_of_kind=np.array([one.first_of_kind for one in tables.classes], dtype=np.bool_),
        counted=counted,
        counted_at=counted_at,
        add=add,
        add_at=add_at,
        reader=reader[:, 0].copy(),
        reader_at=reader_at,
        logarithm=np.array([math.log(size + 2) for size in range(max(nodes, domains) + 2)]),  # as plugins take it
        use_kind=np.array([KINDS[one.kind] for one in tables.usage], dtype=np.int64),
        use_price=np.array([one.price for one in tables.usage], dtype=np.int64),
        use_weight=np.array(
            [np.pad(one.weight, (0, most - len(one.weight))) for one in tables.usage], dtype=np.int64
        ).reshape(len(tables.usage), most),
        use_own=padded("own", np.int64),
        use_asked=padded("asked", np.int64),
        use_counted=padded("counted", np.bool_),
        use_capacity=padded("capacity", np.int64),
        use_scored=np.array([one.scored for one in tables.usage], dtype=np.bool_).reshape(len(tables.usage), classes),
        scaled_price=np.array([one.price for one in tables.scaled], dtype=np.int64),
        scaled_reverse=np.array([one.reverse for one in tables.scaled], dtype=np.bool_),
        scaled_row=np.where(differs, np.cumsum(differs).reshape(differs.shape) - 1, -1),
        scaled_raw=np.concatenate(
            [
                np.zeros((0, nodes), dtype=np.int64),
                *(one.raw[some] for one, some in zip(tables.scaled, differs, strict=True)),
            ]
        ),
        things=things.listed,
        things_at=things.begins,
        sort=things.sort,
        thing_limit=things.limit,
        limit_most=things.most,
        limit_strict=things.strict,
        reads_feasible=some | differs.any(axis=0),
        counts=np.concatenate([np.zeros(0, dtype=np.int64), *(t.held for t in tables.counts)]).astype(np.int64),
        free=np.array(tables.free.T, order="C"),
        load=padded("held", np.int64),
        holders=things.held,
        distinct=things.distinct,
        pods=np.zeros(table, dtype=np.int64),
        room=np.zeros(table, dtype=np.bool_),
        back=np.zeros(table, dtype=np.bool_),
        stay=np.zeros(table, dtype=np.bool_),
        own=np.zeros(table, dtype=np.int64),
        compared=np.zeros(table, dtype=np.int64),
        total=np.zeros(2, dtype=np.int64),
        stale=np.zeros(classes, dtype=np.bool_),
        stale_list=np.zeros(classes + 1, dtype=np.int64),
        later=np.zeros(MOST_TOUCHED * classes + 1, dtype=np.int64),
        touched=np.zeros(MOST_TOUCHED + 1, dtype=np.int64),
        kept_at=np.zeros(1, dtype=np.int64),
        kept_place=np.zeros((places, 2), dtype=np.int64),
        kept_stay=np.zeros(places, dtype=np.bool_),
        kept_compared=np.zeros(places, dtype=np.int64),
        column_own=np.zeros((MOST_TOUCHED, classes), dtype=np.int64),
        column_room=np.zeros((MOST_TOUCHED, classes), dtype=np.bool_),
        column_back=np.zeros((MOST_TOUCHED, classes), dtype=np.bool_),
        work=np.zeros(1, dtype=np.int64),
        mask=np.zeros(nodes, dtype=np.bool_),
        raw=np.zeros(nodes),
        seen=np.zeros(domains + 2, dtype=np.int64),
    )


MOST_TOUCHED = 8
"""Nodes whose pods one step changes at most."""


def _readers(tables: ScoreTables) -> list[set[int]]:
    """Return, for each class, the classes that read what its pods are counted in."""
    by_counts: dict[int, set[int]] = {}
    for c, one in enumerate(tables.classes):
        for reading in one.everything:
            by_counts.setdefault(reading.counts, set()).add(c)
    found: list[set[int]] = [set() for _ in tables.classes]
    for k, readers in by_counts.items():
        for c in tables.counts[k].amount:
            found[c] |= readers
    return found


def _lists(lists: Sequence[Sequence[tuple[int, ...]]], width: int) -> tuple[Ints, Ints]:
    """Return the entries of lists one after the other, and where each list begins."""
    begins = np.concatenate([[0], np.cumsum([len(some) for some in lists])]).astype(np.int64)
    return np.array([entry for some in lists for entry in some], dtype=np.int64).reshape(-1, width), begins


class _Rows:
    """What classes read, as rows; equal domains are kept once."""

    def __init__(self, tables: ScoreTables) -> None:
        self._counts = tables.counts
        self._numbers: dict[bytes, int] = {}
        self.domains: list[Ints] = []
        self.known: list[bool] = []
        readings: list[list[int]] = []
        even: list[list[int]] = []
        reads: list[tuple[int, int]] = []
        first: list[list[int]] = []
        sorts = (self._limits, self._company, self._apart)
        for rows_of in sorts:
            first.append([len(readings)])
            for c, one in enumerate(tables.classes):
                readings += rows_of(c, one)
                first[-1].append(len(readings))
        first.append([0])
        for c, one in enumerate(tables.classes):
            for score in one.even:
                row = self._domain(score.domain)
                begin = len(reads)
                reads += [(k, self._counts[k].amount.get(c, 0)) for k in score.counts]
                even.append([row, score.by_node, score.skew, score.repeated, begin, len(reads)])
            first[-1].append(len(even))
        first.append([len(readings)])
        for c, one in enumerate(tables.classes):
            for reading, worth in one.attracted:
                readings.append(self._reading(c, reading, worth=worth))
            first[-1].append(len(readings))
        self.readings = np.array(readings, dtype=np.int64).reshape(-1, Q_WORTH + 1)
        self.even = np.array(even, dtype=np.int64).reshape(-1, E_READ_END + 1)
        self.even_reads = np.array(reads, dtype=np.int64).reshape(-1, 2)
        self.first = np.array(first, dtype=np.int64)

    def _limits(self, c: int, one: ClassReadings) -> Iterable[list[int]]:
        for limit in one.limits:
            row = self._reading(c, limit.reading)
            domains = len(limit.known) if limit.known.any() else 0
            row[Q_KNOWN : Q_SKEW + 1] = len(self.known), domains, limit.from_none, limit.adds, limit.max_skew
            self.known += limit.known.tolist()
            yield row

    def _company(self, c: int, one: ClassReadings) -> Iterable[list[int]]:
        for reading in one.company:
            row = self._reading(c, reading)
            row[Q_DOMAINS] = len(self._counts[reading.counts].held)
            yield row

    def _apart(self, c: int, one: ClassReadings) -> Iterable[list[int]]:
        return (self._reading(c, reading) for reading in one.apart)

    def _reading(self, c: int, reading: Reading, worth: int = 0) -> list[int]:
        own = self._counts[reading.counts].amount.get(c, 0)
        return [reading.counts, self._domain(reading.domain), own, 0, 0, 0, 0, 0, worth]

    def _domain(self, domain: Ints) -> int:
        key = domain.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.domains)
            self.domains.append(domain)
        return self._numbers[key]


class _Things:
    """What all filters of attachments count."""

    def __init__(self, filters: Sequence[Attachments], classes: int, nodes: int) -> None:
        lists: list[list[tuple[int]]] = []
        sorts, limits, begin = [], [], 0
        limited = 0
        for one in filters:
            sorts.append(len(lists) + one.sort * classes)
            lists += [[(begin + i,) for i in some] for row in one.things for some in row]
            limits.append(one.limit_of + limited)
            begin, limited = begin + len(one.limit_of), limited + len(one.most)
        listed, self.begins = _lists(lists, 1)
        self.listed = listed[:, 0].copy()
        self.sort = np.array(sorts, dtype=np.int64).reshape(len(filters), nodes)
        nothing = np.zeros((0, nodes), dtype=np.int64)
        self.limit = np.concatenate([np.zeros(0, dtype=np.int64), *limits]).astype(np.int64)
        self.held = np.concatenate([nothing, *(one.held for one in filters)])
        self.distinct = np.concatenate([nothing, *(one.distinct for one in filters)])
        self.most = np.concatenate([nothing, *(one.most for one in filters)])
        self.strict = np.array([one.strict for one in filters for _ in one.most], dtype=np.bool_)
