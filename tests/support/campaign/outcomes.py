"""What became of a plan, by what is there at its end and by what etcd was told."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.applying.apply import Applied
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.models.snapshot import Snapshot
from stowplan.planning.replay import CompiledObjective, replay_plan
from stowplan.plans.replacements import group_of_pod
from stowplan.plans.replay.distribution import HIGH, LOW, Distribution
from stowplan.plans.replay.outcome import share_kept
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from stowplan.settings.problem import same_problem
from tests.support.api_server.eviction import is_ready
from tests.support.api_server.resources import BY_KIND, PODS
from tests.support.api_server.selectors import selects
from tests.support.api_server.store import Store
from tests.support.campaign.clusters import seen


def as_pods_of(before: Snapshot, after: Snapshot) -> Assignment:
    """Return where the pods of a snapshot, or their replacements, are in a later one; as many as can stay."""
    there: dict[object, Counter[str]] = defaultdict(Counter)
    for pod in after.pods:
        if pod.node_name and not pod.finished and not pod.terminating:
            there[group_of_pod(pod)][pod.node_name] += 1
    where: dict[str, str] = {}
    for pod in before.pods:
        if there[group_of_pod(pod)][pod.node_name] > 0:
            there[group_of_pod(pod)][pod.node_name] -= 1
            where[pod.key] = pod.node_name
    for pod in before.pods:
        left = +there[group_of_pod(pod)]
        if pod.key not in where and left:
            where[pod.key] = next(iter(left))
            there[group_of_pod(pod)][where[pod.key]] -= 1
    return Assignment(where)


@dataclass(frozen=True)
class Outcome:
    """What became of a plan.

    Parameters
    ----------
    stopped
        Why it did not come to its end; empty if it did.
    kept, low, high
        Share of the gain that was there at the end, and the range that replays gave; ``None`` without a gain.
    promised
        Share of the replays in which it came to its end.
    worse
        Whether it ended worse than it began; not told of plans whose workloads were changed.
    twice
        Number of pods that were deleted twice.
    broken
        Number of pods that were deleted although fewer were ready than their budget keeps; not told of workloads that
        were changed meanwhile.
    hopeless
        Whether it stopped although a replay of the rest, from where pods are, comes to its end and makes nothing worse;
        told of steered plans.
    """

    moves: int
    waves: int
    cordons: int
    stopped: str
    kept: float | None
    low: float | None
    high: float | None
    worse: bool
    twice: int
    broken: int = 0
    hopeless: bool = False
    events: tuple[str, ...] = ()
    promised: float | None = None

    @property
    def in_range(self) -> bool:
        """Whether the gain is what replays said."""
        assert self.kept is not None
        assert self.low is not None
        assert self.high is not None
        return self.low - 1e-9 <= self.kept <= self.high + 1e-9


def judged(
    plan: Plan,
    before: Snapshot,
    store: Store,
    result: Applied,
    told: Distribution | None,
    events: tuple[str, ...] = (),
) -> Outcome:
    compiled = same_problem(before, plan.settings, default_profile(K36), limited=False)
    objective = CompiledObjective(compiled)
    start = Assignment(before.assignment)
    planned = start.moved((move.pod.key, move.target) for move in plan.moves)
    end = objective(as_pods_of(before, seen(store)))
    kept = share_kept(objective(start), objective(planned), end)
    low, high = (told.quantile(LOW), told.quantile(HIGH)) if told else (None, None)
    cordons = sum(len(wave.cordon) for wave in plan.waves)
    changed = any(event.startswith(("scale-down", "rollout")) for event in events)  # the pods are others then
    worse = not changed and (not end.legal or end.values > objective(start).values)
    twice, broken = _deleted_twice(store), _budgets_broken(store, events)
    hopeless = told is None and bool(result.stopped) and _rest_holds(plan, result, seen(store))
    about = (len(plan.moves), len(plan.waves), cordons, result.stopped, kept, low, high)
    return Outcome(*about, worse, twice, broken, hopeless, events, told and told.share_finished)


def _rest_holds(plan: Plan, result: Applied, snapshot: Snapshot) -> bool:
    """Whether a replay of what is left, from where pods are, comes to its end and makes nothing worse."""
    ledger, there = result.ledger, {pod.key: pod for pod in snapshot.pods}
    waves = []
    for wave in plan.waves:
        moves = []
        for move in wave.moves:
            name = ledger.name(move)
            pod = there.get(f"{move.pod.namespace}/{name}")
            is_placed = move.kind == "place" and pod is not None and pod.node_name
            if pod is None or is_placed or ledger.stage(move) not in {"waiting", "asked"}:
                continue
            about = move.pod.model_copy(update={"name": name, "uid": pod.metadata.uid})
            moves.append(move.model_copy(update={"pod": about, "source": pod.node_name or None}))
        waves.append(wave.model_copy(update={"moves": tuple(moves)}))
    rest = plan.model_copy(update={"waves": tuple(waves)})
    try:
        found = replay_plan(rest, snapshot, default_profile(K36), steered=True, runs=0).outcome
    except InputError:
        return False
    return not found.halted and not found.waiting and found.actual.as_good_as(found.before)


def _deleted_twice(store: Store) -> int:
    leaving: Counter[str] = Counter()
    before: dict[str, bool] = {}
    for _, kind, resource, pod in store.events:
        if resource == PODS.name:
            uid, gone = pod["metadata"]["uid"], kind == "DELETED" or "deletionTimestamp" in pod["metadata"]
            leaving[uid] += gone and not before.get(uid, False)
            before[uid] = gone
    return sum(number > 1 for number in leaving.values())


def _budgets_broken(store: Store, events: Sequence[str]) -> int:
    """Count ready pods that were deleted although their budget then kept too few, by what etcd was told."""
    changed = {event.split()[2].split("-")[0] for event in events if event.startswith(("scale-down", "rollout"))}
    broken = 0
    for found in store.all(BY_KIND["PodDisruptionBudget"]):
        space, selector = found["metadata"]["namespace"], found["spec"]["selector"]
        if selector["matchLabels"].get("app") in changed:
            continue
        least = found["status"]["desiredHealthy"]
        healthy: set[str] = set()
        for _, kind, resource, pod in store.events:
            if resource != PODS.name or pod["metadata"]["namespace"] != space:
                continue
            if not selects(selector, pod["metadata"].get("labels") or {}):
                continue
            uid, leaves = pod["metadata"]["uid"], kind == "DELETED" or "deletionTimestamp" in pod["metadata"]
            if leaves and uid in healthy:
                healthy.remove(uid)
                broken += len(healthy) < least
            elif not leaves and is_ready(pod):
                healthy.add(uid)
            else:
                healthy.discard(uid)
    return broken
