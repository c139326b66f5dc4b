"""Runs the plugins of one profile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import Pod
from stowplan.plugins_compat.extenders.answers import ExtenderError
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.diagnosis import LEFT_OUT, Diagnosis, refusal
from stowplan.plugins_compat.framework.extension import Extenders
from stowplan.plugins_compat.framework.plugin import Plugin, implements
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.sampling import Sampler
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.status import (
    SUCCESS,
    Code,
    NodeSet,
    PostFilterResult,
    ScoreError,
    Status,
    Wait,
)
from stowplan.plugins_compat.framework.waiting import WaitingPod


class Framework:
    """The plugins of one profile, on one cluster state.

    Parameters
    ----------
    seed
        Decides between equally good nodes where the release leaves that to chance.
    binds_for_real
        Call the bind verb of extenders. Off unless asked for: what is played through here must not bind real pods.
    """

    def __init__(self, profile: Profile, state: ClusterState, seed: int = 0, *, binds_for_real: bool = False) -> None:
        self.binds_for_real = binds_for_real
        self.profile = profile
        self.state = state
        self.random = random.Random(seed)
        self.selected = 0
        self.extenders = Extenders(profile.extenders, state.snapshot, profile.release.points)
        self.sampler = (
            Sampler(profile.percentage_of_nodes_to_score, self.state.release.rotates_over_all_nodes)
            if profile.samples
            else None
        )
        made: dict[str, Plugin] = {}
        for use in profile.uses:
            made[use.plugin.name] = use.plugin(profile.args(use.plugin), state)
        self.plugins = made

        def at(point: str) -> list[Plugin]:
            return [made[name] for name in profile.at(point)]

        self.queue_sort = at("queue_key")
        self.pre_enqueue = at("pre_enqueue")
        self.pre_filters = at("pre_filter")
        self.filters = at("filter")
        self.counters = [plugin for plugin in self.filters if implements(type(plugin), "count_pod")]
        self.post_filters = at("post_filter")
        self.scores = [(made[name], profile.weight(name)) for name in profile.at("score")]
        self.reserves = at("reserve")
        self.permits = at("permit")
        self.pre_binds = at("pre_bind")
        self.binds = at("bind")
        self.post_binds = at("post_bind")

    # -- filters ----------------------------------------------------------------------------------------------

    def cycle(self, pod: Pod) -> CycleState:
        """Begin the cycle of a pod that looks for a node."""
        return CycleState(pod, self.state.signatures.replacement(pod))

    def run_filters(self, cycle: CycleState, nodes: Ints | None = None, *, narrow: bool = True) -> Diagnosis:
        """Run PreFilter and Filter on the given nodes, by default on all, in list order.

        Parameters
        ----------
        narrow
            Apply the node sets that PreFilter plugins return.
        """
        listed = self.state.order if nodes is None else nodes
        codes = np.zeros(len(listed), dtype=np.int64)
        failed_by = np.full(len(listed), -1, dtype=np.int64)
        diagnosis = Diagnosis(cycle, self.profile.release, self.filters, listed, codes, failed_by)
        allowed = self._run_pre_filters(diagnosis)
        if diagnosis.rejected is not None:
            codes[:] = diagnosis.rejected.code
            return diagnosis
        if allowed is not None and narrow:
            self._leave_out(diagnosis, allowed)
        if self.state.nominator:
            self._filter_with_nominated(diagnosis)
        filters = [(i, plugin) for i, plugin in enumerate(self.filters) if plugin.name not in cycle.skipped]
        alive = np.flatnonzero(codes == SUCCESS)
        for position, plugin in filters:
            if not len(alive):
                break
            answers = plugin.filter(cycle, listed[alive])
            failed = answers != SUCCESS
            if failed.any():
                codes[alive[failed]] = answers[failed]
                failed_by[alive[failed]] = position
                alive = alive[~failed]
        return diagnosis

    def _run_pre_filters(self, diagnosis: Diagnosis) -> frozenset[str] | None:
        """Run PreFilter; note a rejection in the diagnosis, and return the names of the nodes left, if not all.

        Older releases stop at the first rejection. Newer ones stop where preemption cannot help, and otherwise go on,
        for the notes that preemption needs.
        """
        cycle, release = diagnosis.cycle, self.profile.release
        allowed: frozenset[str] | None = None
        narrowing: list[str] = []
        for plugin in self.pre_filters:
            answer = plugin.pre_filter(cycle)
            if isinstance(answer, NodeSet) and not release.pre_filter_narrows:
                continue
            if isinstance(answer, NodeSet):
                narrowing.append(plugin.name)
                allowed = answer.names if allowed is None else allowed & answer.names
                if not allowed:
                    code = Code.UNRESOLVABLE if release.pre_filter_continues else Code.UNSCHEDULABLE
                    diagnosis.rejected = Status(code, (_unsatisfied(narrowing),), plugin.name)
                    return allowed
            elif isinstance(answer, Status) and answer.code is Code.SKIP:
                cycle.skipped.add(plugin.name)
            elif isinstance(answer, Status):
                diagnosis.rejected = Status(answer.code, answer.reasons, plugin.name)
                if answer.code is not Code.UNSCHEDULABLE or not release.pre_filter_continues:
                    return allowed
        return allowed

    def _leave_out(self, diagnosis: Diagnosis, allowed: frozenset[str]) -> None:
        index = self.state.snapshot.node_index
        kept = np.zeros(self.state.size, dtype=np.bool_)
        kept[[index[name] for name in allowed if name in index]] = True
        out = ~kept[diagnosis.nodes]
        diagnosis.codes[out] = Code.UNRESOLVABLE
        diagnosis.failed_by[out] = LEFT_OUT

    def _filter_with_nominated(self, diagnosis: Diagnosis) -> None:
        """Reject the nodes where the filters fail once the pods that are nominated there are counted in."""
        cycle = diagnosis.cycle
        rivals = self.state.nominator.rivals(cycle.pod)
        for position in np.flatnonzero(
            (diagnosis.codes == Code.SUCCESS) & np.isin(diagnosis.nodes, list(rivals))
        ).tolist():
            node = int(diagnosis.nodes[position])
            with self._counted_in(cycle, rivals[node], node):
                status = self._first_failure(cycle, node, self.filters)
            if status is not None:
                diagnosis.codes[position] = status.code
                diagnosis.noted[position] = status

    @contextmanager
    def _counted_in(self, cycle: CycleState, pods: Sequence[Pod], node: int) -> Iterator[None]:
        signatures = [self.state.signatures.of(pod) for pod in pods]
        for signature in signatures:
            self.count(cycle, signature, node, 1)
        try:
            yield
        finally:
            for signature in signatures:
                self.count(cycle, signature, node, -1)

    def _first_failure(self, cycle: CycleState, node: int, filters: Sequence[Plugin]) -> Status | None:
        here = np.array([node], dtype=np.int64)
        for plugin in filters:
            if plugin.name not in cycle.skipped:
                code = int(plugin.filter(cycle, here)[0])
                if code != Code.SUCCESS:
                    return refusal(plugin, cycle, node, Code(code))
        return None

    # -- preemption -------------------------------------------------------------------------------------------

    def count(self, cycle: CycleState, signature: Signature, node: int, count: int) -> None:
        """Add a pod of a signature to a node within a cycle, or take one off it; to be undone before the cycle ends."""
        self.state.assume(signature, node, count)
        for plugin in self.counters:
            if plugin.name not in cycle.skipped:
                plugin.count_pod(cycle, signature, node, count)

    def fits(self, cycle: CycleState, node: int, filters: Sequence[Plugin], rivals: Sequence[Pod]) -> Status | None:
        """Run filters on one node, first with the nominated pods given counted in, then without; ``None`` is a fit."""
        if rivals:
            with self._counted_in(cycle, rivals, node):
                status = self._first_failure(cycle, node, filters)
            if status is not None:
                return status
        return self._first_failure(cycle, node, filters)

    def run_post_filters(self, cycle: CycleState, diagnosis: Diagnosis) -> PostFilterResult:
        """Run PostFilter: the first success counts; else all say why there is no help."""
        reasons: list[str] = []
        clears = False
        for plugin in self.post_filters:
            result = plugin.post_filter(cycle, diagnosis, self)
            if result.status.code is Code.SUCCESS:
                return result
            reasons += result.status.reasons
            clears |= result.clears
            if result.status.code is Code.ERROR:
                break
        return PostFilterResult(Status(Code.UNSCHEDULABLE, reasons), clears=clears)

    def nominate(self, pod: Pod, result: PostFilterResult) -> None:
        """Carry out what PostFilter found: victims leave, and the pod is nominated in place of less important ones."""
        if result.nominated is None:
            if result.clears:
                self.state.nominator.remove(pod)
            return
        for victim in result.victims:
            self.state.take(victim, result.nominated)
        for other in self.state.nominator.below(pod, result.nominated):
            self.state.nominator.remove(other)
        self.state.nominator.add(pod, result.nominated)

    def draw(self, number: int) -> int:
        """Return a number below ``number`` where upstream draws one; 0 in a profile that leaves nothing to chance."""
        return 0 if self.profile.tie_break == "first" else self.random.randrange(number)

    # -- scores -----------------------------------------------------------------------------------------------

    def run_scores(self, cycle: CycleState, feasible: Ints) -> dict[str, Ints]:
        """Return the weighted, normalized scores of the feasible nodes by plugin; idle plugins are absent.

        Raises
        ------
        ScoreError
            If a plugin cannot score.
        """
        scores: dict[str, Ints] = {}
        for plugin, weight in self.scores:
            if not plugin.pre_score(cycle, feasible):
                continue
            try:
                raw: Any = plugin.score(cycle, feasible)
                normal = plugin.normalize(cycle, feasible, raw)
            except ScoreError as error:
                raise ScoreError(f'running Score plugins: plugin "{plugin.name}" failed with: {error}') from None
            most = self.profile.release.points
            if normal.min(initial=0) < 0 or normal.max(initial=0) > most:
                wrong = int(normal[(normal < 0) | (normal > most)][0])
                raise ScoreError(
                    f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an invalid score '
                    f"{wrong}, it should in the range of [0, {most}] after normalizing"
                )
            scores[plugin.name] = normal * weight
        return scores

    def select(self, nodes: Ints, totals: Ints, extended: Ints | None = None) -> int:
        """Return the position of the node to take, the way the release breaks ties.

        Parameters
        ----------
        nodes, totals
            ``[n]`` feasible nodes, and their scores.
        extended
            ``[n]`` 1 for nodes that an extender scored: a heap of those is in random order.
        """
        best = np.flatnonzero(totals == totals.max())
        match self.profile.tie_break:
            case "first":
                return int(best[0])
            case "uniform":
                return int(best[self.random.randrange(len(best))])
            case "rotating":  # the best nodes in turn, by falling name
                best = np.array(sorted(best.tolist(), key=lambda i: self.state.nodes[nodes[i]].name, reverse=True))
                self.selected += 1
                return int(best[(self.selected - 1) % len(best)])
            case "heap" if extended is not None and extended[best].any():
                drawn = best[extended[best] > 0]
                return int(drawn[self.random.randrange(len(drawn))])
            case "heap":
                return _heap_root(best)

    # -- placing ----------------------------------------------------------------------------------------------

    def place(self, cycle: CycleState, node: int) -> Status | None:
        """Assume, reserve, permit and bind; a status says what came of it instead.

        With `Code.WAIT` the pod stays assumed until `finish` is called. With any other code all of it was undone.
        """
        self.state.put(cycle.pod, node, new=True)
        reserved: list[Plugin] = []
        for plugin in self.reserves:
            reserved.append(plugin)
            if status := plugin.reserve(cycle, node):
                return self._undo(cycle, node, reserved, status)
        waits: dict[str, float] = {}
        for plugin in self.permits:
            answer = plugin.permit(cycle, node)
            if isinstance(answer, Wait):
                waits[plugin.name] = answer.seconds
            elif answer:
                return self._undo(cycle, node, reserved, answer)
        if waits:
            self.state.waiting.add(WaitingPod(cycle, node, waits))
            return Status(Code.WAIT, (f"waits for {', '.join(waits)}",))
        return self._complete(cycle, node)

    def finish(self, waiting: WaitingPod) -> Status | None:
        """Go on with a pod that waited: bind it if it was allowed; a status says why it was not."""
        if waiting.rejection is None:
            return self._complete(waiting.cycle, waiting.node)
        said = f'pod "{waiting.cycle.pod.name}" rejected while waiting on permit: {waiting.rejection}'
        return self._undo(waiting.cycle, waiting.node, self.reserves, Status(Code.UNSCHEDULABLE, (said,)))

    def _complete(self, cycle: CycleState, node: int) -> Status | None:
        """Bind a pod that every Permit plugin lets through."""
        for plugin in self.pre_binds:
            if status := plugin.pre_bind(cycle, node):
                return self._undo(cycle, node, self.reserves, status)
        if status := self._bind(cycle, node):
            return self._undo(cycle, node, self.reserves, status)
        for plugin in self.post_binds:
            plugin.post_bind(cycle, node)
        self.state.nominator.remove(cycle.pod)
        return None

    def _bind(self, cycle: CycleState, node: int) -> Status | None:
        if self.binds_for_real and (extender := self.extenders.binder(cycle.pod)):
            try:
                extender.bind(cycle.pod, self.state.nodes[node].name)
                return None
            except ExtenderError as error:
                if not (self.state.release.ignorable_binders and extender.config.ignorable):
                    return Status(Code.ERROR, (str(error),))
        if any(plugin.bind(cycle, node) for plugin in self.binds):
            return None
        return Status(Code.ERROR, ("no bind plugin took the pod",))

    def _undo(self, cycle: CycleState, node: int, reserved: Sequence[Plugin], status: Status) -> Status:
        for plugin in reversed(reserved):
            plugin.unreserve(cycle, node)
        self.state.take(cycle.pod, node)
        return status


def _unsatisfied(plugins: Sequence[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"


def _heap_root(best: Ints) -> int:
    """Return the position that a max-heap built over the list has at its root.

    With ties the root is not the first maximum: a child replaces its parent only if strictly greater, and the left
    child is preferred. So the root is found by walking down from the top: stop at a maximum, else go left if a
    maximum lies there, else right.

    Parameters
    ----------
    best
        Positions of the maxima, ascending.
    """
    size = int(best[-1]) + 1
    above = np.zeros(size, dtype=np.bool_)  # whether a maximum lies at or below a position
    above[best] = True
    maximal = above.copy()
    first = 1
    while 2 * first + 1 < size:
        first = 2 * first + 1
    while first:  # level by level, from the bottom
        children = above[first : 2 * first + 1]
        parents = above[(first - 1) // 2 : first]
        left, right = children[0::2], children[1::2]
        parents[: len(left)] |= left
        parents[: len(right)] |= right
        first = (first - 1) // 2
    position = 0
    while not maximal[position]:
        position = 2 * position + 1 if above[2 * position + 1] else 2 * position + 2
    return position
