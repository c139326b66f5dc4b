"""Compiles a snapshot into a problem, and reads placements of the problem back as pods on nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Pod
from stowplan.models.node_health import health_notes
from stowplan.models.objective import Objective
from stowplan.models.problem import (
    GroupMoveBudget,
    MoveBudget,
    Origin,
    Placement,
    Problem,
    Rule,
    Tier,
    Weighted,
    project,
    refine,
)
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural
from stowplan.plugins_compat.compiler.goals import DrainAndAdmit, Weigh, make_tiers, scoring_plugins
from stowplan.plugins_compat.compiler.participants import Freeze, Participants, classify
from stowplan.plugins_compat.compiler.repair import Standing, dead_node_rule, standing_apart, tolerate
from stowplan.plugins_compat.final_state.cost import FinalStateCost, PricedFinalState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.plugin import implements
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signature, Signatures
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.registry import broken_packages
from stowplan.plugins_compat.requests import check_sums


@dataclass(frozen=True, eq=False)
class Compiled:
    """A problem, and the way back to the snapshot it came from.

    Parameters
    ----------
    snapshot, profile, objective
        What was compiled.
    signatures
        Signatures of the snapshot's pods.
    problem
        The problem.
    pods
        ``[p]`` the pods that the problem places, in the snapshot's order.
    class_of
        ``[p]`` the class of each.
    participants
        The participation of every pod of the snapshot.
    notes
        What of the profile is not in the model.
    prices
        What each node costs in an hour, by name, if that is known.
    final_state
        The exact score of placements, where the objective asks for scores.
    """

    snapshot: Snapshot
    profile: Profile
    objective: Objective
    signatures: Signatures
    problem: Problem
    pods: Sequence[Pod]
    class_of: Ints
    participants: Participants
    notes: Sequence[str]
    prices: Mapping[str, float] | None = None
    final_state: FinalStateCost | None = None

    def __repr__(self) -> str:
        classes, nodes = self.problem.shape
        size = f"{plural(len(self.pods), 'pod')} of {plural(classes, 'class', 'classes')}, {plural(nodes, 'node')}"
        return f"<Compiled {self.objective.name}: {size}, {plural(len(self.problem.rules), 'rule')}>"

    def placement(self, assignment: Assignment) -> Placement:
        """Return an assignment as a placement of the problem.

        Parameters
        ----------
        assignment
            Node name by pod key; pods that are not named, or whose node is empty, have none.
        """
        index = self.snapshot.node_index
        counts: Counter[tuple[int, int]] = Counter()
        for pod, c in zip(self.pods, self.class_of.tolist(), strict=True):
            if node := assignment.get(pod.key):
                counts[c, index[node]] += 1
        return Placement.of((c, n, k) for (c, n), k in counts.items())

    def assign(self, placement: Placement) -> Assignment:
        """Return a node for each pod that the placement places.

        Pods of one class are interchangeable, so each stays where it is whenever the placement leaves as many there.
        """
        open_places: dict[int, Counter[int]] = defaultdict(Counter)
        for c, n, k in placement.entries():
            open_places[c][n] = k
        assigned: dict[str, str] = {}
        movers: list[tuple[Pod, int]] = []
        index = self.snapshot.node_index
        for pod, c in zip(self.pods, self.class_of.tolist(), strict=True):
            here = index.get(pod.node_name, -1)
            if open_places[c][here] > 0:
                open_places[c][here] -= 1
                assigned[pod.key] = pod.node_name
            else:
                movers.append((pod, c))
        # Pods that have a node come first: none of them shall lose it to a pod that waits for one.
        movers.sort(key=lambda mover: not mover[0].node_name)
        free = {c: iter([n for n, k in places.items() for _ in range(k)]) for c, places in open_places.items()}
        for pod, c in movers:
            target = next(free[c], None) if c in free else None
            if target is not None:
                assigned[pod.key] = self.snapshot.nodes[target].name
        return Assignment(assigned)


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """A limit on the moves of some pods.

    Parameters
    ----------
    name
        What reports call it.
    holds
        Whether a pod is of the group; pods of one signature are all of it, or none is.
    limit
        Maximum number of its pods to move.
    """

    name: str
    holds: Callable[[Pod], bool]
    limit: int


def compile_problem(
    snapshot: Snapshot,
    profile: Profile,
    objective: Objective,
    *,
    freeze: Freeze | None = None,
    max_moves: int | None = None,
    group_limits: Sequence[GroupLimit] = (),
    weigh: Weigh | None = None,
    drain_and_admit: DrainAndAdmit | None = None,
    prices: Mapping[str, float] | None = None,
) -> Compiled:
    """Compile a snapshot into a problem.

    Parameters
    ----------
    profile
        Its filter plugins become rules; its score plugins become terms where the objective asks for them.
    freeze
        Returns why a bound pod is to stay where it is, or ``None``.
    max_moves
        Maximum number of pods to move.
    group_limits
        Maximum numbers of some of the pods to move.
    weigh
        Returns what a pod's move weighs, where the objective has a cost of moves; without it, each move weighs 1.
    drain_and_admit
        Nodes to drain and pods to admit before all that the objective asks for.
    prices
        What each node costs in an hour, by name, if that is known.

    Raises
    ------
    InputError
        If the objective names a resource that the snapshot does not know, or if amounts add up to more than the
        scheduler's integers hold.
    """
    drain_and_admit = drain_and_admit or DrainAndAdmit()
    known = Signatures(apart=_apart(weigh, drain_and_admit, standing_apart(snapshot)))
    number = Counter(known.of(pod) for pod in snapshot.pods if not pod.finished)
    check_sums(snapshot.nodes, [(signature.pod, pods) for signature, pods in number.items()], profile.release)
    state = ClusterState(snapshot, profile.release, known)
    framework = Framework(profile, state)
    participants = classify(snapshot, framework, freeze)
    state.fill(participants.fixed())
    pods = participants.free()
    pod_signatures = [state.signatures.of(pod) for pod in pods]
    signatures = list(dict.fromkeys(pod_signatures))
    position = {signature.index: s for s, signature in enumerate(signatures)}
    signature_of = np.array([position[signature.index] for signature in pod_signatures], dtype=np.int64)
    counts = np.bincount(signature_of, minlength=len(signatures)).astype(np.int64)

    waiting = np.array([not pod.node_name for pod in pods], dtype=np.bool_)
    missing = np.bincount(signature_of[waiting], minlength=len(signatures)).astype(np.int64)
    kept: defaultdict[Signature, Counter[int]] = defaultdict(Counter)
    for pod in participants.kept_pods():
        kept[state.signatures.of(pod)][snapshot.node_index[pod.node_name]] += 1
    view = View(state, signatures, counts, missing, loads_today(state, pods), kept)
    of_plugins = [rule for plugin in framework.filters for rule in plugin.rules(view)]
    standing = _standing(snapshot, pods, signature_of, len(signatures))
    tolerating = tolerate(of_plugins, view, standing, objective.repair, drain_and_admit.drain)
    rules: list[Rule] = [*dead_node_rule(snapshot, len(signatures)), *tolerating.rules]
    if max_moves is not None:
        rules.append(MoveBudget(Origin("--max-moves"), max_moves))
    for group in group_limits:
        members = view.select(signature for signature in signatures if group.holds(signature.pod))
        if len(members):
            rules.append(GroupMoveBudget(Origin("--max-moves", group.name), members, group.limit))
    losing = np.ones_like(waiting) if objective.preemption == "by-priority" else waiting
    pending = [signature for signature, loses in zip(pod_signatures, losing, strict=True) if loses]
    made = make_tiers(view, objective, framework, pending, rules, weigh, drain_and_admit, prices)

    terms = [weighted.term for tier in made.tiers for weighted in (*tier.terms, *tier.surrogate)]
    scored = any(settings.point for settings in objective.tiers)
    # The exact score reads more of a pod than rules and terms do, so classes are not coarser than signatures then.
    fine = refine(len(signatures), [*rules, *terms], [np.arange(len(signatures))] if scored else ())
    _, representative = np.unique(fine, return_index=True)
    class_of = fine[signature_of]
    classes = len(representative)
    size = np.bincount(class_of, minlength=classes).astype(np.int64)
    kinds = [signatures[s] for s in representative]
    fixed = participants.fixed()
    final_state = FinalStateCost(snapshot, profile, state.signatures, fixed, kinds) if scored else None
    tiers = [_project_tier(tier, fine, representative) for tier in made.tiers]
    problem = Problem(
        nodes=tuple(node.name for node in snapshot.nodes),
        classes=tuple(_name(signatures[s].pod) for s in representative),
        size=size,
        optional=np.bincount(class_of[losing], minlength=classes).astype(np.int64),
        start=_start(snapshot, pods, class_of),
        rules=tuple(project(rule, fine, representative) for rule in rules),
        tiers=tuple(_with_final(tier, objective, framework, final_state, size) for tier in tiers),
    )
    told = [*health_notes(snapshot), *made.notes, *tolerating.notes, *_unmodeled(framework, objective)]
    notes = tuple(dict.fromkeys(told))
    return Compiled(
        snapshot,
        profile,
        objective,
        state.signatures,
        problem,
        pods,
        class_of,
        participants,
        notes,
        prices,
        final_state,
    )


def _apart(
    weigh: Weigh | None, wanted: DrainAndAdmit, standing: Callable[[Pod], Hashable]
) -> Callable[[Pod], Hashable]:
    """Return what gives like pods signatures of their own.

    That is what their moves weigh, whether to admit them, and the node that they are on where it would refuse them.
    """
    return lambda pod: (weigh and weigh(pod), pod.key in wanted.admit, standing(pod))


def _standing(snapshot: Snapshot, pods: Sequence[Pod], signature_of: Ints, signatures: int) -> Standing:
    index = snapshot.node_index
    counts = Counter(
        (s, index[pod.node_name]) for pod, s in zip(pods, signature_of.tolist(), strict=True) if pod.node_name
    )
    found = np.array([(s, n, count) for (s, n), count in counts.items()], dtype=np.int64).reshape(-1, 3)
    return Standing(found[:, 0], found[:, 1], found[:, 2], (signatures, len(snapshot.nodes)))


def _project_tier(tier: Tier, fine: Ints, representative: Ints) -> Tier:
    terms, surrogate = (
        tuple(Weighted(w.weight, project(w.term, fine, representative)) for w in weighted)
        for weighted in (tier.terms, tier.surrogate)
    )
    return replace(tier, terms=terms, surrogate=surrogate)


def _with_final(
    tier: Tier, objective: Objective, framework: Framework, final_state: FinalStateCost | None, size: Ints
) -> Tier:
    """Return a tier with what points missed in the final state cost, if the objective has scores there."""
    settings = next((settings for settings in objective.tiers if settings.name == tier.name), None)
    if final_state is None or settings is None or not settings.point:
        return tier
    points = {
        plugin.name: weight * round(point * tier.scale)
        for plugin, weight, point in scoring_plugins(settings, framework)
    }
    return replace(tier, final=PricedFinalState(final_state, points, size))


def loads_today(state: ClusterState, pods: Sequence[Pod]) -> Ints:
    """``[r, n]`` what the pods on each node request today, fixed ones and those that are free to move."""
    loads: Ints = state.requested.copy()
    index = state.snapshot.node_index
    for pod in pods:
        if pod.node_name:
            loads[:, index[pod.node_name]] += state.vector(state.signatures.of(pod))
    return loads


def _start(snapshot: Snapshot, pods: Sequence[Pod], class_of: Ints) -> Placement:
    index = snapshot.node_index
    counts = Counter((c, index[pod.node_name]) for pod, c in zip(pods, class_of.tolist(), strict=True) if pod.node_name)
    return Placement.of((c, n, k) for (c, n), k in counts.items())


def _name(pod: Pod) -> str:
    controller = pod.metadata.controller
    return f"{pod.namespace}/{controller.name if controller else pod.name}"


def _unmodeled(framework: Framework, objective: Objective) -> list[str]:
    """Name what decides in the scheduler and says nothing to the optimizer."""
    silent = [
        f"{plugin.name} filters, but offers no rules: it is not in the model"
        for plugin in framework.filters
        if not implements(type(plugin), "rules")
    ]
    silent += [
        f"{plugin.name} scores, but offers no terms: its score counts, but does not steer the search"
        for plugin in dict.fromkeys(
            plugin for settings in objective.tiers for plugin, _, _ in scoring_plugins(settings, framework)
        )
        if not implements(type(plugin), "terms")
    ]
    silent += [f"entry point {name}: {why}; it takes no part" for name, why in broken_packages().items()]
    scored_as = sorted(framework.profile.modeled - {framework.profile.scheduler_name})
    if any(settings.scores for settings in objective.tiers) and scored_as:
        silent.append(f"pods of {', '.join(scored_as)} are scored as those of {framework.profile.scheduler_name}")
    if framework.extenders.all:
        silent.append("extenders are asked when kube-scheduler is played through; they are not in the model")
    return silent
