"""Plans that move all movable pods off some nodes at the least cost of moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stowplan.answers.solve import today
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.plan import PlanTier
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Participation, Snapshot, tied
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.optimizer.portfolio import Options
from stowplan.optimizer.run import Progress, silent
from stowplan.planning.plan import Planned, make_plan, planning_problem
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.framework.scheduler import failure
from stowplan.plugins_compat.simulate import simulate
from stowplan.settings.terms import Terms


@dataclass(frozen=True, slots=True)
class RemainingPod:
    """A pod that stays on a node that is to be drained, and why.

    Parameters
    ----------
    by_rule
        Whether it stays because it cannot or must not be evicted, rather than for lack of room.
    """

    pod: Pod
    reason: str
    by_rule: bool


@dataclass(frozen=True, eq=False)
class Drained:
    """Result of a drain.

    Parameters
    ----------
    nodes
        Names of the nodes to drain.
    planned
        The plan, with the nodes to cordon first.
    stays
        Pods that remain on the nodes.
    ignored
        Number of pods that stay but do not count, by kind: DaemonSet, static, and terminating pods.
    """

    planned: Planned
    nodes: Sequence[str]
    stays: Sequence[RemainingPod]
    ignored: Mapping[str, int]

    def __repr__(self) -> str:
        stay = plural(len(self.stays), "pod")
        return f"<Drained {', '.join(self.nodes)}: {stay} left, {self.planned.plan!r}>"

    def _repr_html_(self) -> str:
        return self.planned._repr_html_()

    @property
    def possible(self) -> bool:
        """Whether the nodes are empty at the end of the plan."""
        return not self.stays

    @property
    def proof(self) -> str:
        """What proves that the nodes cannot be emptied; empty if nothing does."""
        stuck = sum(1 for stays in self.stays if stays.by_rule)
        if stuck:
            return f"{plural(stuck, 'pod')} cannot be moved"
        return proof(self.planned.plan.tiers[0])


def proof(tier: PlanTier) -> str:
    """Return what proves that a tier cannot be 0; empty if nothing does."""
    return f"at least {tier.bound:g} {tier.unit}, by {tier.bound_by}" if tier.bound >= 1 else ""


def drain(
    snapshot: Snapshot,
    nodes: Sequence[str],
    settings: Settings,
    options: Options,
    terms: Terms | None = None,
    *,
    compiled: Compiled | None = None,
    stop: Stop | None = None,
    progress: Progress = silent,
    backend: Backend | None = None,
) -> Drained:
    """Plan the moves of all pods that can leave some nodes.

    Pods on other nodes move only if that lets more pods leave, or reduces the number of moves.

    Parameters
    ----------
    settings
        The objective decides between plans that cost the same moves.
    compiled
        Result of `planning_problem` for the settings with ``drain``, if computed already.
    backend
        Solves sub-problems; by default processes of its own.

    Raises
    ------
    InputError
        If a node is not in the snapshot, or a setting cannot be used.
    """
    settings, terms, stop = draining(settings, nodes), terms or Terms(), stop or Stop()
    nodes = settings.drain
    compiled = compiled or planning_problem(snapshot, settings, terms)
    start = _greedy(compiled, set(nodes), options, stop)
    planned = make_plan(
        snapshot,
        settings,
        options,
        terms,
        compiled=compiled,
        candidates=[start],
        stop=stop,
        progress=progress,
        backend=backend,
    )
    fresh = tuple(name for name in nodes if not snapshot.nodes[snapshot.node_index[name]].unschedulable)
    planned = replace(planned, plan=planned.plan.model_copy(update={"cordon": fresh}))
    return Drained(planned, tuple(nodes), *_left(planned, set(nodes)))


def draining(settings: Settings, nodes: Sequence[str]) -> Settings:
    """Return settings with nodes to drain.

    Raises
    ------
    InputError
        If no node is named.
    """
    if not nodes:
        raise InputError("names no node", field="NODE")
    return settings.model_copy(update={"drain": tuple(dict.fromkeys(nodes))})


def _greedy(compiled: Compiled, nodes: set[str], options: Options, stop: Stop) -> Assignment:
    """Return the assignment after kube-scheduler has placed the pods that leave; unscheduled ones stay."""
    now = today(compiled)
    leaving = [pod for pod in compiled.pods if pod.node_name in nodes]
    staying = now.without([pod.key for pod in leaving])
    run = simulate(
        compiled.snapshot,
        compiled.profile,
        leaving,
        staying,
        signatures=compiled.signatures,
        seed=options.seed,
        preempts=False,
        stopped=stop.is_set,
    )
    return now | run.assignment


def _left(planned: Planned, nodes: set[str]) -> tuple[list[RemainingPod], Mapping[str, int]]:
    """Return the pods on the nodes at the end of the plan, and the number of those that do not count, by kind."""
    compiled = planned.compiled
    framework = populated(compiled.snapshot, compiled.profile, planned.assignment, compiled.signatures)
    given_up = {line.partition(" ")[0].rstrip(":"): line for line in planned.plan.given_up}
    stays: list[RemainingPod] = []
    ignored: Counter[str] = Counter()
    for pod, participation, reason in zip(
        compiled.snapshot.pods, compiled.participants.participation, compiled.participants.reason, strict=True
    ):
        if planned.assignment.get(pod.key) not in nodes or pod.node_name not in nodes:
            continue
        if participation is Participation.FIXED and (nature := tied(pod)):
            ignored[nature] += 1
        elif participation is Participation.FIXED:
            stays.append(RemainingPod(pod, planned_reason(planned, pod) or reason, by_rule=True))
        elif pod.key in given_up:
            stays.append(RemainingPod(pod, given_up[pod.key], by_rule=False))
        else:
            stays.append(RemainingPod(pod, failure(framework.run_filters(framework.cycle(pod))), by_rule=False))
    return stays, ignored


def planned_reason(planned: Planned, pod: Pod) -> str:
    """Return why a pod cannot be moved according to the plan, which is more exact than its participation."""
    return next((entry.reason for entry in planned.plan.immovable if entry.pod.key == pod.key), "")
