"""The cheapest pods of nodes: compiled and not, they are those that enumeration finds."""

from __future__ import annotations

from itertools import product

import pytest

from stowplan.optimizer.final_state.pricing import NodePricing
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn

CLASSES, NODES = 3, 2


class Random:
    """Nodes, and prices of pods, of room, and of a curve's load.

    Pods may make each other cheaper, and costs are turned in part.
    """

    def __init__(self, choices: Choices) -> None:
        shape = CLASSES * NODES
        self.upper = choices.array(shape, 0, 3).reshape(CLASSES, NODES)
        self.start = choices.array(shape, 0, 2).reshape(CLASSES, NODES)
        self.table = choices.array(shape, 0, 9).reshape(CLASSES, NODES).astype(float)
        least = 0 if choices.chance(0.7) else -2
        self.crowding = choices.array(shape, least, 2).reshape(CLASSES, NODES).astype(float)
        self.most = choices.array(NODES, 0, 6)
        self.demands = choices.array(CLASSES, 0, 2).reshape(1, CLASSES).astype(float)
        self.curve = choices.array(CLASSES, 0, 2)
        self.price, self.move = (choices.array(CLASSES, 0, most).astype(float) for most in (14, 3))
        self.twist = choices.array(shape, -2, 2).reshape(CLASSES, NODES).astype(float)
        self.lift, self.turn = choices.array(NODES, -2, 2).astype(float), choices.array(NODES, 0, 2) / 2
        self.room, self.slope = (choices.array(NODES, least, 2).astype(float) for least in (0, -2))

    def cost(self, n: int, pods: tuple[int, ...]) -> float:
        """Return what some pods of each class cost on a node."""
        number, total = sum(pods), 0.0
        for c, here in enumerate(pods):
            each = self.table[c, n] - self.price[c] + self.demands[0, c] * self.room[n] + self.curve[c] * self.slope[n]
            beside = self.crowding[c, n] + self.turn[n] * self.twist[c, n]
            total += (
                here * (each + self.turn[n] * self.lift[n] + number * beside)
                - min(here, self.start[c, n]) * self.move[c]
            )
        return total


@pytest.mark.parametrize("kernels", [True, False])
@cases(150, at_least={"several": 20, "none": 5}, case=drawn(Random))
def test_no_pods_of_a_node_cost_less(case: Random, kernels: bool) -> None:
    pricing = NodePricing(
        case.upper,
        case.start,
        case.table,
        case.crowding,
        (case.twist, case.lift),
        case.most,
        case.demands,
        [case.curve],
        kernels=kernels,
    )
    least, chosen = pricing.cheapest(case.price, case.move, case.room[None], [case.slope], case.turn)
    for n in range(NODES):
        ways = product(*(range(int(most) + 1) for most in case.upper[:, n]))
        best = min(case.cost(n, pods) for pods in ways if sum(pods) <= case.most[n])
        assert least[n] == pytest.approx(best)
        assert case.cost(n, tuple(chosen[:, n].tolist())) == pytest.approx(best)
        assert (chosen[:, n] <= case.upper[:, n]).all()
        assert chosen[:, n].sum() <= case.most[n]
        count("several", chosen[:, n].sum() > 1)
        count("none", not chosen[:, n].any() and bool(case.upper[:, n].any()))
