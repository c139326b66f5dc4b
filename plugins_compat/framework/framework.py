"""Runs the plugins of one profile."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from models.arrays import Ints
from models.errors import InternalError
from models.kubernetes import Pod
from models.problem import POINTS
from plugins_compat.extenders.answers import ExtenderError
from plugins_compat.framework.cycle import LEFT_OUT, Cycle, Verdict
from plugins_compat.framework.extension import Extenders
from plugins_compat.framework.plugin import Plugin
from plugins_compat.framework.profile import Profile
from plugins_compat.framework.sampling import Sampler
from plugins_compat.framework.state import ClusterState
from plugins_compat.framework.status import Code, NodeSet, Status


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
        self.extenders = Extenders(profile.extenders, state.nodes)
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
        self.post_filters = at("post_filter")
        self.scores = [(made[name], profile.weight(name)) for name in profile.at("score")]
        self.reserves = at("reserve")
        self.permits = at("permit")
        self.pre_binds = at("pre_bind")
        self.binds = at("bind")
        self.post_binds = at("post_bind")

    # -- filters ----------------------------------------------------------------------------------------------

    def cycle(self, pod: Pod) -> Cycle:
        """Begin a pod's cycle."""
        return Cycle(pod, self.state.shapes.of(pod))

    def run_filters(self, cycle: Cycle, nodes: Ints | None = None) -> Verdict:
        """Run PreFilter and Filter on the given nodes, by default on all, in list order."""
        listed = self.state.order if nodes is None else nodes
        codes = np.zeros(len(listed), dtype=np.int64)
        failed_by = np.full(len(listed), -1, dtype=np.int64)
        verdict = Verdict(cycle, self.filters, listed, codes, failed_by)
        allowed: frozenset[str] | None = None
        for plugin in self.pre_filters:
            answer = plugin.pre_filter(cycle)
            if isinstance(answer, Status):
                codes[:] = answer.code
                verdict.rejected = Status(answer.code, answer.reasons, plugin.name)
                return verdict
            if isinstance(answer, NodeSet):
                allowed = answer.names if allowed is None else allowed & answer.names
        if allowed is not None:
            self._leave_out(verdict, allowed)
        alive = np.flatnonzero(codes == Code.SUCCESS)
        for position, plugin in enumerate(self.filters):
            if not len(alive):
                break
            answers = plugin.filter(cycle, listed[alive])
            failed = answers != Code.SUCCESS
            if failed.any():
                codes[alive[failed]] = answers[failed]
                failed_by[alive[failed]] = position
                alive = alive[~failed]
        return verdict

    def _leave_out(self, verdict: Verdict, allowed: frozenset[str]) -> None:
        index = self.state.snapshot.node_index
        kept = np.zeros(self.state.size, dtype=np.bool_)
        kept[[index[name] for name in allowed if name in index]] = True
        out = ~kept[verdict.nodes]
        verdict.codes[out] = Code.UNRESOLVABLE
        verdict.failed_by[out] = LEFT_OUT

    # -- scores -----------------------------------------------------------------------------------------------

    def run_scores(self, cycle: Cycle, feasible: Ints) -> dict[str, Ints]:
        """Return the weighted, normalised scores of the feasible nodes by plugin; idle plugins are absent."""
        scores: dict[str, Ints] = {}
        for plugin, weight in self.scores:
            if not plugin.pre_score(cycle, feasible):
                continue
            normal = plugin.normalize(cycle, feasible, plugin.score(cycle, feasible))
            if normal.min(initial=0) < 0 or normal.max(initial=0) > POINTS:
                raise InternalError(f"plugin {plugin.name} returned a score outside 0 to {POINTS}")
            scores[plugin.name] = normal * weight
        return scores

    def select(self, totals: Ints, extended: Ints | None = None) -> int:
        """Return the position of the node to take, the way the release breaks ties.

        Parameters
        ----------
        extended
            ``[n]`` 1 for nodes that an extender scored: a heap of those is in random order.
        """
        best = np.flatnonzero(totals == totals.max())
        match self.profile.tie_break:
            case "first":
                return int(best[0])
            case "uniform":
                return int(best[self.random.randrange(len(best))])
            case "heap" if extended is not None and extended[best].any():
                drawn = best[extended[best] > 0]
                return int(drawn[self.random.randrange(len(drawn))])
            case "heap":
                return _heap_root(best)

    # -- placing ----------------------------------------------------------------------------------------------

    def place(self, cycle: Cycle, node: int) -> Status | None:
        """Assume, reserve, permit and bind; a status means that all of it was undone."""
        self.state.assume(cycle.shape, node)
        reserved: list[Plugin] = []
        for plugin in self.reserves:
            reserved.append(plugin)
            if status := plugin.reserve(cycle, node):
                return self._undo(cycle, node, reserved, status)
        steps: Sequence[tuple[Plugin, Callable[[Cycle, int], Status | None]]] = [
            *((plugin, plugin.permit) for plugin in self.permits),
            *((plugin, plugin.pre_bind) for plugin in self.pre_binds),
        ]
        for _, step in steps:
            if status := step(cycle, node):
                return self._undo(cycle, node, reserved, status)
        if status := self._bind(cycle, node):
            return self._undo(cycle, node, reserved, status)
        for plugin in self.post_binds:
            plugin.post_bind(cycle, node)
        return None

    def _bind(self, cycle: Cycle, node: int) -> Status | None:
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

    def _undo(self, cycle: Cycle, node: int, reserved: Sequence[Plugin], status: Status) -> Status:
        for plugin in reversed(reserved):
            plugin.unreserve(cycle, node)
        self.state.forget(cycle.shape, node)
        return status


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
