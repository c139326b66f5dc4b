"""Steps per second and thread, and what each kind of step takes: ``python -m benchmarks.steps [--roadef FOLDER]``.

Instances of all families: clusters of ``stowplan generate`` under several objectives, generated vectors to be packed,
pods with priorities, and some of ROADEF/EURO 2012 where a folder with its sets A and B is given. On each, one chain of
local search anneals for some seconds, of which only the time in compiled code counts. Where the rearranging walk knows
the problem, one chain of it walks for as long; then it takes steps of one kind only, for the time that each kind takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from stowplan.instances.suites.opening import open_suite
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.errors import InputError
from stowplan.models.problem import Problem
from stowplan.models.settings import Settings
from stowplan.optimizer.annealing import anneal as local_search
from stowplan.optimizer.annealing.kernel.chain import Chain
from stowplan.optimizer.annealing.kernel.state import SearchState
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.rearrangement.kernel import arrays as at
from stowplan.optimizer.rearrangement.kernel.arrays import WalkModel, WalkState
from stowplan.optimizer.rearrangement.kernel.walk import STEP_KINDS, run_walk
from stowplan.optimizer.rearrangement.model_builder import build_model, pods_of, scale, suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.walking import cumulative, state_of
from stowplan.settings.problem import make_problem

CLUSTERS = ((100, 1_000, "balance"), (1_000, 10_000, "balance"), (100, 1_000, "pack"), (100, 1_000, "spread"))
GENERATED = ("triplets:120_3", "priority-matters:nodes32_pods256_prio4_util100")
ROADEF = {"A": ("a1_4", "a2_2", "a2_5"), "B": ("b_01",)}

KINDS = ("shift", "return", "swap", "home", "chain", "swap of moved")
SLICE = 100_000
"""Work between two looks at the clock."""


def main() -> None:
    """Read the options, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--roadef", type=Path, help="folder with the sets A and B")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each engine (default: %(default)s)")
    given = parser.parse_args()
    try:
        measure(given.roadef, given.seconds)
    except InputError as error:
        parser.error(str(error))


def measure(roadef: Path | None, seconds: float) -> None:
    """Print a row for each instance."""
    for name, problem in instances(roadef):
        classes, nodes = problem.shape
        evaluator = Evaluator(problem)
        local = local_steps(evaluator, seconds)
        print(f"{name}: {classes:,} classes, {nodes:,} nodes; local search {local / 1e6:.2f} million steps/s", end="")
        known = suits(problem, len(problem.tiers) - 1, RearrangementParameters().largest_table)
        if known and len(problem.start.cls):  # it moves only pods that have a node
            print("; " + walk_steps(evaluator, seconds), end="")
        print(flush=True)


def instances(roadef: Path | None) -> Iterator[tuple[str, Problem]]:
    """Yield name and problem of each instance."""
    if roadef is not None:
        for group, names in ROADEF.items():
            for instance in open_suite(str(roadef / group)).instances:
                if any(name in instance.name for name in names):
                    yield instance.name, instance.state().problem
    for nodes, pods, objective in CLUSTERS:
        snapshot = synthetic_snapshot(nodes, pods, 7)
        yield f"{nodes} x {pods} {objective}", make_problem(snapshot, Settings(objective=objective)).problem
    for suite in GENERATED:
        yield suite, open_suite(suite, count=1, seed=1).instances[0].state().problem


def local_steps(evaluator: Evaluator, seconds: float) -> float:
    """Return the steps of local search in a second of compiled code, once it is compiled."""
    steps, spent = 0, 0.0
    run_chain = local_search.run_chain

    def counted(state: SearchState, chain: Chain, batch: int, *rest: Any) -> None:
        nonlocal steps, spent
        began = time.perf_counter()
        run_chain(state, chain, batch, *rest)
        spent += time.perf_counter() - began
        steps += batch

    for limit in (0.01, seconds):  # the first one compiles
        steps, spent = 0, 0.0
        with patch.object(local_search, "run_chain", counted):
            local_search.anneal(evaluator, evaluator.problem.start, Deadline(limit), 1, chains=1)
    return steps / spent if spent else 0.0


def walk_steps(evaluator: Evaluator, seconds: float) -> str:
    """Tell the steps and rearrangements of a walk in a second, and how long a step of each kind takes."""
    problem, chosen = evaluator.problem, RearrangementParameters()
    tier = len(problem.tiers) - 1
    cls, node, home = pods_of(problem, problem.start)
    model = build_model(evaluator, tier, cls, home)
    state = state_of(evaluator, model, tier, node, 1)
    unit, schedule = scale(model), chosen.hinged_schedule if model.hinged else chosen.curved_schedule
    usual = cumulative(chosen.kinds)
    few = model.hinged and len(cls) <= chosen.few_pods * len(problem.nodes)
    share = chosen.share if few else chosen.crowded_share
    run_walk(model, state, 1_000, 0.0, share, usual)  # compiles
    for part in (0.25, 0.5, 0.75):  # from hot to where the second part of the schedule begins
        temperature = unit * schedule[0] * (schedule[1] / schedule[0]) ** part
        timed(model, state, seconds / 6, temperature, share, usual)
    temperature = unit * schedule[1]
    steps, rearrangements, taken = timed(model, state, seconds / 2, temperature, share, usual)
    told = [
        f"walk {steps / taken / 1e6:.2f} million steps/s, {rearrangements / taken / 1e3:.0f} thousand of them rearrange"
    ]
    for kind in range(STEP_KINDS):
        only = (np.arange(STEP_KINDS) >= kind).astype(np.float64)
        count, _, taken = timed(model, state, seconds / 20, temperature, 0.0, only)
        told.append(f"{KINDS[kind]} {taken / count * 1e9:.0f} ns")
    _, count, taken = timed(model, state, seconds / 20, temperature, 1.0, usual)
    told.append(f"rearrangement {taken / max(1, count) * 1e9:.0f} ns")
    return ", ".join(told)


def timed(
    model: WalkModel, state: WalkState, seconds: float, temperature: float, share: float, kinds: at.Float64
) -> tuple[int, int, float]:
    """Walk at one temperature; return steps, rearrangements among them, and seconds."""
    before = state.value[[at.STEPS, at.REARRANGEMENTS]].copy()
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        run_walk(model, state, SLICE, temperature, share, kinds)
    taken = time.perf_counter() - began
    steps, rearrangements = (state.value[[at.STEPS, at.REARRANGEMENTS]] - before).tolist()
    return steps, rearrangements, taken


if __name__ == "__main__":
    main()
