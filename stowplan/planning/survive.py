"""Which pods are pending once a failure domain is lost, and the fewest moves after which none would be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from stowplan.answers.assessment import Assessor
from stowplan.models.assignment import Assignment
from stowplan.models.errors import InputError
from stowplan.models.html import html_table
from stowplan.models.options import Options
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.models.words import plural
from stowplan.optimizer.backend import Backend
from stowplan.planning.domain_loss import FEWEST_MOVES, Domain, Losing, Loss, Rearranged, placed
from stowplan.plans.move import Move
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.scenarios.changes import SHORT
from stowplan.scenarios.headroom import domains
from stowplan.scenarios.selection import topology_key
from stowplan.settings.freeze import who_stays
from stowplan.settings.problem import make_problem, make_profile

ROUNDS = 20
"""Rearrangements that are tried one after the other."""

LEAST_TIME = 1.0
"""Seconds, or units of work, that a search for one domain has at least."""

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
        Of each domain, if no other pod moves.
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

    @property
    def survives(self) -> bool:
        """Whether no pod is pending today, whichever domain is lost."""
        return not any(loss.pending or loss.unknown for loss in self.losses)

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
    snapshot: Snapshot,
    word: str = "zone",
    settings: Settings | None = None,
    options: Options | None = None,
    *,
    stop: Stop | None = None,
    tell: Callable[[Loss], None] = lambda loss: None,
    backend: Backend | None = None,
) -> Survival:
    """Find out what the loss of each domain comes to, and the fewest moves after which no pod would be pending.

    Pods that are pending today are left out, and no pod is preempted. Pods that the settings keep on their node are
    placed anew when that is lost, and do not move otherwise.

    Parameters
    ----------
    word
        Topology key whose values are the domains: a label, or ``zone``, ``region``, or ``node``.
    options
        The time limit is for all searches together, of which each has a second at least.
    tell
        Called with each loss when it is known.

    Raises
    ------
    InputError
        If a setting cannot be used, or there are no domains.
    """
    settings, options, stop = settings or Settings(), options or Options(), stop or Stop()
    snapshot = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.node_name or pod.finished))
    key, found = domains_of(snapshot, word)
    stays = who_stays(snapshot, settings)
    clock = _Clock(options)
    losing = Losing(settings, make_profile(settings, snapshot), stays, options, stop, backend)
    losses = []
    for i, domain in enumerate(found):
        losses.append(replace(losing, options=clock.share(ALONE, len(found) - i)).lose(snapshot, domain))
        tell(losses[-1])
    goal = {"objective": FEWEST_MOVES, "move_costs": False, "preemption": None, "prices": None, "max_moves": None}
    compiled = make_problem(snapshot, settings.model_copy(update={**goal, "max_moves_of": ()}))
    failing = [loss.domain for loss in losses if loss.pending]
    needed = {}
    for i, domain in enumerate(failing):
        if stop.is_set():
            break
        with_moves = replace(losing, options=clock.share(TOGETHER, len(failing) - i))
        needed[domain.name] = with_moves.rearrange(snapshot, domain)
    impossible = {name: one.at_least for name, one in needed.items() if one.at_least}
    targets = [domain for domain in found if domain.name not in impossible]
    least = max((one.least_moves for one in needed.values()), default=0)
    search = _Search(replace(losing, options=clock.share(1, 2 * len(found))), Assessor(compiled), targets, clock)
    nodes = search.found({name: one for name, one in needed.items() if name not in impossible}) if targets else None
    survivor = None if nodes is None else Survivor(_moves(compiled, nodes), least)
    return Survival(compiled, key, losses, impossible, survivor)


def _moves(compiled: Compiled, nodes: Mapping[str, str]) -> list[Move]:
    return [Move(pod, pod.node_name, nodes[pod.key]) for pod in compiled.snapshot.pods if pod.key in nodes]


class _Clock:
    """Divides the time limit among searches."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._began = time.monotonic()

    @property
    def over(self) -> bool:
        return not self.options.deterministic and time.monotonic() > self._began + self.options.time_limit

    def share(self, until: float, searches: int) -> Options:
        """Return options for the next of some searches, which are to end at a share of the time limit."""
        left = until * self.options.time_limit
        if not self.options.deterministic:
            left -= time.monotonic() - self._began
        return replace(self.options, time_limit=max(LEAST_TIME, left / searches))


class _Search:
    """Looks for few moves after which every domain can be lost.

    Parameters
    ----------
    targets
        The domains.
    """

    def __init__(self, losing: Losing, assessor: Assessor, targets: Sequence[Domain], clock: _Clock) -> None:
        self.losing = losing
        self.assessor = assessor
        self.today = assessor.compiled.snapshot
        self.targets = targets
        self.clock = clock

    @property
    def over(self) -> bool:
        return self.losing.stop.is_set() or self.clock.over

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
        for first in asked or [{}]:
            nodes = self._repaired(dict(first))
            if nodes is not None:
                nodes = self._reduced(nodes)
                best = nodes if best is None or len(nodes) < len(best) else best
            if self.over:
                break
        return best

    def _repaired(self, nodes: dict[str, str]) -> dict[str, str] | None:
        seen: set[frozenset[tuple[str, str]]] = set()
        nodes = self._legal_part(nodes)
        for _ in range(ROUNDS):
            failing = next((domain for domain in self.targets if not self._survives(nodes, domain)), None)
            if failing is None:
                return nodes
            state = frozenset(nodes.items())
            if state in seen or self.over:
                return None
            seen.add(state)
            more = self.losing.rearrange(placed(self.today, nodes), failing)
            if more.pending:
                return None
            nodes = self._legal_part(self._changes({**nodes, **more.moves}))
        return None

    def _reduced(self, nodes: dict[str, str]) -> dict[str, str]:
        """Return the moves without those that can be undone one by one."""
        for key in list(nodes):
            fewer = {other: node for other, node in nodes.items() if other != key}
            if self.over:
                break
            if self._is_legal(fewer) and all(self._survives(fewer, domain) for domain in self.targets):
                nodes = fewer
        return nodes

    def _survives(self, nodes: Mapping[str, str], domain: Domain) -> bool:
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
