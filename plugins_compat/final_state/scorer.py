"""The exact score of a final state, kept up to date as pods move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Placement
from stowplan.plugins_compat.final_state.feasibility import Feasibility
from stowplan.plugins_compat.final_state.plugin_scores import FixedScores, OnNode, OverFeasible, scores_of
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.scoring import FinalScores

TOGETHER = 200_000
"""About how many pairs of a pod and a node are compared at once."""


@dataclass(slots=True, eq=False)
class _Row:
    """The pods of one class.

    Parameters
    ----------
    nodes, pods
        ``[k]`` the nodes that hold some, ascending, and how many.
    points
        ``[p, k]`` unweighted score of each plugin.
    stays
        ``[k]`` whether the filters admit a pod to its node; one that they refuse has no score.
    """

    nodes: Ints
    pods: Ints
    points: Ints
    stays: Bools


@dataclass(slots=True)
class _Journal:
    """What to restore when moves are taken back."""

    sums: Ints
    scored: int
    rows: dict[int, _Row] = field(default_factory=dict)
    moves: list[tuple[int, int, int]] = field(default_factory=list)
    recounted: set[int] = field(default_factory=set)


class FinalStateScorer:
    """The score that every pod of some classes has on its node, taken off and offered again with others in place.

    The sum equals that of `stowplan.plugins_compat.scoring.final_scores` over all pods. After a move, only those
    classes are scored again that it can concern: those on the two nodes, those for which a node became feasible or
    ceased to be, and those whose plugins count the pod that moved.

    Parameters
    ----------
    framework
        On the cluster with the pods that do not belong to the classes. The scorer moves pods in it.
    kinds
        ``[c]`` the signature of each class.
    placement
        Where the pods of the classes are.
    present
        Whether the framework has them already.

    Attributes
    ----------
    unit
        How many units of the scorer's whole numbers are one point; see `Release.score_unit`.
    """

    def __init__(
        self, framework: Framework, kinds: Sequence[Signature], placement: Placement, *, present: bool = False
    ) -> None:
        self.framework, self.kinds = framework, kinds
        state = framework.state
        if not present:
            for c, n, k in placement.entries():
                state.assume(kinds[c], n, k)
        self.unit = framework.profile.release.score_unit
        self.names = [plugin.name for plugin, _ in framework.scores]
        self.weights = np.array([weight for _, weight in framework.scores], dtype=np.int64)
        scores = [scores_of(plugin, kinds) for plugin, _ in framework.scores]
        self.most = np.array([[one.most(c) for one in scores] for c in range(len(kinds))], dtype=np.int64).reshape(
            len(kinds), len(scores)
        )
        self.on_node: list[tuple[int, OnNode]] = []
        self.over_feasible: list[tuple[int, OverFeasible]] = []
        for p, one in enumerate(scores):
            if isinstance(one, OverFeasible):
                self.over_feasible.append((p, one))
            else:
                self.on_node.append((p, one))
        self.feasibility = Feasibility(framework, kinds)
        self._concerned: dict[int, set[int]] = {}
        self._always: set[int] = set()
        self._reads_feasible = np.zeros(len(kinds), dtype=np.bool_)
        for c in range(len(kinds)):
            self._watch(c)
        self._at: list[set[int]] = [set() for _ in range(state.size)]
        self._sums = np.zeros(len(scores), dtype=np.int64)
        self._scored = 0
        self._journal: _Journal | None = None
        self._rows: list[_Row] = []
        for c in range(len(kinds)):
            first, last = np.searchsorted(placement.cls, (c, c + 1))
            nodes, pods = placement.node[first:last].copy(), placement.count[first:last].copy()
            empty = np.zeros((len(scores), len(nodes)), dtype=np.int64)
            self._rows.append(_Row(nodes, pods, empty, np.zeros(len(nodes), dtype=np.bool_)))
            for node in nodes.tolist():
                self._at[node].add(c)
        for p, on_node in self.on_node:
            ends = np.cumsum([len(row.nodes) for row in self._rows])
            found = np.split(on_node.scores(placement.cls, placement.node), ends)
            for row, points in zip(self._rows, found, strict=False):
                row.points[p] = points
        self._compare(range(len(kinds)))

    def _watch(self, c: int) -> None:
        """Note which moves concern the pods of a class."""
        counted = list(self.feasibility.counts(c))
        for _, one in self.over_feasible:
            if one.flat(c):
                continue
            self._reads_feasible[c] = True
            read = one.counts(c)
            if read is None:
                self._always.add(c)
            else:
                counted += read
        if self.feasibility.always_changes(c):
            self._always.add(c)
        for counts in counted:
            self._concerned.setdefault(id(counts), set()).add(c)

    @property
    def scores(self) -> list[tuple[int, OnNode | OverFeasible]]:
        """Return all plugins' scores, each with its number, in the order of these."""
        every: list[tuple[int, OnNode | OverFeasible]] = [*self.on_node, *self.over_feasible]
        return sorted(every, key=lambda item: item[0])

    def classes_counted(self) -> Mapping[int, set[int]]:
        """Return, for the id of counts by domain, the classes whose pods they count."""
        counted: dict[int, set[int]] = {}
        for c, kind in enumerate(self.kinds):
            for counts in self.framework.state.counting(kind):
                counted.setdefault(id(counts), set()).add(c)
        return counted

    # -- results ------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Sum of the weighted scores of all pods, in units."""
        return self.worth(self.weights)

    def worth(self, weights: Ints) -> int:
        """Sum up the scores of all pods, with ``[p]`` weights of plugins."""
        return sum(total * weight for total, weight in zip(self._sums.tolist(), weights.tolist(), strict=True))

    @property
    def points(self) -> Mapping[str, int]:
        """Sum of the scores of all pods by plugin, without weights, in units."""
        return dict(zip(self.names, self._sums.tolist(), strict=True))

    @property
    def final_scores(self) -> FinalScores:
        """Mean weighted score of each plugin, over the pods that the filters admit to their nodes."""
        sums = self.by_plugin()
        pods = sum(int(row.pods.sum()) for row in self._rows)
        active = [name for p, name in enumerate(self.names) if self.most[:, p].any()]
        means = {name: total / self.unit / max(1, self._scored) for name, total in sums.items()}
        return FinalScores({name: means[name] for name in sorted(active)}, self._scored, pods)

    def by_plugin(self) -> Mapping[str, int]:
        """Return the sum of the weighted scores of each plugin, in units."""
        weighed = zip(self.names, self._sums.tolist(), self.weights.tolist(), strict=True)
        return {name: total * weight for name, total, weight in weighed}

    def placement(self) -> Placement:
        """Return where the pods are."""
        return Placement.of(
            (c, n, k)
            for c, row in enumerate(self._rows)
            for n, k in zip(row.nodes.tolist(), row.pods.tolist(), strict=True)
        )

    def offers(self, c: int, node: int, weights: Ints) -> tuple[Ints, Bools]:
        """Return ``[n]`` what a pod would score on each node, once taken off its own, and where it is feasible.

        Scores are in units; those of plugins that read the usage of nodes are not included.

        Parameters
        ----------
        weights
            ``[p]`` of plugins.
        """
        here = np.array([node])
        feasible = self.feasibility.feasible(np.array([c]), here)
        points = np.zeros(self.framework.state.size, dtype=np.int64)
        for p, one in self.over_feasible:
            points += weights[p] * one.scores(c, here, feasible)[0]
        for p, fixed in self.on_node:
            if isinstance(fixed, FixedScores) and (row := fixed.row(c)) is not None:
                points += weights[p] * row
        return points, feasible[0]

    # -- moves --------------------------------------------------------------------------------------------------

    def go_to(self, placement: Placement) -> None:
        """Move pods until they are as in another placement."""
        now, size = self.placement(), self.framework.state.size
        changes = [(c, n, -k) for c, n, k in now.beyond(placement, size).entries()]
        changes += [(c, n, k) for c, n, k in placement.beyond(now, size).entries()]
        self._change(changes)

    def shift(self, c: int, source: int, target: int) -> None:
        """Move a pod of a class from one node to another."""
        if self._journal is not None:
            self._journal.moves.append((c, source, target))
        self._change([(c, source, -1), (c, target, 1)])

    def begin(self) -> None:
        """Remember how things are, for `roll_back`."""
        self._journal = _Journal(self._sums.copy(), self._scored)

    def roll_back(self) -> None:
        """Take back all moves since `begin`."""
        journal, self._journal = self._journal, None
        if journal is None:
            raise RuntimeError("roll_back without begin")
        state, touched = self.framework.state, set()
        for c, source, target in reversed(journal.moves):
            state.assume(self.kinds[c], target, -1)
            state.assume(self.kinds[c], source, 1)
            touched |= {source, target}
        for c, row in journal.rows.items():
            for node in self._rows[c].nodes.tolist():
                self._at[node].discard(c)
            self._rows[c] = row
            for node in row.nodes.tolist():
                self._at[node].add(c)
        self._sums, self._scored = journal.sums, journal.scored
        if touched:
            self.feasibility.forget(journal.recounted)
            self.feasibility.refresh(np.array(sorted(touched)), {c for c, _, _ in journal.moves})

    def keep(self) -> None:
        """Keep all moves since `begin`."""
        self._journal = None

    def _change(self, changes: Iterable[tuple[int, int, int]]) -> None:
        state = self.framework.state
        touched: set[int] = set()
        moved: set[int] = set()
        anew = set(self._always)
        for c, node, pods in changes:
            self._save(c)
            state.assume(self.kinds[c], node, pods)
            self._add(c, node, pods)
            touched.add(node)
            moved.add(c)
            for counts in state.counting(self.kinds[c]):
                anew |= self._concerned.get(id(counts), set())
        if not touched:
            return
        self.feasibility.forget(anew | moved)
        if self._journal is not None:
            self._journal.recounted |= anew | moved
        flipped = self.feasibility.refresh(np.array(sorted(touched)), moved) & self._reads_feasible
        anew |= set(np.flatnonzero(flipped).tolist())
        for node in touched:
            anew |= self._score_on(node, moved)
        for c in moved:
            self._use(c)
        for c in anew:
            self._save(c)
        self._compare(sorted(anew | moved))

    def _save(self, c: int) -> None:
        journal = self._journal
        if journal is not None and c not in journal.rows:
            row = self._rows[c]
            journal.rows[c] = _Row(row.nodes.copy(), row.pods.copy(), row.points.copy(), row.stays.copy())

    def _add(self, c: int, node: int, pods: int) -> None:
        """Change the number of pods of a class on a node; the class is scored anew afterwards."""
        row = self._rows[c]
        at = int(np.searchsorted(row.nodes, node))
        there = at < len(row.nodes) and row.nodes[at] == node
        self._account(row, -1)
        if there and row.pods[at] + pods == 0:
            nodes, left = np.delete(row.nodes, at), np.delete(row.pods, at)
            row = _Row(nodes, left, np.delete(row.points, at, axis=1), np.delete(row.stays, at))
            self._at[node].discard(c)
        elif there:
            row.pods[at] += pods
        else:
            row = _Row(
                np.insert(row.nodes, at, node),
                np.insert(row.pods, at, pods),
                np.insert(row.points, at, 0, axis=1),
                np.insert(row.stays, at, False),
            )
            self._at[node].add(c)
        self._rows[c] = row
        self._account(row, 1)

    def _account(self, row: _Row, sign: int) -> None:
        counted = row.pods * row.stays
        self._sums += sign * (row.points @ counted)
        self._scored += sign * int(counted.sum())

    def _score_on(self, node: int, skip: set[int]) -> set[int]:
        """Score the pods on a node by its usage; return the classes of which the filters say something else now."""
        here = np.array(sorted(self._at[node] - skip), dtype=np.int64)
        if not len(here):
            return set()
        nodes = np.full(len(here), node)
        stays = self.feasibility.stays(here, nodes)
        points = {p: one.scores(here, nodes) for p, one in self.on_node}
        changed = set()
        for i, c in enumerate(here.tolist()):
            self._save(c)
            row = self._rows[c]
            at = int(np.searchsorted(row.nodes, node))
            if stays[i] != row.stays[at]:
                changed.add(c)
            for p, found in points.items():
                if row.stays[at]:
                    self._sums[p] += (found[i] - row.points[p, at]) * row.pods[at]
                row.points[p, at] = found[i]
        return changed

    def _use(self, c: int) -> None:
        """Score the pods of a class by the usage of their nodes."""
        row = self._rows[c]
        self._account(row, -1)
        cls = np.full(len(row.nodes), c)
        for p, one in self.on_node:
            row.points[p] = one.scores(cls, row.nodes)
        self._account(row, 1)

    def _compare(self, classes: Sequence[int]) -> None:
        """Score the pods of some classes, in ascending order, by the plugins that compare nodes."""
        most = max(1, TOGETHER // max(1, self.framework.state.size))
        ends = np.cumsum([len(self._rows[c].nodes) for c in classes])
        for part in np.split(np.array(classes, dtype=np.int64), np.flatnonzero(np.diff(ends // most)) + 1):
            self._compare_part([self._rows[c] for c in part.tolist()], part)

    def _compare_part(self, rows: Sequence[_Row], classes: Ints) -> None:
        sizes = [len(row.nodes) for row in rows]
        if not sum(sizes):
            return
        cls, nodes = np.repeat(classes, sizes), np.concatenate([row.nodes for row in rows])
        pods = np.concatenate([row.pods for row in rows])
        points = np.concatenate([row.points for row in rows], axis=1)
        counted = pods * np.concatenate([row.stays for row in rows])
        self._sums -= points @ counted
        self._scored -= int(counted.sum())
        feasible = self.feasibility.feasible(cls, nodes)
        stays = feasible[np.arange(len(nodes)), nodes]
        for p, compared in self.over_feasible:
            some = np.flatnonzero(self.most[cls, p])
            if len(some):
                points[p, some] = compared.in_place(cls[some], nodes[some], feasible[some])
        counted = pods * stays
        self._sums += points @ counted
        self._scored += int(counted.sum())
        first = 0
        for row, size in zip(rows, sizes, strict=True):
            row.points, row.stays = points[:, first : first + size].copy(), stays[first : first + size].copy()
            first += size


def scores_in_place(framework: Framework, pods: Iterable[Pod], assignment: Mapping[str, str]) -> FinalScores:
    """Score all pods on their nodes, each taken off and offered again with all others in place.

    Parameters
    ----------
    framework
        On the cluster as `stowplan.plugins_compat.admission.populated` returns it; it is left as it was.
    """
    state, index = framework.state, framework.state.snapshot.node_index
    classes: dict[int, int] = {}
    kinds: list[Signature] = []
    counts: Counter[tuple[int, int]] = Counter()
    for pod in pods:
        if node := assignment.get(pod.key):
            signature = state.signatures.of(pod)
            c = classes.setdefault(signature.index, len(kinds))
            if c == len(kinds):
                kinds.append(signature)
            counts[c, index[node]] += 1
    placement = Placement.of((c, n, k) for (c, n), k in counts.items())
    return FinalStateScorer(framework, kinds, placement, present=True).final_scores


def classes_in(counting: Mapping[int, set[int]], counts: Iterable[DomainCounts]) -> set[int]:
    """Return the classes whose pods any of some counts count; ``counting`` is `FinalStateScorer.classes_counted`."""
    return {c for one in counts for c in counting.get(id(one), ())}
