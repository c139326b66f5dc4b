"""From moves to waves: several tries, the best of which is played through in random orders."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from stowplan.plans.dry_run import DryRun
from stowplan.plans.move import Move
from stowplan.plans.sequencing.construction import INTERRUPTED, Construction, Variant
from stowplan.plans.sequencing.following import Following
from stowplan.plans.sequencing.lower_bound import least_waves
from stowplan.plans.sequencing.problem import SequencingProblem, StuckMove, WaveSequence, Way

ORDERS = 2
"""Random orders in which a finished sequence is played through; one, if there are many moves."""
TRIES = 4
"""Shuffled tries, where the plain one leaves moves out."""
DRY_RUN_SECONDS = 1.0
"""Seconds in which the waves of an interrupted construction are played through; the rest is left out."""
FEW = 400
"""Moves up to which further tries cost next to nothing."""
NO_WAY = "no way was found to where it shall be"


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
        if problem.stopped():
            return _interrupted(problem, construction, stuck, seed)
        if construction.stuck and not isinstance(construction, Following):
            stuck += construction.stuck
            left_out = {one.key for one in construction.stuck}
            moves = [move for move in moves if move.pod.key not in left_out]
            continue
        turns = orders if orders is not None else ORDERS if len(moves) <= FEW else 1
        refused = _refused_in_random_orders(problem, construction.waves, turns, seed) - alone
        if problem.stopped():
            return _interrupted(problem, construction, stuck, seed)
        if not refused:
            reached = _reached(construction.waves)
            # What is proven of waves is proven of orders in which no other pods make room for a while.
            alone_moved = len({move.pod.key for wave in construction.waves for move in wave}) == len(reached)
            least, because = least_waves(problem, reached) if alone_moved else (1, "something moves")
            return WaveSequence(construction.waves, [*stuck, *construction.stuck], least, because)
        alone |= refused


def _interrupted(
    problem: SequencingProblem, construction: Construction, stuck: Sequence[StuckMove], seed: int
) -> WaveSequence:
    """Return the first waves of an unfinished construction that a dry run confirms and that leave no pod parked."""
    deadline = time.monotonic() + DRY_RUN_SECONDS
    held = 0
    run, rng = _dry_run(problem, construction.waves), random.Random(seed)
    parked: set[str] = set()
    for number, wave in enumerate(construction.waves, 1):
        if time.monotonic() > deadline or run.carry_out(wave, rng):
            break
        parked = {move.pod.key for move in wave if move.parks} | parked - {move.pod.key for move in wave}
        held = held if parked else number
    waves = construction.waves[:held]
    moved = {move.pod.key for wave in waves for move in wave}
    known = {one.key for one in stuck}
    left = [move.pod.key for move in problem.moves if move.pod.key not in moved | known]
    kept = [*stuck, *(StuckMove(key, INTERRUPTED) for key in left)]
    return WaveSequence(waves, kept, min(1, len(waves)), "interrupted")


def _best(problem: SequencingProblem, moves: Sequence[Move], alone: set[str]) -> Construction:
    """Try the plain way; where it leaves moves out or parks pods, try others, and return the best."""

    def tried(variant: Variant) -> Construction:
        return Construction(problem, moves, alone, variant, patient).run()

    patient = _patient(problem, problem.patience)
    best = tried(Variant())
    if best.stuck and problem.way and not problem.stopped():
        followed = _followed(problem, problem.way, moves, alone)
        best = min(best, followed, key=lambda construction: construction.cost) if followed else best
        if not best.stuck or problem.stopped():
            return best
    if best.stuck and len(moves) <= FEW and not isinstance(best, Following):
        for seed in range(TRIES):
            if patient.stopped():
                break
            best = min(best, tried(Variant(seed=seed)), key=lambda construction: construction.cost)
            if not best.stuck:
                break
    if best.parked and not patient.stopped() and not isinstance(best, Following):
        eager = tried(Variant(best.parked, best.variant.seed))
        best = min(best, eager, key=lambda construction: construction.cost)
    return best


def _patient(problem: SequencingProblem, seconds: float) -> SequencingProblem:
    """Return a problem whose constructions park no more pods after some seconds."""
    until = time.monotonic() + seconds
    return replace(problem, stopped=lambda: problem.stopped() or time.monotonic() > until)


def _followed(problem: SequencingProblem, way: Way, moves: Sequence[Move], alone: set[str]) -> Construction | None:
    """Return a construction by a way that leads where the moves lead, if one is known; pending pods come in the end."""
    steps = way([move for move in moves if move.source])
    waiting = [move for move in moves if not move.source]
    if not steps:
        return None
    followed = Following(problem, [*steps, *waiting], alone).run()
    followed.stuck += [StuckMove(move.pod.key, NO_WAY) for move in _missed(followed, moves)]
    return followed


def _missed(followed: Construction, moves: Sequence[Move]) -> Iterator[Move]:
    """Yield moves to where fewer pods of a kind come than shall be there; of pods that are alike, any may come."""
    known = {one.key for one in followed.stuck}
    start, made = followed.problem.start, [step for wave in followed.waves for step in wave]
    wanted = start.moved((move.pod.key, move.target) for move in moves)
    reached = start.moved((step.pod.key, step.target) for step in made)
    kind = {move.pod.key: followed.wave_state.indexed(move).kind for move in [*moves, *made]}
    short: Counter[tuple[Hashable, str]] = Counter()
    for key, of_pod in kind.items():
        short[of_pod, wanted.get(key, "")] += 1
        short[of_pod, reached.get(key, "")] -= 1
    for move in moves:
        place = kind[move.pod.key], move.target
        if short[place] > 0 and move.source and move.pod.key not in known:
            short[place] -= 1
            yield move


def _refused_in_random_orders(
    problem: SequencingProblem, waves: Sequence[Sequence[Move]], orders: int, seed: int
) -> set[str]:
    refused: set[str] = set()
    for turn in range(orders):
        rng = random.Random(seed + turn)
        run = _dry_run(problem, waves)
        for wave in waves:
            if problem.stopped():
                break
            refused |= {failure.key for failure in run.carry_out(wave, rng)}
    return refused


def _dry_run(problem: SequencingProblem, waves: Sequence[Sequence[Move]]) -> DryRun:
    run = DryRun(
        problem.snapshot,
        problem.profile,
        start=problem.start,
        signatures=problem.signatures,
        budgets=problem.budgets,
    )
    run.expect(move.pod.key for wave in waves for move in wave if move.source)
    return run


def _reached(waves: Sequence[Sequence[Move]]) -> list[Move]:
    """Return the moves that waves come to, parked pods from their first node to their last one."""
    first: dict[str, str] = {}
    moves: list[Move] = []
    for move in (move for wave in waves for move in wave):
        first.setdefault(move.pod.key, move.source)
        if not move.parks and move.target != first[move.pod.key]:
            moves.append(Move(move.pod, first[move.pod.key], move.target))
    return moves
