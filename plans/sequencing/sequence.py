"""From moves to waves: several tries, the best of which is played through in random orders."""

from __future__ import annotations

import random
from collections.abc import Sequence

from stowplan.plans.dry_run import DryRun, Movement, dry_run
from stowplan.plans.sequencing.attempt import Attempt, Variant
from stowplan.plans.sequencing.least import least_waves
from stowplan.plans.sequencing.task import Relocation, Sequencing, Step, Stuck, Task, keeps_name

ORDERS = 2
"""Random orders in which a finished sequence is played through; one, if there are many moves."""
TRIES = 4
"""Shuffled tries, where the plain one leaves moves out."""
FEW = 400
"""Moves up to which further tries cost next to nothing."""


def sequence(task: Task, *, orders: int | None = None, seed: int = 0) -> Sequencing:
    """Put moves in order; see `Task` and `Sequencing`.

    Moves that no try reaches are left out, and what depended on them with them. The result is played through in
    random orders; a move that the filters refuse there, which only a plugin of one's own can bring about, gets a wave
    to itself.
    """
    moves = list(task.moves)
    stuck: list[Stuck] = []
    alone: set[str] = set()
    while True:
        attempt = _best(task, moves, alone)
        if attempt.stuck:
            stuck += attempt.stuck
            left_out = {one.key for one in attempt.stuck}
            moves = [move for move in moves if move.pod.key not in left_out]
            continue
        turns = orders if orders is not None else ORDERS if len(moves) <= FEW else 1
        refused = _refused_in_random_orders(task, attempt.waves, turns, seed) - alone
        if not refused:
            least, because = least_waves(task, _reached(attempt.waves))
            return Sequencing(attempt.waves, stuck, least, because)
        alone |= refused


def _best(task: Task, moves: Sequence[Relocation], alone: set[str]) -> Attempt:
    """Try the plain way; where it leaves moves out or parks pods, try others, and return the best."""

    def tried(variant: Variant) -> Attempt:
        return Attempt(task, moves, alone, variant).run()

    best = tried(Variant())
    if best.stuck and len(moves) <= FEW:
        for seed in range(TRIES):
            best = min(best, tried(Variant(seed=seed)), key=lambda attempt: attempt.merit)
            if not best.stuck:
                break
    if best.parked:
        eager = tried(Variant(best.parked, best.variant.seed))
        best = min(best, eager, key=lambda attempt: attempt.merit)
    return best


def _refused_in_random_orders(task: Task, waves: Sequence[Sequence[Step]], orders: int, seed: int) -> set[str]:
    refused: set[str] = set()
    for turn in range(orders):
        rng = random.Random(seed + turn)
        dry_run_state = DryRun(
            task.snapshot, task.profile, where=task.where, signatures=task.signatures, budgets=task.budgets
        )
        dry_run_state.expect(step.pod.key for wave in waves for step in wave if step.source)
        for wave in waves:
            refused |= {trouble.key for trouble in dry_run(dry_run_state, [movement(step) for step in wave], rng)}
    return refused


def _reached(waves: Sequence[Sequence[Step]]) -> list[Relocation]:
    """Return the moves that waves come to, parked pods from where they first stood to where they stay."""
    first: dict[str, str] = {}
    moves: list[Relocation] = []
    for step in (step for wave in waves for step in wave):
        first.setdefault(step.pod.key, step.source)
        if not step.parks:
            moves.append(Relocation(step.pod, first[step.pod.key], step.target))
    return moves


def movement(step: Step) -> Movement:
    """Return a step as a rehearsal takes it."""
    return Movement(step.pod.key, step.source, step.target, same_name=keeps_name(step), waits=step.waits)
