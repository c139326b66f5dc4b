"""Which pods are pending once a failure domain is lost, and the fewest moves after which none would be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessor
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.html import html_table
from stowplan.models.snapshot import Snapshot
from stowplan.models.words import plural
from stowplan.optimizer.deadline import Over
from stowplan.planning.domain_loss import FEWEST_MOVES, Domain, Losing, Loss, Rearranged, placed
from stowplan.planning.shared_time import SharedTime
from stowplan.plans.move import Move
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.scenarios.changes import SHORT
from stowplan.scenarios.headroom import domains
from stowplan.scenarios.selection import topology_key
from stowplan.settings.problem import make_problem

ROUNDS = 20
"""Rearrangements that are tried one after the other."""

ALONE, TOGETHER = 0.4, 0.6
"""Shares of the time limit after which losses are known without moves of other pods, and with them."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A placement after which no pod is pending, whichever of some domains is lost.

    Parameters
    ----------
    moves
        The moves from today to it.
    least
        Number of moves that every such placement takes, as far as is proven.
    """

    moves: Sequence[Move]
    least: int

    @property
    def proven(self) -> bool:
        """Whether no such placement takes fewer moves."""
        return len(self.moves) <= self.least


@dataclass(frozen=True, eq=False)
class Survival:
    """What the loss of each domain comes to.

    Parameters
    ----------
    compiled
        The cluster without its pending pods.
    key
        Label of nodes whose values are the domains.
    losses
        Of each domain that was looked at, if no other pod moves.
    untried
        Domains whose loss was not looked at, since the time was over or a stop was asked for.
    impossible
        By domain: how many pods are pending at least when it is lost, whatever moves were made before.
    survivor
        The placement with the fewest moves that was found in which no pod is pending, whichever of the other domains is
        lost; ``None`` if none was found.
    """

    compiled: Compiled
    key: str
    losses: Sequence[Loss]
    impossible: Mapping[str, int]
    survivor: Survivor | None
    untried: Sequence[Domain] = ()

    @property
    def survives(self) -> bool:
        """Whether it is known that no pod would be pending, whichever domain is lost."""
        return not self.untried and not any(loss.pending or loss.unknown for loss in self.losses)

    def __repr__(self) -> str:
        lost = sum(1 for loss in self.losses if loss.pending)
        return f"<Survival of {plural(len(self.losses), 'domain')}: pods are pending after the loss of {lost}>"

    def _repr_html_(self) -> str:
        rows = [(loss.domain.name, loss.displaced, len(loss.pending), loss.at_least, loss.left) for loss in self.losses]
        return html_table(self.key, rows, ("lost", "pods", "pending", "at least", "kube-scheduler"))


def domains_of(snapshot: Snapshot, word: str) -> tuple[str, list[Domain]]:
    """Return the label that a word names, and the domains of that label; ``node`` has one for each node.

    Raises
    ------
    InputError
        If no node has the label, or all nodes are in one domain.
    """
    key = topology_key(snapshot, word)
    if word == "node":
        found = [Domain(node.name, (node.name,)) for node in snapshot.nodes]
    else:
        found = [
            Domain(value, tuple(node.name for node in snapshot.nodes if node.labels.get(key) == value))
            for value in domains(snapshot, key)
        ]
    if any(len(domain.nodes) == len(snapshot.nodes) for domain in found):
        raise InputError(f"puts all nodes into one domain, {found[0].name}: nothing would be left", field=key)
    return (SHORT["node"] if word == "node" else key), found


def survive(
    snapshot: Snapshot, word: str, losing: Losing, tell: Callable[[Loss], None] = lambda loss: None
) -> Survival:
    """Find out what the loss of each domain comes to, and the fewest moves after which no pod would be pending.

    Pods that are pending today are left out, and no pod is preempted. Pods that the settings keep on their node are
    placed anew when that is lost, and do not move otherwise.

    The time limit is for all searches together. Where it does not suffice, domains are left with what kube-scheduler
    makes of them, and where it does not suffice for that, they are not looked at.

    Parameters
    ----------
    word
        Topology key whose values are the domains: a label, or ``zone``, ``region``, or ``node``.
    losing
        How the losses are computed.
    tell
        Called with each loss when it is known.

    Raises
    ------
    InputError
        If there are no domains.
    """
    snapshot = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.node_name or pod.finished))
    key, found = domains_of(snapshot, word)
    time, stop = SharedTime(losing.options), losing.stop
    losses = []
    for loss in _losses(snapshot, found, losing, time):
        losses.append(loss)
        tell(loss)
    untried = found[len(losses) :]
    goal = {"objective": FEWEST_MOVES, "move_costs": False, "preemption": None, "prices": None, "max_moves": None}
    compiled = make_problem(snapshot, losing.settings.model_copy(update={**goal, "max_moves_of": ()}))
    failing = [loss.domain for loss in losses if loss.pending]
    needed = {}
    for i, domain in enumerate(failing):
        if stop.is_set() or time.left(TOGETHER) <= time.longest("rearrange"):
            break
        with time.taking("rearrange"):
            with_moves = replace(losing, options=time.share(TOGETHER, len(failing) - i))
            needed[domain.name] = with_moves.rearrange(snapshot, domain)
    impossible = {name: one.at_least for name, one in needed.items() if one.at_least}
    targets = [domain for domain in found if domain.name not in impossible]
    least = max((one.least_moves for one in needed.values()), default=0)
    nodes: dict[str, str] | None = None
    if not failing and not untried:
        nodes = {}
    elif targets and not time.over:
        search = _Search(replace(losing, options=time.share(1, 2 * len(found))), Assessor(compiled), targets, time)
        nodes = search.found({name: one for name, one in needed.items() if name not in impossible})
    survivor = None if nodes is None else Survivor(_moves(compiled, nodes), least)
    return Survival(compiled, key, losses, impossible, survivor, untried)


def _losses(snapshot: Snapshot, found: Sequence[Domain], losing: Losing, time: SharedTime) -> Iterator[Loss]:
    """Yield what the loss of each domain comes to, as far as the time goes.

    A search begins only if there is time for it, and for the scheduler to place the pods of all domains that follow.
    """
    for i, domain in enumerate(found):
        if losing.stop.is_set() or time.over:
            return
        with time.taking("schedule"):
            scheduled = losing.schedule(snapshot, domain, lambda: time.over)
        if not scheduled.complete:
            return
        rest = len(found) - i
        spare = time.left(ALONE) - (rest - 1) * time.mean("schedule")
        if not scheduled.loss.needs_search or losing.stop.is_set() or spare <= time.longest("search"):
            yield scheduled.loss
            continue
        with time.taking("search"):
            loss = replace(losing, options=time.share(ALONE, rest)).search(scheduled)
        yield loss


def _moves(compiled: Compiled, nodes: Mapping[str, str]) -> list[Move]:
    return [Move(pod, pod.node_name, nodes[pod.key]) for pod in compiled.snapshot.pods if pod.key in nodes]


class _Search:
    """Looks for few moves after which every domain can be lost.

    Parameters
    ----------
    targets
        The domains.
    """

    def __init__(self, losing: Losing, assessor: Assessor, targets: Sequence[Domain], time: SharedTime) -> None:
        self.losing = losing
        self.assessor = assessor
        self.today = assessor.compiled.snapshot
        self.targets = targets
        self.time = time

    def go_on(self) -> None:
        """Raise if it is time to end."""
        if self.losing.stop.is_set() or self.time.left(1) <= self.time.longest("rearrange"):
            raise Over

    def found(self, needed: Mapping[str, Rearranged]) -> dict[str, str] | None:
        """Return new nodes by pod key after which no pod is pending; ``None`` if none were found.

        As long as a domain cannot be lost, the moves are made that its loss would take. Those of the domain that takes
        the most come first, since they often serve others too. In the end every move that is not needed is undone.

        Parameters
        ----------
        needed
            What the loss of each domain would take today.
        """
        best: dict[str, str] | None = None
        asked = sorted((one.moves for one in needed.values() if not one.pending), key=lambda moves: -len(moves))
        try:
            for first in asked or [{}]:
                nodes = self._repaired(dict(first))
                if nodes is not None:
                    for fewer in self._reduced(nodes):
                        best = fewer if best is None or len(fewer) < len(best) else best
        except Over:
            pass
        return best

    def _repaired(self, nodes: dict[str, str]) -> dict[str, str] | None:
        seen: set[frozenset[tuple[str, str]]] = set()
        nodes = self._legal_part(nodes)
        for _ in range(ROUNDS):
            failing = next((domain for domain in self.targets if not self._survives(nodes, domain)), None)
            if failing is None:
                return nodes
            state = frozenset(nodes.items())
            if state in seen:
                return None
            seen.add(state)
            self.go_on()
            more = self.losing.rearrange(placed(self.today, nodes), failing)
            if more.pending:
                return None
            nodes = self._legal_part(self._changes({**nodes, **more.moves}))
        return None

    def _reduced(self, nodes: dict[str, str]) -> Iterator[dict[str, str]]:
        """Yield the moves, and then what is left of them while those that can be undone are undone one by one."""
        yield nodes
        for key in list(nodes):
            fewer = {other: node for other, node in nodes.items() if other != key}
            if self._is_legal(fewer) and all(self._survives(fewer, domain) for domain in self.targets):
                nodes = fewer
                yield nodes

    def _survives(self, nodes: Mapping[str, str], domain: Domain) -> bool:
        self.go_on()
        return not self.losing.lose(placed(self.today, nodes), domain).pending

    def _changes(self, nodes: Mapping[str, str]) -> dict[str, str]:
        """Return new nodes without those that pods are on today."""
        here = self.today.assignment
        return {key: node for key, node in nodes.items() if here[key] != node}

    def _after(self, nodes: Mapping[str, str]) -> Assignment:
        return self.today.assignment.moved(dict(nodes))

    def _is_legal(self, nodes: Mapping[str, str]) -> bool:
        assessment = self.assessor.assess(self._after(nodes))
        return assessment.evaluation.legal and not assessment.newly_refused

    def _legal_part(self, nodes: dict[str, str]) -> dict[str, str]:
        """Return moves without those that filters refuse while all domains are there; none if that is not enough."""
        for _ in range(len(nodes) + 1):
            refused = {one.pod.key for one in self.assessor.assess(self._after(nodes)).newly_refused}
            if not refused & nodes.keys():
                break
            nodes = {key: node for key, node in nodes.items() if key not in refused}
        return nodes if self._is_legal(nodes) else {}
