"""Parameters of the integer program over transfers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransferParameters:
    """When transfers are searched, and for how long.

    Parameters
    ----------
    share, room_share, cored_room_share, moves_share
        Share of the time that is left: for a tier that counts nodes in use alone, one that counts unscheduled pods
        alone, where that is small and where it has cores, and for others.
    far, far_share
        The gap, as a share of the value, above which a tier that counts nodes in use has a smaller share of the time.
    largest_here, largest_whole, largest
        Variables up to which a program is solved in this process; above which it is not solved as a whole; and of
        which, if there are more, those with the smallest reduced costs are all that there are for cores.
    cored
        (class, node) variables above which cores are searched where pods wait.
    first_core, core_share, core_growth
        Variables of the first core at least, their share of all, and the factor by which the next one is larger.
    core_time
        Share of the time that is left for each core.
    close
        Relative gap of the linear relaxation at which its duals are taken.
    relaxed_per_second
        Nodes times the square of kinds that the relaxation does in a second; of more, a part of the nodes is searched.
    least_nodes, some_nodes
        The least nodes of such a part that are worth it, and the most: few moves change few nodes.
    relaxing_share
        Share of the time that the relaxation may take, and then the bound from its duals.
    patience, arranging
        Seconds without a better solution after which CP-SAT chooses pods for the last one, and those that it has.
    arranging_moves
        The most moves that it may use, as a multiple of those of the solution.
    arranging_share, beyond
        When solvers have ended: the share of what is left of the turn that it has for that, and the share of what the
        solve has left that it has in any case.
    solving
        Part of the time for solvers of cores; the rest is for placing what they found last.
    worth
        Seconds below which no process is begun, which takes half a second.
    variables_per_second
        Variables of a program that are worth a try as a whole, for each second that is granted.
    bytes_per_variable, bytes_per_core_variable
        Memory that solvers need for a variable, of a whole program and of cores, in bytes.
    """

    share: float = 0.5
    room_share: float = 0.15
    cored_room_share: float = 0.4
    moves_share: float = 0.6
    far: float = 0.06
    far_share: float = 0.4
    largest_here: int = 1_000
    largest_whole: int = 30_000
    largest: int = 120_000
    cored: int = 4_000
    first_core: int = 2_000
    core_share: float = 0.06
    core_growth: float = 2.0
    core_time: float = 0.8
    close: float = 5e-3
    relaxed_per_second: float = 3e7
    least_nodes: int = 60
    some_nodes: int = 1_000
    relaxing_share: float = 0.3
    patience: float = 0.4
    arranging: float = 1.5
    arranging_moves: float = 1.25
    arranging_share: float = 0.7
    beyond: float = 0.15
    solving: float = 0.7
    worth: float = 0.6
    variables_per_second: float = 5_000.0
    bytes_per_variable: int = 20_000
    bytes_per_core_variable: int = 6_000
