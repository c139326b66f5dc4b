"""Rearranges a plan so that kube-scheduler places the replacements well without an extender.

Where a replacement lands depends on what the scheduler finds at that moment. So the moves of a wave are put in another
order, a wave is split, moves are left out, and nodes are cordoned for as long as a wave lasts. All of that is safe: the
moves of a wave may be under way in any order, hence also one part after the other, and a cordon only keeps pods away.
Every arrangement is evaluated by a replay. The best one is written down with the nodes on which its pods land: that is
then what it plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stowplan.models.assignment import Assignment
from stowplan.models.plan import MoveDocument, Plan, WaveDocument
from stowplan.models.quantity import parse_quantity
from stowplan.models.snapshot import Snapshot
from stowplan.plans.replay.execution import replay
from stowplan.plans.replay.outcome import Landing, MoveVerdict, ObjectiveFunction, ReplayOutcome, share_kept
from stowplan.plans.tokens import tokens
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures

WELL = (MoveVerdict.PLANNED, MoveVerdict.AS_GOOD)

BY_ITSELF = "kube-scheduler puts it there"
"""What a move is for that ends on another node than was planned."""

MOST_CORDONED = 0.5
"""Share of the nodes that may be cordoned while a wave lasts."""

PATIENCE = 2
"""How often single nodes are cordoned for a wave before all are that nothing is to come to."""


@dataclass(frozen=True, slots=True)
class ArrangedWave:
    """Moves that are under way at once, while some nodes are cordoned.

    Parameters
    ----------
    wave
        The wave of the plan that this is a part of.
    repaired
        How often cordons were added.
    """

    wave: WaveDocument
    moves: tuple[MoveDocument, ...]
    cordon: frozenset[str] = frozenset()
    repaired: int = 0

    @property
    def targets(self) -> set[str]:
        """Nodes that something is to come to."""
        return {move.target for move in self.moves if move.target}


Arrangement = tuple[ArrangedWave, ...]


@dataclass(frozen=True, eq=False)
class Unassisted:
    """A plan that kube-scheduler carries out by itself.

    Parameters
    ----------
    plan
        What is left of the given plan, in another arrangement; its targets are the nodes on which its pods land.
    outcome
        What becomes of it.
    given
        What becomes of the given plan, as it is.
    given_up
        Moves of the given plan that are left out.
    tried
        How many arrangements were replayed.
    """

    plan: Plan
    outcome: ReplayOutcome
    given: ReplayOutcome
    given_up: Sequence[MoveDocument]
    tried: int

    @property
    def kept(self) -> float | None:
        """Share of the given plan's gain that is left; see `share_kept`."""
        return share_kept(self.given.before, self.given.planned, self.outcome.actual)

    @property
    def kept_as_given(self) -> float | None:
        """Share of its gain that the given plan would keep without steering."""
        return share_kept(self.given.before, self.given.planned, self.given.actual)


Shown = Callable[[Assignment], Sequence[float]]
"""Value of each tier, in displayed units."""


def arrange(
    plan: Plan,
    snapshot: Snapshot,
    profile: Profile,
    objective: ObjectiveFunction,
    shown: Shown,
    *,
    seed: int = 0,
    signatures: Signatures | None = None,
    may_cordon: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> Unassisted:
    """Arrange a plan so that as much as possible of its gain comes with kube-scheduler left alone.

    Some orders without cordons are tried first. Then the best is repaired, wave by wave: a node where a pod lands that
    belongs elsewhere is cordoned for the wave; if others belong on that node, the wave is split; the rest is left out.
    Last, moves whose pods come back to where they were are left out, and those without which the value is
    better.

    Parameters
    ----------
    shown
        For the values that the waves of the new plan bring.
    seed
        Decides what the release leaves to chance; the answer holds for this one.
    may_cordon
        Whether nodes may be cordoned at all.
    stopped
        Asked before every replay but the last; ``True`` ends the search with the best so far.
    """
    search = _Search(plan, snapshot, profile, objective, seed, signatures, may_cordon, stopped)
    given = search.replay_arrangement(
        tuple(ArrangedWave(wave, wave.moves, frozenset(wave.cordon)) for wave in plan.waves)
    )
    search.order(given)
    search.mend(search.best)
    nothing = search.replay_arrangement(())
    search.weed()
    search.strike_idle(nothing)
    written = _written(plan, search.best, snapshot.assignment, shown)
    outcome = replay(written, snapshot, profile, objective, seed=seed, signatures=signatures)
    kept = {move.id for part in search.best.arrangement for move in part.moves}
    given_up = [move for move in plan.moves if move.id not in kept]
    return Unassisted(written, outcome, given.outcome, given_up, search.tried)


@dataclass(frozen=True, slots=True)
class _Replayed:
    arrangement: Arrangement
    outcome: ReplayOutcome

    @property
    def rank(self) -> tuple[bool, bool, tuple[int, ...], int, int, int]:
        """Lower is better: legal and to the end, then what came of it, then what it takes."""
        outcome = self.outcome
        cordons = sum(len(part.cordon) for part in self.arrangement)
        takes = (len(outcome.landings) + len(outcome.preempted), cordons, len(self.arrangement))
        return not outcome.actual.legal, bool(outcome.halted), outcome.actual.values, *takes


class _Search:
    def __init__(
        self,
        plan: Plan,
        snapshot: Snapshot,
        profile: Profile,
        objective: ObjectiveFunction,
        seed: int,
        signatures: Signatures | None,
        may_cordon: bool,
        stopped: Callable[[], bool],
    ) -> None:
        self.plan = plan
        self.snapshot = snapshot
        self.profile = profile
        self.objective = objective
        self.seed = seed
        self.signatures = signatures
        self.stopped = stopped
        self.nodes = {node.name for node in snapshot.nodes}
        self.most = int(len(self.nodes) * MOST_CORDONED) if may_cordon else 0
        self.tried = 0
        self.best: _Replayed

    def replay_arrangement(self, arrangement: Arrangement) -> _Replayed:
        """Replay an arrangement, and keep it if it is the best so far."""
        replayed = self._replayed(arrangement)
        if not self.tried or replayed.rank < self.best.rank:
            self.best = replayed
        self.tried += 1
        return replayed

    def _replayed(self, arrangement: Arrangement) -> _Replayed:
        arrangement = _coherent(arrangement)
        waves = tuple(
            _replaced(part.wave, number=number, moves=part.moves, cordon=tuple(sorted(part.cordon)))
            for number, part in enumerate(arrangement, 1)
        )
        plan = self.plan.model_copy(update={"waves": waves})
        outcome = replay(plan, self.snapshot, self.profile, self.objective, seed=self.seed, signatures=self.signatures)
        return _Replayed(arrangement, outcome)

    def order(self, given: _Replayed) -> None:
        """Try some orders of the moves inside their waves."""
        for arrangement in _orders(given.arrangement):
            if self.best.outcome.by_itself or self.stopped():
                return
            self.replay_arrangement(arrangement)

    def mend(self, replayed: _Replayed) -> None:
        """Cordon, split and leave out until everything lands well."""
        while not replayed.outcome.by_itself and not self.stopped():
            number, wrong = _first_wrong(replayed.outcome)
            arrangement = replayed.arrangement
            parts = self._repair(arrangement[number - 1], wrong)
            replayed = self.replay_arrangement((*arrangement[: number - 1], *parts, *arrangement[number:]))

    def weed(self) -> None:
        """Leave out moves that come to nothing, and moves without which the value is better."""
        idle = _idle(self.best)
        if idle and not self.stopped():
            self.replay_arrangement(_but(self.best.arrangement, idle))
        doubtful = [f.move.id for f in self.best.outcome.landings if f.verdict not in WELL or f.move.id in idle]
        for move in doubtful:
            if self.stopped():
                return
            self.replay_arrangement(_but(self.best.arrangement, {move}))

    def strike_idle(self, nothing: _Replayed) -> None:
        """Leave out moves that come to nothing, even where others profit from them: no pod is evicted for that.

        Parameters
        ----------
        nothing
            What comes of no move at all, which is the answer if the rest is worse.
        """
        while idle := _idle(self.best):
            self.best = self._replayed(_but(self.best.arrangement, idle))
        self.best = min(self.best, nothing, key=lambda replayed: replayed.rank)

    def _repair(self, part: ArrangedWave, wrong: Sequence[Landing]) -> Sequence[ArrangedWave]:
        """Return what to do instead of a part of which some moves land badly."""
        foreign = {landing.node for landing in wrong if landing.node} - part.targets - part.cordon
        wide = part.cordon | (self.nodes - part.targets) if part.repaired >= PATIENCE else part.cordon | foreign
        for cordon in (wide, part.cordon | foreign):
            if foreign and len(cordon) <= self.most:
                return [replace(part, cordon=cordon, repaired=part.repaired + 1)]
        if len(part.moves) == 1:
            return []
        late = {landing.move.id for landing in wrong}
        if len(late) == len(part.moves):
            late -= {part.moves[0].id}
        first = tuple(move for move in part.moves if move.id not in late)
        then = tuple(move for move in part.moves if move.id in late)
        return [replace(part, moves=first, repaired=0), replace(part, moves=then, repaired=0)]


def _first_wrong(outcome: ReplayOutcome) -> tuple[int, list[Landing]]:
    """Return the first wave in which a move does not land well, and all such moves of it."""
    number = min(landing.wave for landing in outcome.landings if landing.verdict not in WELL)
    return number, [found for found in outcome.landings if found.wave == number and found.verdict not in WELL]


def _idle(replayed: _Replayed) -> set[str]:
    """Return the moves whose pods come back to where they were, or that wait as they did."""
    landings = replayed.outcome.landings
    node_of = {found.move.id: found.node for found in landings}
    source = {f.move.id: node_of.get(f.move.follows or "", f.move.source or "") for f in landings}
    return {found.move.id for found in landings if found.node == source[found.move.id]}


def _but(arrangement: Arrangement, out: set[str]) -> Arrangement:
    """Return an arrangement without some moves."""
    return tuple(replace(part, moves=tuple(move for move in part.moves if move.id not in out)) for part in arrangement)


def _coherent(arrangement: Arrangement) -> Arrangement:
    """Leave out moves that follow one which is left out, and parts without moves."""
    while True:
        kept = {move.id for part in arrangement for move in part.moves}
        orphans = {m.id for part in arrangement for m in part.moves if m.follows is not None and m.follows not in kept}
        if not orphans:
            return tuple(part for part in arrangement if part.moves)
        arrangement = _but(arrangement, orphans)


def _orders(arrangement: Arrangement) -> Iterator[Arrangement]:
    """Yield the arrangement with the moves of each wave in other orders, first at once, then one after the other."""
    sorters: list[Callable[[tuple[MoveDocument, ...]], list[MoveDocument]]] = [
        lambda moves: sorted(moves, key=_size, reverse=True),
        lambda moves: sorted(moves, key=_size),
    ]
    for sort in sorters:
        yield tuple(replace(part, moves=tuple(sort(part.moves))) for part in arrangement)
    for sort in sorters:
        yield tuple(replace(part, moves=(move,)) for part in arrangement for move in sort(part.moves))


def _size(move: MoveDocument) -> tuple[int, int]:
    return tuple(parse_quantity(move.requests.get(name, "0")) for name in ("cpu", "memory"))  # type: ignore[return-value]


# -- the plan document ----------------------------------------------------------------------------------------


def _written(plan: Plan, best: _Replayed, assignment: Assignment, shown: Shown) -> Plan:
    """Write an arrangement down as a plan of its own, which aims at where its pods land."""
    node_of = {landing.move.id: landing.node for landing in best.outcome.landings}
    waves: list[WaveDocument] = []
    for part in best.arrangement:
        moves = tuple(_landed(move, node_of) for move in part.moves)
        assignment = assignment.moved((move.pod.key, move.target) for move in moves)
        ends = {node for move in moves for node in (move.source, move.target)}
        changes = {
            "number": len(waves) + 1,
            "moves": moves,
            "cordon": tuple(sorted(part.cordon)),
            "tiers": tuple(shown(assignment)),
            "peak": {node: shares for node, shares in part.wave.peak.items() if node in ends},
        }
        waves.append(_replaced(part.wave, **changes))
    kept = {move.id for wave in waves for move in wave.moves}
    lost = [f"{m.pod.key}: left out, since nothing steers it" for m in plan.moves if m.id not in kept]
    after = waves[-1].tiers if waves else tuple(tier.before for tier in plan.tiers)
    tiers = tuple(t.model_copy(update={"after": value}) for t, value in zip(plan.tiers, after, strict=True))
    changes = {
        "id": f"{plan.id[:44]}-alone",
        "waves": tuple(waves),
        "tokens": tokens(waves),
        "tiers": tiers,
        "status": plan.status if after == tuple(tier.after for tier in plan.tiers) else "FEASIBLE",
        "least_waves": min(1, len(waves)),
        "given_up": (*plan.given_up, *lost),
        "steered": False,
    }
    return plan.model_copy(update=changes)


def _landed(move: MoveDocument, node_of: Mapping[str, str]) -> MoveDocument:
    """Return a move to where its pod lands, from where the move before it has landed."""
    target = node_of[move.id] or None
    source = move.source if move.follows is None else node_of[move.follows]
    kind = "place" if move.source is None else "evict" if target else "remove"
    why = move.why if target == move.target else BY_ITSELF
    return move.model_copy(update={"kind": kind, "source": source, "target": target, "why": why})


def _replaced(wave: WaveDocument, **changes: object) -> WaveDocument:
    """Return a wave with some fields changed."""
    return wave.model_copy(update=changes)
