"""What is foretold of a move or an exchange, against what comes when it is made."""

from __future__ import annotations

import random

import numpy as np
import pytest

from stowplan.optimizer.annealing.kernel import layout as at
from stowplan.optimizer.annealing.kernel.moves import glance, legal, shift
from stowplan.optimizer.annealing.kernel.screen import barred, price_relations
from stowplan.optimizer.annealing.state_builder import image_of
from stowplan.optimizer.evaluate import Judge
from tests.optimizer.test_kernel import problem_of
from tests.support.problems import random_company


@pytest.mark.parametrize("seed", range(150))
def test_what_relations_say_of_moves_and_exchanges_comes_true(seed: int) -> None:
    """Whatever is barred is illegal, and prices are exact; walks go on to where placements are illegal too."""
    problem = random_company(seed) if seed % 3 == 0 else problem_of(seed)
    if not problem.pods:
        return
    image = image_of(Judge(problem), problem.start)
    rng = random.Random(seed)
    nodes, tiers = len(problem.nodes), len(problem.tiers)
    change = np.zeros(tiers + 2, dtype=np.int64)
    for _ in range(80):
        p, q = rng.randrange(problem.pods), rng.randrange(-1, problem.pods)
        source = int(image.pod[p, at.P_NODE])
        target = int(image.pod[q, at.P_NODE]) if q >= 0 else rng.randrange(nodes + 1)
        c, e = (int(image.pod[i, at.P_CLASS]) if i >= 0 else -1 for i in (p, q))
        if source == target or c == e:
            continue
        was_legal, before = legal(image), image.value[:tiers].copy()
        possible = glance(image, p, q, source, target, change, 0) and not barred(image, c, e, source, target)
        complete = price_relations(image, c, e, source, target, change)
        shift(image, p, target)
        if q >= 0:
            shift(image, q, source)
        if was_legal and legal(image):
            assert possible
            exceeded = np.any(image.excess_weight[:tiers] * (image.value[:tiers] - before))
            scores = q >= 0 and image.head[at.H_SCORES]
            if complete and not exceeded and not scores:
                assert np.array_equal(image.value[:tiers] - before, change[:tiers])
        if not legal(image) and rng.random() < 0.8:
            if q >= 0:
                shift(image, q, target)
            shift(image, p, source)
