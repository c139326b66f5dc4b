"""Plans for random clusters, carried out in random orders and checked independently: ``python -m benchmarks.plans``.

For each seed there is a cluster; a plan to the best placement found, and, which is harder, the way to a placement drawn
at random. Every plan is carried out in several random orders of all events in a wave. The end state of the best is
planned anew: nothing may move then.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stowplan.answers.assessment import Assessor
from stowplan.answers.solve import fixed, today
from stowplan.models.limits import LimitsDocument
from stowplan.models.plan import Plan
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.portfolio import Options
from stowplan.planning.plan import Planned, make_plan, planning_problem, sequence_placement
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.terms import Terms
from tests.support.bystander import Bystander
from tests.support.restless import bound, placed_at_random, restless_cluster, snapshot_with

DRAWS = 50
"""How often a random placement is drawn until every pod that has a node has one."""
OFTEN = 50
"""Clusters after which the figures so far are told."""
OBJECTIVES = ("balance", "pack", "spread")
LIMITS = (
    LimitsDocument(),
    LimitsDocument(per_owner="50%"),
    LimitsDocument(per_owner=1, per_node=1),
    LimitsDocument(total=2),
)


@dataclass(slots=True)
class DomainCounts:
    """What came of many plans.

    Attributes
    ----------
    complaints
        Whatever went wrong while a plan was carried out, with its seed.
    restless
        Seeds of the plans whose end state was planned to be left again.
    """

    plans: int = 0
    moves: int = 0
    waves: int = 0
    least: int = 0
    ratios: list[float] = field(default_factory=list)
    parked: int = 0
    given_up: int = 0
    complaints: list[str] = field(default_factory=list)
    replanned: int = 0
    restless: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times the waves that are needed at least the plans have, on average."""
        return sum(self.ratios) / max(1, len(self.ratios))

    def __str__(self) -> str:
        return (
            f"{self.plans} plans, {len(self.ratios)} not empty, {self.moves} moves, {self.parked} parked, "
            f"{self.given_up} given up; {self.waves} waves, at least {self.least} needed, "
            f"ratio {self.ratio:.3f} on average, {max(self.ratios, default=0):.2f} at worst; "
            f"{len(self.complaints)} complaints; "
            f"{self.replanned} planned again, {len(self.restless)} of them not at rest {self.restless[:10]}"
        )

    def add(self, seed: int, plan: Plan, complaints: Sequence[str], tell: bool) -> None:
        """Count a plan."""
        if tell and complaints:
            print(f"seed {seed}: {complaints[0]}", file=sys.stderr)
        self.plans += 1
        self.moves += len(plan.moves)
        self.waves += len(plan.waves)
        self.least += plan.least_waves
        self.parked += sum(move.follows is not None for move in plan.moves)
        self.given_up += len(plan.given_up)
        if plan.waves:
            self.ratios.append(len(plan.waves) / plan.least_waves)
        self.complaints += [f"seed {seed}: {complaint}" for complaint in complaints]


def best_placement(seed: int, domain_counts: DomainCounts, orders: int = 3, *, tell: bool = False) -> None:
    """Plan the best placement of a random cluster, carry the plan out, and plan again."""
    cluster = restless_cluster(seed)
    settings = Settings(objective=OBJECTIVES[seed % len(OBJECTIVES)])
    options = Options(time_limit=0.2, deterministic=True, seed=seed)
    terms = Terms(limits=LIMITS[seed % len(LIMITS)])
    planned = make_plan(cluster, settings, options, terms)
    domain_counts.add(seed, planned.plan, watched(cluster, planned, orders, seed), tell)
    if planned.plan.status == "OPTIMAL" and not planned.plan.given_up:
        again = make_plan(after(cluster, planned), settings, options, terms)
        domain_counts.replanned += 1
        domain_counts.restless += [seed] if again.plan.waves else []


def way_to_a_random_placement(
    seed: int, domain_counts: DomainCounts, orders: int = 3, *, tell: bool = False, spoil: bool = False
) -> None:
    """Plan the way to a random placement of a random cluster, and carry the plan out.

    Parameters
    ----------
    spoil
        Throw all waves into one, which has to be noticed.
    """
    cluster = restless_cluster(seed)
    terms = Terms(limits=LIMITS[seed % len(LIMITS)])
    planned = to_random(planning_problem(cluster, Settings(), terms), seed, terms)
    if spoil:
        planned = replace(planned, plan=spoilt(planned.plan))
    domain_counts.add(seed, planned.plan, watched(cluster, planned, orders, seed), tell)


def spoilt(plan: Plan) -> Plan:
    """Return a plan with all its moves in one wave, parked pods going where they are to stay at once."""
    moves = [move for move in plan.moves if move.follows is None]
    onward = {move.follows: move.target for move in plan.moves if move.follows}
    if not moves:
        return plan
    straight = tuple(move.model_copy(update={"target": onward.get(move.id, move.target)}) for move in moves)
    return plan.model_copy(update={"waves": (plan.waves[0].model_copy(update={"moves": straight}),)})


def to_random(compiled: Compiled, seed: int, terms: Terms) -> Planned:
    """Return the way to a random placement that the filters admit, whatever it is worth.

    For one seed in five pods may lose their nodes; for the others, if no such placement is found, pods stay.
    """
    rng = random.Random(f"elsewhere {seed}")
    placed = {p.key for p in compiled.pods if p.node_name}
    where = today(compiled)
    for _ in range(DRAWS):
        drawn = placed_at_random(rng, compiled.snapshot, compiled.profile.release, fixed(compiled))
        if placed <= drawn.keys() or seed % 5 == 0:
            where = fixed(compiled) | compiled.assign(compiled.placement(drawn))
            break
    return sequence_placement(Assessor(compiled), where, (), Settings(), terms, keep=True)


def watched(cluster: Snapshot, planned: Planned, orders: int, seed: int) -> list[str]:
    """Carry a plan out in random orders; return what went wrong."""
    complaints: list[str] = []
    for turn in range(orders):
        evaluator = Bystander(cluster, planned.compiled.profile)
        complaints += evaluator.watch(planned.plan, random.Random(f"{seed} {turn}"))
    return complaints


def after(cluster: Snapshot, planned: Planned) -> Snapshot:
    """Return a cluster as it is when a plan is done."""
    return snapshot_with(cluster, (bound(p, planned.assignment.get(p.key, "")) for p in cluster.pods))


def main() -> None:
    """Run the campaign and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--only", choices=RUNS, help="one of the two; both if not given")
    chosen = parser.parse_args()
    failed = False
    for name, run in RUNS.items():
        if chosen.only not in (None, name):
            continue
        began, domain_counts = time.monotonic(), DomainCounts()
        for seed in range(chosen.first, chosen.first + chosen.clusters):
            run(seed, domain_counts, chosen.orders, tell=True)
            if domain_counts.plans % OFTEN == 0:
                print(f"{name}: {domain_counts}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        print(f"{name}: {domain_counts}, {time.monotonic() - began:.0f} s", flush=True)
        failed |= bool(domain_counts.complaints or domain_counts.restless)
    raise SystemExit(failed)


RUNS = {"random": way_to_a_random_placement, "best": best_placement}

if __name__ == "__main__":
    main()
