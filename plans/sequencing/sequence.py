"""From moves to waves: several tries, the best of which is played through in random orders."""

from __future__ import annotations

import random
from collections.abc import Sequence

from stowplan.plans.dry_run import DryRun
from stowplan.plans.move import Move
from stowplan.plans.sequencing.construction import Construction, Variant
from stowplan.plans.sequencing.lower_bound import least_waves
from stowplan.plans.sequencing.problem import SequencingProblem, StuckMove, WaveSequence

ORDERS = 2
"""Random orders in which a finished sequence is played through; one, if there are many moves."""
TRIES = 4
"""Shuffled tries, where the plain one leaves moves out."""
FEW = 400
"""Moves up to which further tries cost next to nothing."""


def sequence(problem: SequencingProblem, *, orders: int | None = None, seed: int = 0) -> WaveSequence:
    """Put moves in order; see `SequencingProblem` and `WaveSequence`.

    Moves that no try reaches are left out, and what depended on them with them. The result is played through in
    random orders; a move that the filters refuse there, which only a plugin of one's own can bring about, gets a wave
    to itself.
    """
    moves = list(problem.moves)
    stuck: list[StuckMove] = []
    alone: set[str] = set()
    while True:
        construction = _best(problem, moves, alone)
        if construction.stuck:
            stuck += construction.stuck
            left_out = {one.key for one in construction.stuck}
            moves = [move for move in moves if move.pod.key not in left_out]
            continue
        turns = orders if orders is not None else ORDERS if len(moves) <= FEW else 1
        refused = _refused_in_random_orders(problem, construction.waves, turns, seed) - alone
        if not refused:
            least, because = least_waves(problem, _reached(construction.waves))
            return WaveSequence(construction.waves, stuck, least, because)
        alone |= refused


def _best(problem: SequencingProblem, moves: Sequence[Move], alone: set[str]) -> Construction:
    """Try the plain way; where it leaves moves out or parks pods, try others, and return the best."""

    def tried(variant: Variant) -> Construction:
        return Construction(problem, moves, alone, variant).run()

    best = tried(Variant())
    if best.stuck and len(moves) <= FEW:
        for seed in range(TRIES):
            best = min(best, tried(Variant(seed=seed)), key=lambda construction: construction.cost)
            if not best.stuck:
                break
    if best.parked:
        eager = tried(Variant(best.parked, best.variant.seed))
        best = min(best, eager, key=lambda construction: construction.cost)
    return best


def _refused_in_random_orders(
    problem: SequencingProblem, waves: Sequence[Sequence[Move]], orders: int, seed: int
) -> set[str]:
    refused: set[str] = set()
    for turn in range(orders):
        rng = random.Random(seed + turn)
        run = DryRun(
            problem.snapshot,
            problem.profile,
            start=problem.start,
            signatures=problem.signatures,
            budgets=problem.budgets,
        )
        run.expect(move.pod.key for wave in waves for move in wave if move.source)
        for wave in waves:
            refused |= {failure.key for failure in run.carry_out(wave, rng)}
    return refused


def _reached(waves: Sequence[Sequence[Move]]) -> list[Move]:
    """Return the moves that waves come to, parked pods from where they first stood to where they stay."""
    first: dict[str, str] = {}
    moves: list[Move] = []
    for move in (move for wave in waves for move in wave):
        first.setdefault(move.pod.key, move.source)
        if not move.parks:
            moves.append(Move(move.pod, first[move.pod.key], move.target))
    return moves
