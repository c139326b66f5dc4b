"""Rearranges a plan so that kube-scheduler places the replacements well without an extender.

Where a replacement lands depends on what the scheduler finds at that moment, and on chance. So the moves of a wave are
put in another order, a wave is split, moves are left out, and nodes are cordoned for as long as a wave lasts.

First, arrangements are compared by one replay each, with chance decided by a seed. The best is written down with the
nodes on which its pods land: that is then what it plans. Then it is replayed many times with chance, as it would be
carried out. What a move leads to by chance is made certain by further cordons and waves, or the move is left out, until
nothing more is gained in a cautious share of the runs. Last, cordons are taken off that buy next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.snapshot import Snapshot
from stowplan.plans.any_order import WHILE_THERE, order_problems
from stowplan.plans.arrangement import (
    ArrangedWave,
    Arrangement,
    Shown,
    as_plan,
    coherent,
    cordons,
    orders,
    without,
    written,
)
from stowplan.plans.cordons import cordon
from stowplan.plans.move import Move
from stowplan.plans.replay.distribution import (
    CAUTIOUS,
    RUNS,
    WELL,
    Distribution,
    cautious_value,
    distribution,
    ends_early,
    gives_up_little,
    replay_by_chance,
)
from stowplan.plans.replay.execution import replay
from stowplan.plans.replay.outcome import (
    ObjectiveFunction,
    ObjectiveValue,
    ReplayOutcome,
    share_kept,
)
from stowplan.plans.replayed import Replayed, first_wrong, idle_moves
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.signatures import Signatures

MOST_CORDONED = 0.5
"""Share of the nodes that may be cordoned while a wave lasts."""

PATIENCE = 2
"""How often single nodes are cordoned for a wave before all are that no pod is to come to."""

TRIALS = 10
"""Replays with chance by which an arrangement is judged during the search; the result is judged by others."""

ROUNDS, LATE_TURNS = 12, 4
"""How often an arrangement is made more certain, and how often what is still left to chance then is left out."""

COMPARED_BY, SECURED_BY = 0.3, 0.7
"""Shares of the time by which arrangements are compared, and made certain; the rest is for the worth of cordons."""

WORTH_A_CORDON = 0.02
"""Share of the gain that a cordon must buy."""


@dataclass(frozen=True, slots=True)
class UnassistedLimits:
    """What an operator accepts.

    Parameters
    ----------
    cordons
        Maximum number of cordons in all waves together.
    waves
        Maximum number of waves, if the given plan does not have more.
    """

    cordons: int = 10
    waves: int = 20


ACCEPTED = UnassistedLimits()


@dataclass(frozen=True, slots=True)
class CordonWorth:
    """What a cordon buys.

    Parameters
    ----------
    share
        Share of the gain, in a cautious share of the runs; ``None`` if it was not measured.
    ends
        Share of the runs that come to their end thanks to it.
    """

    wave: int
    node: str
    share: float | None
    ends: float = 0.0


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
    chance, given_chance
        What becomes of it, and of the given plan, with chance; shares are of the given plan's gain.
    cordons
        What each cordon buys.
    """

    plan: Plan
    outcome: ReplayOutcome
    given: ReplayOutcome
    given_up: Sequence[MoveDocument]
    tried: int
    chance: Distribution
    given_chance: Distribution
    cordons: Sequence[CordonWorth] = ()

    @property
    def kept(self) -> float | None:
        """Share of the given plan's gain that is left; see `share_kept`."""
        return share_kept(self.given.before, self.given.planned, self.outcome.actual)

    @property
    def kept_as_given(self) -> float | None:
        """Share of its gain that the given plan would keep without steering."""
        return share_kept(self.given.before, self.given.planned, self.given.actual)


def arrange(
    plan: Plan,
    snapshot: Snapshot,
    profile: Profile,
    objective: ObjectiveFunction,
    shown: Shown,
    *,
    seed: int = 0,
    signatures: Signatures | None = None,
    limits: UnassistedLimits = ACCEPTED,
    stopped: Callable[[], bool] = lambda: False,
    elapsed: Callable[[], float] = lambda: 0.0,
) -> Unassisted:
    """Arrange a plan so that as much as possible of its gain comes with kube-scheduler left alone.

    Some orders without cordons are tried first. Then the best is repaired, wave by wave: a node where a pod lands that
    belongs elsewhere is cordoned for the wave; if others belong on that node, the wave is split; the rest is left out,
    and so are moves whose pods come back, and those without which the value is better. Last, what is left is made
    certain; see `_Search.secure`.

    Parameters
    ----------
    shown
        For the values that the waves of the new plan bring.
    seed
        Decides what the release leaves to chance in the first part; in the second part, runs have seeds of their own.
    stopped
        Asked before every replay but the last; ``True`` ends the search with the best so far.
    elapsed
        Share of the time that is gone; every part of the search ends by its own share.
    """
    search = _Search(plan, snapshot, profile, objective, shown, seed, signatures, limits, stopped, elapsed)
    given = search.replay_arrangement(
        tuple(ArrangedWave(wave, wave.moves, frozenset(wave.cordon)) for wave in plan.waves)
    )
    search.gain = (given.outcome.before, given.outcome.planned)
    search.order(given)
    search.mend(search.best)
    nothing = search.replay_arrangement(())
    search.weed()
    search.strike_idle(nothing)
    arrangement = search.secure(search.best.arrangement)
    arrangement, worth = search.prune(arrangement)
    replayed = search.replayed(arrangement)
    result = search.write(replayed)
    outcome = replay(result, snapshot, profile, objective, seed=seed, signatures=signatures)
    kept = {move.id for move in result.moves}
    given_up = [move for move in plan.moves if move.id not in kept]
    chance, given_chance = (search.by_chance(found, RUNS, seed + 1) for found in (result, plan))
    return Unassisted(result, outcome, given.outcome, given_up, search.tried, chance, given_chance, worth)


class _Search:
    def __init__(
        self,
        plan: Plan,
        snapshot: Snapshot,
        profile: Profile,
        objective: ObjectiveFunction,
        shown: Shown,
        seed: int,
        signatures: Signatures | None,
        limits: UnassistedLimits,
        stopped: Callable[[], bool],
        elapsed: Callable[[], float],
    ) -> None:
        self.plan = plan
        self.snapshot = snapshot
        self.profile = profile
        self.objective = objective
        self.shown = shown
        self.seed = seed
        self.signatures = signatures
        self.stopped = stopped
        self.elapsed = elapsed
        self.nodes = {node.name for node in snapshot.nodes}
        self.pods = {pod.key: pod for pod in snapshot.pods}
        self.most = min(int(len(self.nodes) * MOST_CORDONED), limits.cordons)
        self.most_cordons = limits.cordons
        self.most_waves = max(limits.waves, len(plan.waves))
        self.tried = 0
        self.best: Replayed
        self.gain: tuple[ObjectiveValue, ObjectiveValue]

    def hurried(self) -> bool:
        """Whether the part of the search without chance has to end."""
        return self.stopped() or self.elapsed() >= COMPARED_BY

    def replay_arrangement(self, arrangement: Arrangement) -> Replayed:
        """Replay an arrangement, and keep it if it is the best so far."""
        replayed = self.replayed(arrangement)
        if not self.tried or replayed.rank < self.best.rank:
            self.best = replayed
        self.tried += 1
        return replayed

    def replayed(self, arrangement: Arrangement) -> Replayed:
        """Replay an arrangement once."""
        arrangement = coherent(arrangement)
        plan = as_plan(self.plan, arrangement)
        outcome = replay(plan, self.snapshot, self.profile, self.objective, seed=self.seed, signatures=self.signatures)
        return Replayed(arrangement, outcome)

    def write(self, replayed: Replayed) -> Plan:
        """Return the plan of an arrangement."""
        node_of = {landing.move.id: landing.node for landing in replayed.outcome.landings}
        return written(self.plan, replayed.arrangement, node_of, self.snapshot.assignment, self.shown)

    def by_chance(self, plan: Plan, runs: int, seed: int) -> Distribution:
        """Replay a plan with chance."""
        return distribution(plan, self._runs(plan, runs, seed), self.gain)

    def _runs(self, plan: Plan, runs: int, seed: int) -> list[ReplayOutcome]:
        return replay_by_chance(
            plan, self.snapshot, self.profile, self.objective, runs=runs, seed=seed, signatures=self.signatures
        )

    def order(self, given: Replayed) -> None:
        """Try some orders of the moves inside their waves."""
        for arrangement in orders(given.arrangement):
            if self.best.outcome.by_itself or self.hurried():
                return
            if len(arrangement) <= self.most_waves:
                self.replay_arrangement(arrangement)

    def mend(self, replayed: Replayed) -> None:
        """Cordon, split and leave out until everything lands well."""
        while not replayed.outcome.by_itself and not self.hurried():
            number, wrong = first_wrong(replayed.outcome)
            arrangement = replayed.arrangement
            late, foreign = {landing.move.id for landing in wrong}, {landing.node for landing in wrong}
            parts = self._repair(arrangement, number, late, foreign)
            replayed = self.replay_arrangement((*arrangement[: number - 1], *parts, *arrangement[number:]))

    def weed(self) -> None:
        """Leave out moves that come to nothing, and moves without which the value is better."""
        idle = idle_moves(self.best)
        if idle and not self.hurried():
            self.replay_arrangement(without(self.best.arrangement, idle))
        doubtful = [f.move.id for f in self.best.outcome.landings if f.verdict not in WELL or f.move.id in idle]
        for move in doubtful:
            if self.hurried():
                return
            self.replay_arrangement(without(self.best.arrangement, {move}))

    def strike_idle(self, nothing: Replayed) -> None:
        """Leave out moves that come to nothing, even where others profit from them: no pod is evicted for that.

        Parameters
        ----------
        nothing
            What comes of no move at all, which is the answer if the rest is worse.
        """
        while idle := idle_moves(self.best):
            self.best = self.replayed(without(self.best.arrangement, idle))
        self.best = min(self.best, nothing, key=lambda replayed: replayed.rank)

    def _repair(
        self, arrangement: Arrangement, number: int, late: set[str], foreign: set[str]
    ) -> Sequence[ArrangedWave]:
        """Return what to do instead of a wave of which some moves land badly.

        Parameters
        ----------
        late
            Ids of those moves.
        foreign
            Nodes on which they land.
        """
        part = arrangement[number - 1]
        foreign = foreign - {""} - part.targets - part.cordon
        left = self.most_cordons - cordons(arrangement)
        wide = part.cordon | (self.nodes - part.targets) if part.repaired >= PATIENCE else part.cordon | foreign
        for closed in (wide, part.cordon | foreign):
            if foreign and len(closed) <= self.most and len(closed) - len(part.cordon) <= left:
                return [replace(part, cordon=closed, repaired=part.repaired + 1)]
        if len(part.moves) == 1:
            return []
        if len(late) == len(part.moves):
            late = late - {part.moves[0].id}
        first = tuple(move for move in part.moves if move.id not in late)
        then = tuple(move for move in part.moves if move.id in late)
        again = [replace(part, moves=then, repaired=0)] if self._may_split(arrangement, part) else []
        return [replace(part, moves=first, repaired=0), *again]

    def _may_split(self, arrangement: Arrangement, part: ArrangedWave) -> bool:
        """Whether another wave with the cordons of this one is within the limits."""
        may_close = not part.cordon or cordons(arrangement) + len(part.cordon) <= self.most_cordons
        return len(arrangement) < self.most_waves and may_close

    # -- chance -----------------------------------------------------------------------------------------------

    def secure(self, arrangement: Arrangement) -> Arrangement:
        """Make landings certain, or leave moves out, as long as more is kept in a cautious share of the runs.

        Every wave of the result may come in any order. No moves at all are the answer if nothing else keeps anything.
        An arrangement that comes to its end in every trial is the answer although others keep a little more.
        """
        best: Arrangement = ()
        value = self._cautious_value(())
        late_turns = LATE_TURNS
        for turn in range(ROUNDS + LATE_TURNS):
            replayed = self._in_any_order(arrangement)
            arrangement = replayed.arrangement
            if not arrangement:
                break
            outcomes = self._runs(self.write(replayed), TRIALS, self.seed)
            found, ends = cautious_value(outcomes), ends_early(outcomes)
            to_end = bool(best) and not any(outcome.halted for outcome in outcomes)
            if found < value or (to_end and gives_up_little(found, value, self.gain)):
                best, value = arrangement, found
            if not ends:
                break
            number = min(ends)
            if turn < ROUNDS and not self.stopped() and self.elapsed() < SECURED_BY:
                parts = self._repair(arrangement, number, *ends[number])
                arrangement = coherent((*arrangement[: number - 1], *parts, *arrangement[number:]))
                continue
            if not late_turns:
                break
            late_turns -= 1
            arrangement = coherent(without(arrangement, {name for late, _ in ends.values() for name in late}))
        return best

    def _cautious_value(self, arrangement: Arrangement) -> tuple[bool, tuple[int, ...]]:
        """Return what comes of an arrangement at least, in a cautious share of the runs."""
        return cautious_value(self._runs(self.write(self.replayed(arrangement)), TRIALS, self.seed))

    def _in_any_order(self, arrangement: Arrangement) -> Replayed:
        """Replay an arrangement, and split its waves until the moves of each may come in any order.

        A move whose pod lands where the filters would refuse it in some order of the wave gets a wave of its own, or is
        left out if it has one already or there are waves enough.
        """
        while True:
            replayed = self.replayed(arrangement)
            if idle := idle_moves(replayed):
                arrangement = without(replayed.arrangement, idle)
                continue
            problem = next(self._order_problems(replayed), None)
            if problem is None:
                return replayed
            number, position, waits = problem
            arrangement = replayed.arrangement
            part = arrangement[number - 1]
            move = part.moves[position]
            if waits:
                moves = (*part.moves[:position], move.model_copy(update={"waits": True}), *part.moves[position + 1 :])
                parts = [replace(part, moves=moves)]
            else:
                rest = tuple(other for other in part.moves if other is not move)
                own = [replace(part, moves=(move,), repaired=0)] if rest and self._may_split(arrangement, part) else []
                parts = [replace(part, moves=rest), *own]
            arrangement = (*arrangement[: number - 1], *parts, *arrangement[number:])

    def _order_problems(self, replayed: Replayed) -> Iterator[tuple[int, int, bool]]:
        """Yield number of the wave, position of the move, and whether it only has to wait for its old pod."""
        there = self.snapshot.assignment
        for wave in self.write(replayed).waves:
            moves = [
                Move(self.pods[move.pod.key], move.source or "", move.target or "", waits=move.waits)
                for move in wave.moves
            ]
            closed = cordon(self.snapshot, wave.cordon) if wave.cordon else self.snapshot
            for found in order_problems(closed, self.profile, there, moves, self.signatures):
                yield wave.number, found.position, found.problem == WHILE_THERE
            there = there.moved((move.pod.key, move.target) for move in wave.moves)

    def prune(self, arrangement: Arrangement) -> tuple[Arrangement, list[CordonWorth]]:
        """Take off the cordons that buy next to nothing; say what the others buy."""
        worth: list[CordonWorth] = []
        kept, ending = self._cautious(self.replayed(arrangement)) if cordons(arrangement) else (0.0, 0.0)
        for number, part in enumerate(arrangement, 1):
            for node in sorted(part.cordon):
                if self.stopped() or self.elapsed() >= 1:
                    worth.append(CordonWorth(number, node, None))
                    continue
                less = replace(arrangement[number - 1], cordon=arrangement[number - 1].cordon - {node})
                trial = (*arrangement[: number - 1], less, *arrangement[number:])
                replayed = self.replayed(trial)
                share, ended = self._cautious(replayed)
                sound = not idle_moves(replayed) and next(self._order_problems(replayed), None) is None
                if kept - share < WORTH_A_CORDON and ended >= ending and sound:
                    arrangement, kept, ending = trial, share, ended
                else:
                    worth.append(CordonWorth(number, node, kept - share, ending - ended))
        return arrangement, worth

    def _cautious(self, replayed: Replayed) -> tuple[float, float]:
        """Return the share of the gain that is kept in a cautious share of the runs, and the share of runs that end."""
        found = self.by_chance(self.write(replayed), TRIALS, self.seed)
        return found.cautious(CAUTIOUS) or 0.0, found.share_finished
