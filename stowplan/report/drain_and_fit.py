"""Reports of ``drain`` and ``fit``: the answer, then the plan."""

from __future__ import annotations

from rich.console import Console

from stowplan.models.plan import Plan
from stowplan.models.words import plural
from stowplan.planning.drain import Drained
from stowplan.planning.fit import MOST_REPLICAS, Fitted
from stowplan.report.plan import show_plan
from stowplan.report.tables import say, show_lines
from stowplan.report.words import gap_lines


def show_drain(console: Console, drained: Drained, *, wide: bool = False) -> None:
    """Print whether the nodes can be drained, and the plan."""
    _gaps(console, drained.planned.plan)
    say(console, drain_headline(drained), style="bold")
    show_lines(console, [f"{s.pod.key} on {s.pod.node_name}: {s.reason}" for s in drained.stays], wide=wide)
    if drained.ignored:
        kinds = ", ".join(_pods(kind, count) for kind, count in drained.ignored.items())
        say(console, f"Ignored: {kinds}.")
    cordon = drained.planned.plan.cordon
    if cordon:
        say(console, f"Cordon first: {', '.join(cordon)}.")
    console.print()
    planned = drained.planned
    show_plan(console, planned.plan, planned.compiled.participants, planned.unresolved, wide=wide, gaps=False)


def drain_headline(drained: Drained) -> str:
    """Return one sentence on whether the nodes can be drained."""
    nodes = drained.nodes[0] if len(drained.nodes) == 1 else plural(len(drained.nodes), "node")
    moves = plural(len(drained.planned.plan.moves), "move")
    if drained.possible:
        return f"Drains {nodes} with {moves}." if drained.planned.plan.waves else f"Nothing to drain from {nodes}."
    pods = _pods_on(drained)
    if drained.proof:
        return f"Cannot drain {nodes}: {len(drained.stays)} of {pods} cannot leave (proven: {drained.proof})."
    return f"Does not drain {nodes}: {len(drained.stays)} of {pods} left after {moves}; not proven impossible."


def _pods_on(drained: Drained) -> str:
    """Return the number of pods that are to leave the nodes."""
    today = drained.planned.compiled.snapshot.assignment.count()
    return plural(sum(today[node] for node in drained.nodes) - sum(drained.ignored.values()), "pod")


def _pods(kind: str, count: int) -> str:
    """Return the number of pods of a kind, in words; the name of a kind may end in ``pod``."""
    return plural(count, f"{kind.removesuffix(' pod')} pod")


def show_fit(console: Console, fitted: Fitted, *, wide: bool = False, most: bool = False) -> None:
    """Print whether the pods fit, and the plan; ``most`` if the question was how many of them fit."""
    _gaps(console, fitted.planned.plan)
    say(console, most_headline(fitted) if most else fit_headline(fitted), style="bold")
    if not most:
        show_lines(
            console, [f"{unscheduled.pod.key}: {unscheduled.reason}" for unscheduled in fitted.unscheduled], wide=wide
        )
    console.print()
    planned = fitted.planned
    show_plan(console, planned.plan, planned.compiled.participants, planned.unresolved, wide=wide, gaps=False)


def fit_headline(fitted: Fitted) -> str:
    """Return one sentence on whether the pods fit."""
    wanted = plural(len(fitted.wanted), "pod")
    moves = sum(1 for move in fitted.planned.plan.moves if move.kind == "evict")
    if fitted.possible:
        return f"Fits {wanted} with {plural(moves, 'move')} of others."
    stay = f"{len(fitted.unscheduled)} of {wanted} {'stays' if len(fitted.unscheduled) == 1 else 'stay'} unscheduled"
    if fitted.proof:
        return f"Does not fit: {stay} (proven: no rearrangement of movable pods makes room)."
    return f"Does not fit: {stay}; not proven impossible."


def _gaps(console: Console, plan: Plan) -> None:
    for line in gap_lines(plan.gaps):
        say(console, line)


def most_headline(fitted: Fitted) -> str:
    """Say in one sentence how many replicas fit."""
    moves = sum(1 for move in fitted.planned.plan.moves if move.kind == "evict")
    fits = f"{plural(fitted.scheduled, 'replica')} {'fits' if fitted.scheduled == 1 else 'fit'}"
    how = f" with {plural(moves, 'move')} of others"
    if fitted.scheduled == MOST_REPLICAS:
        return f"At least {fits}{how}; more were not tried."
    if fitted.scheduled >= fitted.most:
        return f"{fits}{how}; proven that no more do."
    return f"{fits}{how}; not proven that no more do, at most {fitted.most:,}."
