"""Minimal conflicts: rules that leave a pod no node together, and leave it one as soon as any of them is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.models.arrays import Bools, Ints
from stowplan.models.problem import (
    Allow,
    AtMost,
    Attract,
    Capacity,
    Devices,
    Distinct,
    Origin,
    Placement,
    Problem,
    Repel,
    Rule,
    Spread,
)
from stowplan.optimizer.evaluate.violations import arrivals, violation
from stowplan.plugins_compat.framework.diagnosis import Diagnosis
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.status import SUCCESS

NOT_A_FILTER = "PreFilter or extender"
"""What refuses a pod on a node where no filter does."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockingRule:
    """A rule that keeps one pod off some nodes while all others stay where they are.

    Parameters
    ----------
    blocks
        ``[n]`` the nodes that it keeps the pod off.
    index
        Position of the rule in its problem; ``None`` for a filter plugin that was asked as a whole.
    asked, left
        Of a capacity, in the resource's own units: what the pod asks for, and the most that is left on any node.
    max_skew
        Of a spread constraint.
    """

    origin: Origin
    blocks: Bools
    index: int | None = None
    asked: int | None = None
    left: int | None = None
    max_skew: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Conflict:
    """Rules that leave a pod no node together.

    Parameters
    ----------
    rules
        The rules, those that keep the pod off most nodes first.
    by_filters
        Whether they are filter plugins as a whole, because the pod is outside the model, or the model would admit it.
    minimal
        Whether it is known that without any one of the rules the others leave the pod a node. Where the search was
        ended before, some of the rules may not be needed.
    """

    rules: Sequence[BlockingRule]
    by_filters: bool
    minimal: bool = True

    def alone(self, rule: BlockingRule) -> Ints:
        """Return the nodes that only this one of the rules keeps the pod off: those that are won without it."""
        others = [other.blocks for other in self.rules if other is not rule]
        covered = np.any(others, axis=0) if others else np.zeros_like(rule.blocks)
        return np.flatnonzero(rule.blocks & ~covered)


def conflict_of(
    problem: Problem | None,
    cls: int,
    framework: Framework,
    diagnosis: Diagnosis,
    over: Callable[[], bool] = lambda: False,
) -> Conflict | None:
    """Return a minimal conflict that keeps an unscheduled pod off all nodes, or ``None`` if nothing does.

    Parameters
    ----------
    problem, cls
        The problem and the pod's class in it; ``None`` if the pod is outside the model.
    framework, diagnosis
        What the filters say of the pod on today's cluster.
    over
        Asked before each rule; ends the search with the smallest conflict that is known by then, or else with the first
        filter that refuses the pod on each node.
    """
    if problem is not None and (found := _core(blocking_rules(problem, cls, over), len(problem.nodes), over)):
        return Conflict(found[0], by_filters=False, minimal=found[1])
    ask = _first_filters if over() and diagnosis.rejected is None else _blocking_filters
    if found := _core(ask(framework, diagnosis), framework.state.size, over):
        return Conflict(found[0], by_filters=True, minimal=found[1])
    return None


def _core(
    rules: Iterable[BlockingRule], nodes: int, over: Callable[[], bool]
) -> tuple[Sequence[BlockingRule], bool] | None:
    every = list(rules)
    core, minimal = minimal_core([rule.blocks for rule in every], nodes, over)
    return (_largest_first(every[i] for i in core), minimal) if core else None


def minimal_core(
    blocks: Sequence[Bools], nodes: int, over: Callable[[], bool] = lambda: False
) -> tuple[list[int], bool]:
    """Return indices of rules that cover all nodes, and no longer do without any one of them; empty if all do not.

    Rules are dropped one after the other as long as the rest covers all nodes, those that block fewest nodes first.
    One pass is enough: a rule that was needed among more rules is needed among fewer.

    Parameters
    ----------
    blocks
        ``[r][n]`` the nodes that each rule keeps the pod off.
    over
        Asked before each rule; ends the pass.

    Returns
    -------
    core, minimal
        The indices, and whether the pass came to its end.
    """
    times = np.sum(blocks, axis=0) if len(blocks) else np.zeros(nodes, dtype=np.int64)
    if not nodes or not (times > 0).all():
        return [], True
    kept = set(range(len(blocks)))
    for r in sorted(kept, key=lambda r: (int(blocks[r].sum()), -r)):
        if len(kept) > 1 and over():
            return sorted(kept), False
        if (times[blocks[r]] > 1).all():
            times = times - blocks[r]
            kept.remove(r)
    return sorted(kept), True


def blocking_rules(problem: Problem, cls: int, over: Callable[[], bool] = lambda: False) -> Iterator[BlockingRule]:
    """Yield the rules of a problem that keep one more pod of a class off some nodes; all other pods stay.

    A rule keeps a pod off a node if the place that the pod would come to violates the rule then. That is what
    `stowplan.optimizer.evaluate.Evaluation.legal` says of a place at which a pod arrives.

    Parameters
    ----------
    over
        Asked before each rule; ends with those that were found.
    """
    for index, rule in enumerate(problem.rules):
        if over():
            return
        blocks = _blocks(rule, problem, cls)
        if blocks.any():
            yield _described(BlockingRule(rule.origin, blocks, index), rule, problem, cls)


def _described(found: BlockingRule, rule: Rule, problem: Problem, cls: int) -> BlockingRule:
    match rule:
        case Capacity():
            left = rule.free - problem.start.per_node(len(problem.nodes), rule.demand)
            asked = int(rule.demand[cls]) * rule.unit
            return BlockingRule(rule.origin, found.blocks, found.index, asked, max(0, int(left.max())) * rule.unit)
        case Spread():
            return BlockingRule(rule.origin, found.blocks, found.index, max_skew=rule.max_skew)
        case _:
            return found


def _blocks(rule: Rule, problem: Problem, cls: int) -> Bools:
    """``[n]`` where the rule keeps one more pod of the class off."""
    nodes = len(problem.nodes)
    match rule:
        case Allow():
            allowed: Bools = rule.mask[rule.row[cls]]
            return ~allowed
        case Capacity() | Distinct() | Devices():  # each node is a place, so that all can be tried at once
            return _violated(rule, problem, cls, np.arange(nodes))
        case AtMost() | Repel() | Spread() | Attract() if not _binds(rule, cls):
            return np.zeros(nodes, dtype=np.bool_)
        case AtMost() | Repel() | Spread():
            return _by_place(rule, problem, cls, [rule.topology.domain])
        case Attract():
            return _by_place(rule, problem, cls, [topology.domain for topology in rule.topologies])
        case _:  # what concerns the whole cluster keeps no pod off a node
            return np.zeros(nodes, dtype=np.bool_)


def _binds(rule: AtMost | Repel | Spread | Attract, cls: int) -> bool:
    """Whether a pod of the class counts as one that arrives; a rule that it does not bind keeps it off no node."""
    match rule:
        case AtMost():
            return cls in rule.group
        case Repel():
            return cls in rule.seekers or cls in rule.targets
        case _:
            return cls in rule.seekers


def _by_place(rule: Rule, problem: Problem, cls: int, domains: Sequence[Ints]) -> Bools:
    """Try one node of each place: a pod has the same effect on all nodes that share their domains."""
    _, first, same = np.unique(np.array(domains), axis=1, return_index=True, return_inverse=True)
    blocked = np.array(
        [_violated(rule, problem, cls, first[i : i + 1]).any() for i in range(len(first))], dtype=np.bool_
    )
    return blocked[same.reshape(-1)]


def _violated(rule: Rule, problem: Problem, cls: int, nodes: Ints) -> Bools:
    """``[places]`` where one more pod of the class on each of the nodes arrives and the rule is violated."""
    placement = _with_more(problem.start, cls, nodes, len(problem.nodes))
    new = placement.beyond(problem.start, len(problem.nodes))
    there: Bools = (violation(rule, problem, placement) > 0) & (arrivals(rule, problem, new) > 0)
    return there


def _with_more(start: Placement, cls: int, added: Ints, nodes: int) -> Placement:
    """Return a placement with one more pod of a class on each of some nodes; in arrays, as each place asks for one."""
    key = np.concatenate([start.cls * nodes + start.node, cls * nodes + added])
    return Placement.summed(key, np.concatenate([start.count, np.ones_like(added)]), nodes)


def _blocking_filters(framework: Framework, diagnosis: Diagnosis) -> Iterator[BlockingRule]:
    """Yield the filters that keep the pod of a diagnosis off some nodes, each asked about all nodes."""
    every = np.arange(framework.state.size)
    if diagnosis.rejected is not None:
        origin = Origin(diagnosis.rejected.plugin, ", ".join(diagnosis.rejected.reasons))
        yield BlockingRule(origin, np.ones(len(every), dtype=np.bool_))
        return
    for plugin in framework.filters:
        if plugin.name not in diagnosis.cycle.skipped:
            blocks = plugin.filter(diagnosis.cycle, every) != SUCCESS
            if blocks.any():
                yield BlockingRule(Origin(plugin.name), blocks)


def _first_filters(framework: Framework, diagnosis: Diagnosis) -> Iterator[BlockingRule]:
    """Yield, as far as a diagnosis knows, what keeps the pod off each node first."""
    blocks: dict[str, Bools] = {}
    for node, failed in zip(diagnosis.nodes.tolist(), diagnosis.failed_by.tolist(), strict=True):
        name = diagnosis.plugins[failed].name if failed >= 0 else NOT_A_FILTER
        blocks.setdefault(name, np.zeros(framework.state.size, dtype=np.bool_))[node] = True
    for name, there in blocks.items():
        yield BlockingRule(Origin(name), there)


def _largest_first(rules: Iterable[BlockingRule]) -> list[BlockingRule]:
    return sorted(rules, key=lambda rule: (-int(rule.blocks.sum()), str(rule.origin)))
