"""What the stage says of a wave, held against every state that the wave can be in."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import pytest

from stowplan.models.limits import LimitsDocument
from stowplan.models.snapshot import Snapshot
from stowplan.plans.budgets import Budgets
from stowplan.plans.dry_run import leaving, refusal
from stowplan.plans.move import Move
from stowplan.plans.sequencing import SequencingProblem
from stowplan.plans.sequencing.wave_state import IndexedMove, WaveState
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from tests.support.restless import restless_cluster

OLD, LEAVING, BOTH, GONE, NEW = range(5)


def some_moves(cluster: Snapshot, stage: WaveState, rng: random.Random) -> list[IndexedMove]:
    """Return up to three moves to random nodes that would admit the pods alone."""
    parts = []
    for p in rng.sample(cluster.pods, min(3, len(cluster.pods))):
        targets = [n.name for n in cluster.nodes if n.name != p.node_name]
        rng.shuffle(targets)
        for target in targets:
            part = stage.indexed(Move(p, p.node_name, target))
            if stage.refusal(part)[0] is None:
                parts.append(part)
                break
    return parts


def states(part: IndexedMove, waits: bool) -> list[int]:
    """Return the states in which a move may be."""
    if part.source == -1:
        return [GONE, NEW]
    return [OLD, LEAVING, GONE, NEW] if waits or part.gone_first else [OLD, LEAVING, BOTH, GONE, NEW]


def refused_somewhere(
    cluster: Snapshot, release: Release, parts: Sequence[IndexedMove], waits: Sequence[bool]
) -> Iterator[str]:
    """Try every state of the other moves, and say where a replacement is refused."""
    profile = default_profile(release)
    where = cluster.assignment
    stay = {key: node for key, node in where.items() if key not in {part.pod.key for part in parts}}
    for i, part in enumerate(parts):
        own = [GONE] if waits[i] or part.gone_first or part.source == -1 else [LEAVING, GONE]
        choices = [own if j == i else states(other, waits[j]) for j, other in enumerate(parts)]
        for chosen in itertools.product(*choices):
            framework = populated(cluster, profile, stay)
            state = framework.state
            for other, now in zip(parts, chosen, strict=True):
                if now == OLD:
                    state.put(other.pod, other.source)
                if now in (LEAVING, BOTH):
                    state.put(leaving(other.pod), other.source)
                if now in (BOTH, NEW):
                    state.put(other.pod, other.target)
            if status := refusal(framework, part.pod, part.target):
                yield f"{part.pod.key} on {part.target} while {chosen}: {status}"


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
def test_a_wave_holds_in_every_state_and_is_refused_only_for_a_reason(release: Release) -> None:
    accepted = refused = needless = 0
    for seed in range(40):
        cluster = restless_cluster(seed, release=release)
        rng = random.Random(seed)
        task = SequencingProblem(
            cluster, default_profile(release), cluster.assignment, (), Budgets(cluster), LimitsDocument()
        )
        stage = WaveState(task)
        wave: list[IndexedMove] = []
        waits: list[bool] = []
        for part in some_moves(cluster, stage, rng):
            status, late = stage.refusal(part)
            if status is None:
                stage.join(part)
                wave.append(part)
                waits.append(late)
                accepted += 1
            else:
                refused += 1
                needless += not any(refused_somewhere(cluster, release, [*wave, part], [*waits, late]))
        complaints = list(refused_somewhere(cluster, release, wave, waits))
        assert not complaints, (seed, complaints[:3])
    assert accepted > 40
    assert refused > 2
    assert needless == 0
