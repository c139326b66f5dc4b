"""What a second core brings, and what sixteen would: the time to the same value.

``python -m benchmarks.cores [NODES] [--seconds 40] [--seed 7] [--objective balance]``: a cluster of ``stowplan
generate`` with ten pods a node is solved by a process that may use one core, and by one that may use all there are.
Printed are the values of the last tier when a quarter, a half and all of the time was over, and the seconds that each
took to some values that both reached. The ratio at the last of them is the speed-up, since the first are those of
constructive heuristics, which use one core. With a speed-up of ``S`` on ``n`` cores, Amdahl's law gives the part of the
work that is done by one core alone, ``s = (n/S − 1) / (n − 1)``, and a speed-up of ``1 / (s + (1 − s)/16)`` on sixteen.

With ``--walk``, the rearranging walk alone, from today's placement: its work in a second, counted in looks at nodes,
and the value that it comes to, with one thread and with as many as there are cores. These share one placement if there
are 500 nodes for each.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any
from unittest.mock import patch

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.options import Options
from stowplan.models.problem import Placement
from stowplan.models.settings import Settings
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import solve
from stowplan.optimizer.rearrangement import walking
from stowplan.optimizer.rearrangement.kernel.arrays import SPENT, WalkState
from stowplan.settings.problem import make_problem

MANY = 16
"""Cores for which the model is evaluated."""

SHARES = (0.5, 0.75, 0.9, 1.0)
"""Shares of the gain that the slower one had in the end, for which times are compared."""

History = list[tuple[float, float]]
"""Seconds and value of the last tier, whenever a better placement was found."""


def main() -> int:
    """Solve with one core and with all, and print what each came to when."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores")
    parser.add_argument("nodes", nargs="?", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--objective", default="balance")
    parser.add_argument("--walk", action="store_true", help="the rearranging walk alone, in units of work")
    chosen = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    print(f"{chosen.nodes} nodes, {10 * chosen.nodes} pods, {chosen.objective}, {chosen.seconds:g} s", flush=True)
    if chosen.walk:
        walks(chosen.nodes, chosen.seed, chosen.objective, chosen.seconds, len(cores))
        return 0
    found: dict[int, History] = {}
    for number in sorted({1, len(cores)}):
        # A process of its own each: threads of a process keep the cores they began with.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            asked = (chosen.nodes, chosen.seed, chosen.objective, chosen.seconds, cores[:number])
            found[number] = process.submit(solved, *asked).result()
        parts = [f"{value_at(found[number], share * chosen.seconds):,.0f}" for share in (0.25, 0.5, 1.0)]
        print(f"{number} of {len(cores)} cores: {', '.join(parts)}", flush=True)
    if len(cores) > 1:
        compare(found[1], found[len(cores)], len(cores))
    return 0


def walks(nodes: int, seed: int, objective: str, seconds: float, most: int) -> None:
    """Walk with one thread and with several, and print the work of each second and the value in the end."""
    problem = make_problem(synthetic_snapshot(nodes, 10 * nodes, seed), Settings(objective=objective)).problem
    evaluator, tier = Evaluator(problem), len(problem.tiers) - 1
    states: list[WalkState] = []

    def noted(build: Callable[..., WalkState]) -> Callable[..., WalkState]:
        def built(*arguments: Any) -> WalkState:
            states.append(build(*arguments))
            return states[-1]

        return built

    with (
        patch.object(walking, "state_of", noted(walking.state_of)),
        patch.object(walking, "_copy", noted(walking._copy)),  # of threads that walk apart
    ):
        walking.walk(evaluator, problem.start, tier, Deadline(1.0), threads=most)  # compiles
        for threads in sorted({1, most}):
            states.clear()
            reached = walking.walk(evaluator, problem.start, tier, Deadline(seconds), threads=threads)
            value = problem.tiers[tier].shown(evaluator.evaluate(reached).values[tier])
            work = sum(int(state.value[SPENT]) for state in states) / seconds
            print(f"{threads} threads: {work / 1e6:.1f} million looks a second, {value:,.0f}", flush=True)


def solved(nodes: int, seed: int, objective: str, seconds: float, cores: list[int]) -> History:
    """Solve on some cores, and return when which value was found; the time to compile the problem does not count."""
    os.sched_setaffinity(0, set(cores))
    problem = make_problem(synthetic_snapshot(nodes, 10 * nodes, seed), Settings(objective=objective)).problem
    evaluator, tier = Evaluator(problem), problem.tiers[-1]
    history: list[tuple[float, Placement]] = []
    begun = time.monotonic()
    solve(
        problem,
        Options(seconds, workers=len(cores), processes=len(cores)),
        found=lambda placement, _: history.append((time.monotonic() - begun, placement)),
    )
    values = [(0.0, evaluator.evaluate(problem.start).values)]
    values += [(at, evaluator.evaluate(placement).values) for at, placement in history]
    best = values[-1][1][:-1]
    return [(at, tier.shown(value[-1])) for at, value in values if value[:-1] == best]


def value_at(history: History, second: float) -> float:
    """Return the last value that was found before a second."""
    return next((value for at, value in reversed(history) if at <= second), history[0][1])


def compare(one: History, all_cores: History, number: int) -> None:
    """Print the seconds to values that both reached, the speed-up, and what the model says of many cores."""
    first, last = one[0][1], max(one[-1][1], all_cores[-1][1])
    ratio = 1.0
    for share in SHARES:
        wanted = last + (1 - share) * (first - last)  # exactly the last value where the share is 1
        slow, fast = (next(at for at, value in history if value <= wanted) for history in (one, all_cores))
        print(f"{wanted:,.0f}: {slow:.1f} s with one core, {fast:.1f} s with {number}")
        ratio = slow / max(fast, 1e-3)
    speedup = min(float(number), max(1.0, ratio))
    alone = (number / speedup - 1) / (number - 1)
    many = 1 / (alone + (1 - alone) / MANY)
    print(f"speed-up {speedup:.2f} at the last; {alone:.0%} of the work is done by one core; {MANY} cores: {many:.1f}")


if __name__ == "__main__":
    raise SystemExit(main())
