"""Parameters of the rearranging walk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class RearrangementParameters:
    """How a walk cools down, and what its steps are.

    Parameters
    ----------
    first_share, first_hinged_share, only_share, far_share, near_share
        Share of the time that is left: of the first, short walk, also if nothing limits moves and all curves are 0 up
        to a corner and linear behind it; of the only walk in a very large problem; and of the long one, where the value
        is far from its bound, so that proofs by CP-SAT are out of reach, and where it is near.
    sparing_share
        Share of the time for sparing moves where pods were let in.
    longest_queue
        Unscheduled pods up to which a walk makes room for them.
    far_gap, provable
        Gap to the bound from which a value is far, if there are more (class, node) variables than are provable.
    hinged_schedule, curved_schedule
        Temperatures at the beginning, where the second part begins, and at the end; both parts are geometric. They are
        multiples of what a pod costs on average where nodes charge most for each unit of load: for tiers where all
        curves are 0 up to a corner and linear behind it, and for others, whose steepest slopes are rarely met.
    waiting_schedule
        The same where pods wait, as multiples of what the dearest of them costs. No pod is ever sent to wait for long;
        what temperature decides is how many others go elsewhere meanwhile.
    back_share, back_work
        Where pods wait, share of the time at the end in which moves are taken back that gained nothing, and the work
        for each pod after which that ends, if it gained nothing.
    first_part
        Share of the time for the first part.
    few_pods, share, crowded_share
        Mean pods of a node up to which rearrangements take ``share`` of the work, if the curves are hinges; they do too
        where pods wait. Otherwise they take ``crowded_share``.
    cold_factor
        Factor of that share in the second part.
    kinds
        Weights of the other steps: shift, return, swap, home, chain, swap of moved pods.
    work_at_once, least_temperatures
        Work between two looks at the clock, a look at a node being the unit of work, and the least number of
        temperatures of a walk.
    thorough, hinged_thorough
        Work for each pod and node after which a walk ends before its time; the second one if all curves are hinges.
    work_per_second
        Work that counts as a second where time does not.
    divided
        Nodes for each thread where several walk on one placement.
    divisions, divided_work
        How often the nodes are divided anew, and the work between two looks at the clock then.
    quench
        Share of the time after which a divided walk has no temperature.
    reports
        How often a walk says what it has found.
    largest_table, largest_unlimited_table
        Classes times nodes up to which a problem suits, if moves are limited or there are several walks, and if not.
    bytes_per_pair
        What the tables of a problem of between these sizes take for each class and node, two chains included.
    """

    first_share: float = 0.1
    first_hinged_share: float = 0.05
    only_share: float = 0.7
    far_share: float = 0.85
    near_share: float = 0.5
    sparing_share: float = 0.15
    longest_queue: int = 1_000
    far_gap: float = 0.03
    provable: int = 2_000
    hinged_schedule: tuple[float, float, float] = (0.3, 0.014, 5e-4)
    curved_schedule: tuple[float, float, float] = (0.03, 0.003, 1e-4)
    waiting_schedule: tuple[float, float, float] = (1.5e-3, 1.5e-4, 5e-6)
    back_share: float = 0.1
    back_work: int = 200
    first_part: float = 0.7
    few_pods: float = 25.0
    share: float = 0.6
    crowded_share: float = 0.1
    cold_factor: float = 1 / 7
    kinds: tuple[float, ...] = (40, 40, 20, 6, 10, 10)
    work_at_once: int = 300_000
    least_temperatures: float = 100.0
    thorough: float = 20_000.0
    hinged_thorough: float = 200_000.0
    work_per_second: float = 5_000_000.0
    divided: int = 500
    divisions: int = 100
    divided_work: int = 30_000
    quench: float = 0.98
    reports: int = 20
    largest_table: int = 150_000_000
    largest_unlimited_table: int = 1_000_000_000
    bytes_per_pair: int = 14

    def cooled(self, share: float) -> Self:
        """Return what suits a walk that goes on where another has ended: it begins at a share of the temperature."""

        def cool(schedule: tuple[float, float, float]) -> tuple[float, float, float]:
            hottest, turning, coldest = schedule
            begin = max(coldest, share * hottest)
            return begin, max(coldest, min(turning, begin * turning / hottest)), coldest

        return replace(
            self,
            hinged_schedule=cool(self.hinged_schedule),
            curved_schedule=cool(self.curved_schedule),
        )
