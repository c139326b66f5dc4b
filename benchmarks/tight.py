"""What the rearranging walk brings on clusters that are nearly full: ``python -m benchmarks.tight``.

For each seed there is a cluster of ``stowplan generate``, some of whose pods found no room. It is solved twice with the
same time limit, one after the other: without the walk and with it. Told are the pods that stay unscheduled, by each
tier that counts any, and the last tier; in the end the sums over all clusters. With ``--fit``, all pending pods are
asked for, as ``stowplan fit --all-pending`` does.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from stowplan.answers.solve import solve_snapshot
from stowplan.instances.synthetic import Scarce, synthetic_snapshot
from stowplan.models.settings import Settings
from stowplan.optimizer.parameters import Parameters
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.planning.fit import admitting
from stowplan.settings.problem import make_problem

WITHOUT = replace(Parameters(), rearrangement=RearrangementParameters(largest_table=0, largest_unlimited_table=0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Solve, and print a row for each cluster."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--pods", type=int, default=600, help="besides those of DaemonSets (default: %(default)s)")
    parser.add_argument(
        "--fill", type=float, default=0.97, help="share requested of what is scarce (default: %(default)s)"
    )
    parser.add_argument("--scarce", choices=get_args(Scarce), default="cpu", help="(default: %(default)s)")
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    parser.add_argument("--objective", default="balance")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each solve (default: %(default)s)")
    parser.add_argument("--max-moves", type=int, help="at most so many pods may leave their nodes")
    parser.add_argument("--fit", action="store_true", help="ask for all pending pods, with the fewest moves")
    given = parser.parse_args(arguments)
    behind = ahead = solved = 0
    sums: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for seed in range(given.seed, given.seed + given.clusters):
        snapshot = synthetic_snapshot(given.nodes, given.pods, seed, fill=given.fill, scarce=given.scarce)
        settings = Settings(objective=given.objective, max_moves=given.max_moves)
        if given.fit:
            waiting = [pod.key for pod in snapshot.pods if not pod.node_name and not pod.finished]
            if not waiting:
                print(f"seed {seed}: no pod waits", flush=True)
                continue
            settings = admitting(settings, snapshot, waiting)
        compiled = make_problem(snapshot, settings)
        names = [tier.name for tier in compiled.problem.tiers]
        values, bounds = [], []
        for parameters in (WITHOUT, Parameters()):
            options = Options(time_limit=given.seconds, seed=seed, parameters=parameters)
            tiers = solve_snapshot(compiled, options).outcome.tiers
            values.append([tier.value for tier in tiers])
            bounds.append([tier.bound for tier in tiers])
        for counted, found in zip(sums, values, strict=True):
            counted.update(dict(zip(names, found, strict=True)))
        solved += 1
        behind += values[1] > values[0]
        ahead += values[1] < values[0]
        told = "; ".join(
            f"{name} {before:,} → {after:,} (at least {max(bound):,})"
            for name, before, after, bound in zip(names, *values, zip(*bounds, strict=True), strict=True)
            if before or after
        )
        print(f"seed {seed}: {told}", flush=True)
    for name in sums[1]:
        if sums[0][name] or sums[1][name]:
            print(f"sum of {name}: {sums[0][name]:,} → {sums[1][name]:,}")
    print(f"with the walk: better {ahead}, worse {behind} of {solved}")


if __name__ == "__main__":
    main()
