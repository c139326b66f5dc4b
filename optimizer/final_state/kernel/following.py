"""Follows a placement: after a step, those pods are scored anew that it can concern; a step can be undone."""

from __future__ import annotations

from stowplan.models.arrays import Ints
from stowplan.optimizer.compiled.jit import compiled, inlined
from stowplan.optimizer.final_state.kernel.arrays import Scores
from stowplan.optimizer.final_state.kernel.scoring import (
    compare,
    count,
    has_room,
    worth_of_usage,
)


@compiled
def begin(f: Scores, cls: Ints, node: Ints, pods: Ints) -> None:
    """Put pods on their nodes, in place of all that are there, and score them."""
    classes, nodes = f.pods.shape
    for c in range(classes):
        for n in range(nodes):
            if f.pods[c, n]:
                count(f, c, n, -f.pods[c, n])
    for i in range(len(cls)):
        count(f, cls[i], node[i], pods[i])
    f.total[0] = 0
    for c in range(classes):
        for n in range(nodes):
            f.room[c, n], f.back[c, n] = has_room(f, c, n, 0), has_room(f, c, n, 1)
    for c in range(classes):
        for n in range(nodes):
            f.stay[c, n] = False
            if f.pods[c, n]:
                f.own[c, n] = worth_of_usage(f, c, n)
                compare(f, c, n)
                f.total[0] += _worth(f, c, n)


@inlined
def _worth(f: Scores, c: int, n: int) -> int:
    """Return the price of the points of the pods of a class on a node."""
    return int(f.pods[c, n] * (f.own[c, n] + f.compared[c, n])) if f.stay[c, n] else 0


@inlined
def _take_out(f: Scores, c: int) -> None:
    """Have a class scored anew: keep what it scores to undo the step, and take it out of the total."""
    f.stale[c] = True
    f.stale_list[0] += 1
    f.stale_list[f.stale_list[0]] = c
    for n in range(f.pods.shape[1]):
        if f.pods[c, n]:
            f.total[0] -= _worth(f, c, n)
            i = f.kept_at[0]
            f.kept_at[0] += 1
            f.kept_place[i, 0], f.kept_place[i, 1] = c, n
            f.kept_stay[i], f.kept_compared[i] = f.stay[c, n], f.compared[c, n]


@inlined
def _put_in(f: Scores, c: int) -> None:
    """Score a class anew."""
    for n in range(f.pods.shape[1]):
        if f.pods[c, n]:
            compare(f, c, n)
            f.total[0] += _worth(f, c, n)


@inlined
def _touch(f: Scores, moves: Ints, length: int) -> None:
    """List the nodes whose pods moves change."""
    f.touched[0] = 0
    for i in range(length):
        for j in range(1, 3):
            n, known = moves[i, j], moves[i, j] >= f.pods.shape[1]
            for other in range(1, f.touched[0] + 1):
                known = known or f.touched[other] == n
            if not known:
                f.touched[0] += 1
                f.touched[f.touched[0]] = n


@compiled
def change(f: Scores, moves: Ints, length: int, least: int) -> bool:
    """Make moves and score what they concern.

    Most of the time goes to classes of whose pods none has moved, and which read none that has: a node became feasible
    for them, or ceased to be. They come last, and not at all where the total is too low before.

    Parameters
    ----------
    moves
        ``[i, 3]`` class, source and target of pods that move one after the other; nodes that are none do not count.
    least
        The total that is needed before those are scored.

    Returns
    -------
    bool
        Whether all is scored; if not, the step must be undone.
    """
    classes, nodes = f.pods.shape
    f.work[0] += 4 * classes
    f.stale_list[0] = 0
    f.kept_at[0] = 0
    _touch(f, moves, length)
    for i in range(length):
        c = moves[i, 0]
        if not f.stale[c]:
            _take_out(f, c)
        for j in range(f.reader_at[c], f.reader_at[c + 1]):
            if not f.stale[f.reader[j]]:
                _take_out(f, f.reader[j])
    for j in range(1, f.touched[0] + 1):
        n = f.touched[j]
        for c in range(classes):
            f.column_own[j - 1, c] = f.own[c, n]
            f.column_room[j - 1, c] = f.room[c, n]
            f.column_back[j - 1, c] = f.back[c, n]
            if f.pods[c, n] and not f.stale[c]:
                f.total[0] -= _worth(f, c, n)
    for i in range(length):
        if moves[i, 1] < nodes:
            count(f, moves[i, 0], moves[i, 1], -1)
        if moves[i, 2] < nodes:
            count(f, moves[i, 0], moves[i, 2], 1)
    f.later[0] = 0
    for j in range(1, f.touched[0] + 1):
        n = f.touched[j]
        for c in range(classes):
            room = has_room(f, c, n, 0)
            differs = room != f.room[c, n] and f.reads_feasible[c]
            f.room[c, n] = room
            if f.pods[c, n]:
                back = has_room(f, c, n, 1)
                differs = differs or back != f.back[c, n]
                f.back[c, n] = back
                f.own[c, n] = worth_of_usage(f, c, n)
                if not f.stale[c]:
                    f.total[0] += _worth(f, c, n)
            if differs and not f.stale[c]:
                f.later[0] += 1
                f.later[f.later[0]] = c
    first = f.stale_list[0]
    for i in range(1, first + 1):
        _put_in(f, f.stale_list[i])
    f.total[1] = f.total[0]
    complete = f.total[0] >= least
    if complete:
        for i in range(1, f.later[0] + 1):
            if not f.stale[f.later[i]]:
                _take_out(f, f.later[i])
        for i in range(first + 1, f.stale_list[0] + 1):
            _put_in(f, f.stale_list[i])
    for i in range(1, f.stale_list[0] + 1):
        f.stale[f.stale_list[i]] = False
    return bool(complete)


@compiled
def undo(f: Scores, moves: Ints, length: int, total: int) -> None:
    """Take back the moves of the last `change`, before which the total was as given."""
    classes, nodes = f.pods.shape
    for i in range(length - 1, -1, -1):
        if moves[i, 2] < nodes:
            count(f, moves[i, 0], moves[i, 2], -1)
        if moves[i, 1] < nodes:
            count(f, moves[i, 0], moves[i, 1], 1)
    for i in range(f.kept_at[0]):
        c, n = f.kept_place[i, 0], f.kept_place[i, 1]
        f.stay[c, n], f.compared[c, n] = f.kept_stay[i], f.kept_compared[i]
    for j in range(f.touched[0]):
        n = f.touched[j + 1]
        for c in range(classes):
            f.own[c, n] = f.column_own[j, c]
            f.room[c, n] = f.column_room[j, c]
            f.back[c, n] = f.column_back[j, c]
    f.total[0] = total
