"""Plans for random clusters, carried out in random orders before an independent judge: ``python -m benchmarks.plans``.

For each seed there is a cluster, a plan to the best placement found, and, for the harder half of the work, the way to a
placement drawn at random. Every plan is carried out in several random orders of all events in a wave; then the end
state is planned anew.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from models.plan import LimitsDocument, Plan
from models.snapshot import Snapshot
from optimizer.portfolio import Options
from plugins_compat.compiler.compile import Compiled
from stowplan.inputs import Settings
from stowplan.planning import Planned, Terms, make_plan, planning_problem, sequence_placement
from stowplan.solution import fixed, today
from tests.support.bystander import Bystander
from tests.support.restless import bound, placed_at_random, restless_cluster, snapshot_with

DRAWS = 50
"""How often a random placement is drawn until every pod that has a node has one."""
OBJECTIVES = ("balance", "pack", "spread")
LIMITS = (
    LimitsDocument(),
    LimitsDocument(per_owner="50%"),
    LimitsDocument(per_owner=1, per_node=1),
    LimitsDocument(total=2),
)


@dataclass(slots=True)
class Tally:
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

    def add(self, seed: int, plan: Plan, complaints: Sequence[str]) -> None:
        """Count a plan."""
        self.plans += 1
        self.moves += len(plan.moves)
        self.waves += len(plan.waves)
        self.least += plan.least_waves
        self.parked += sum(move.follows is not None for move in plan.moves)
        self.given_up += len(plan.given_up)
        if plan.waves:
            self.ratios.append(len(plan.waves) / plan.least_waves)
        self.complaints += [f"seed {seed}: {complaint}" for complaint in complaints]


def campaign(seeds: Sequence[int], orders: int = 3, *, tell: bool = False) -> tuple[Tally, Tally]:
    """Plan, carry out and plan again; return the tallies of best placements and of random ones."""
    best, drawn = Tally(), Tally()
    for seed in seeds:
        cluster = restless_cluster(seed)
        settings = Settings(objective=OBJECTIVES[seed % len(OBJECTIVES)])
        options = Options(time_limit=2, deterministic=True, seed=seed)
        terms = Terms(limits=LIMITS[seed % len(LIMITS)])
        compiled = planning_problem(cluster, settings, terms)
        planned = make_plan(cluster, settings, options, terms, compiled=compiled)
        best.add(seed, planned.plan, watched(cluster, planned, orders, seed))
        if planned.plan.status == "OPTIMAL" and not planned.plan.given_up:
            again = make_plan(after(cluster, planned), settings, options, terms)
            best.replanned += 1
            best.restless += [seed] if again.plan.waves else []
        elsewhere = to_random(compiled, seed, terms)
        drawn.add(seed, elsewhere.plan, watched(cluster, elsewhere, orders, seed))
        if tell and (best.complaints or drawn.complaints):
            print(f"seed {seed}: {[*best.complaints, *drawn.complaints][-1]}", file=sys.stderr)
    return best, drawn


def to_random(compiled: Compiled, seed: int, terms: Terms) -> Planned:
    """Return the way to a random placement that the filters admit, whatever it is worth.

    No pod loses its node; if no such placement is found, pods stay.
    """
    rng = random.Random(f"elsewhere {seed}")
    placed = {p.key for p in compiled.pods if p.node_name}
    where = today(compiled)
    for _ in range(DRAWS):
        drawn = placed_at_random(rng, compiled.snapshot, compiled.profile.release, fixed(compiled))
        if placed <= drawn.keys():
            where = fixed(compiled) | compiled.assign(compiled.placement(drawn))
            break
    return sequence_placement(compiled, where, (), Settings(), terms, keep=True)


def watched(cluster: Snapshot, planned: Planned, orders: int, seed: int) -> list[str]:
    """Carry a plan out in random orders; return what went wrong."""
    complaints: list[str] = []
    for turn in range(orders):
        judge = Bystander(cluster, planned.compiled.profile)
        complaints += judge.watch(planned.plan, random.Random(f"{seed} {turn}"))
    return complaints


def after(cluster: Snapshot, planned: Planned) -> Snapshot:
    """Return a cluster as it is when a plan is done."""
    return snapshot_with(cluster, (bound(p, planned.where.get(p.key, "")) for p in cluster.pods))


def main() -> None:
    """Run the campaign and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--orders", type=int, default=3)
    chosen = parser.parse_args()
    began = time.monotonic()
    tallies = campaign(range(chosen.first, chosen.first + chosen.clusters), chosen.orders, tell=True)
    for name, tally in zip(("best placement", "random placement"), tallies, strict=True):
        ratio = sum(tally.ratios) / max(1, len(tally.ratios))
        print(
            f"{name}: {tally.plans} plans, {len(tally.ratios)} not empty, {tally.moves} moves, {tally.parked} parked, "
            f"{tally.given_up} given up; {tally.waves} waves, at least {tally.least} needed, "
            f"ratio {ratio:.3f} on average, {max(tally.ratios, default=0):.2f} at worst; "
            f"{len(tally.complaints)} complaints; "
            f"{tally.replanned} planned again, {len(tally.restless)} of them not at rest {tally.restless[:10]}"
        )
    print(f"{time.monotonic() - began:.0f} s")
    raise SystemExit(any(tally.complaints or tally.restless for tally in tallies))


if __name__ == "__main__":
    main()
