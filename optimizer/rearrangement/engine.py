"""When the walk has its turns: for pods that wait, shortly before the last tier is bounded, and for long afterwards."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from stowplan.models.options import Options
from stowplan.models.problem import Move, MovePeak
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import constant, cost, moves_tier
from stowplan.optimizer.rearrangement.model_builder import hinged, suits
from stowplan.optimizer.rearrangement.parameters import RearrangementParameters
from stowplan.optimizer.rearrangement.queue import Queue
from stowplan.optimizer.rearrangement.walking import walk
from stowplan.optimizer.run import Run

NAME = "rearranging walk"

THREADS = 2
"""How many threads walk at least, but where there is one processor alone."""


class WalkEngine:
    """Improves the last tier of a run, where it is the only open one and the walk knows all that it consists of.

    Parameters
    ----------
    threads
        How many threads walk; with `Options.deterministic`, always the same number.
    """

    def __init__(self, run: Run, options: Options, parameters: RearrangementParameters, threads: int) -> None:
        self.run, self.options, self.parameters = run, options, parameters
        fewest = 1 if options.processes == 1 else THREADS
        self.threads = THREADS if options.deterministic else max(fewest, threads)
        self.tier = len(run.values) - 1
        self.turns = 0
        self.turns_for_room = 0
        self.gone_far = False

    @cached_property
    def _suits(self) -> bool:
        problem, chosen = self.run.evaluator.problem, self.parameters
        most = chosen.largest_table if problem.move_limit is not None else chosen.largest_unlimited_table
        if not self.options.kernels or not suits(problem, self.tier, most):
            return False
        return not self._large or self.run.memory.admits(chosen.bytes_per_pair * self._pairs)

    @property
    def _pairs(self) -> int:
        classes, nodes = self.run.evaluator.problem.shape
        return classes * nodes

    @property
    def _large(self) -> bool:
        """Whether it takes so long to begin a walk that there had better be a single one."""
        return self._pairs > self.parameters.largest_table

    @property
    def _ready(self) -> bool:
        above = any(self.run.is_open(tier) for tier in range(self.tier))
        return not above and self._suits

    @cached_property
    def _hinged(self) -> bool:
        return hinged(self.run.evaluator.problem, self.tier)

    @property
    def _far(self) -> bool:
        """Whether the value is so far from its bound that a proof by CP-SAT is out of reach."""
        value, bound = self.run.values[self.tier], self.run.bounds[self.tier]
        return self.run.variables > self.parameters.provable and value - bound > self.parameters.far_gap * value

    def outruns_bounds(self, tier: int) -> bool:
        """Whether bounds of a tier are left to the cheap ones: for hinges, expensive ones prove little more."""
        return tier == self.tier and self.gone_far and self._hinged

    def make_room(self, tier: int, share: float) -> None:
        """Let pods in that a tier counts as unscheduled; others go elsewhere for them, in few moves."""
        evaluator, queue = self._room_maker, self._queue(tier)
        if evaluator is None or queue is None:
            return
        self.turns_for_room += 1
        self._walk(evaluator, share, tier, queue)

    def makes_room(self, tier: int) -> bool:
        """Whether there is a walk that lets pods in that a tier counts."""
        return self._room_maker is not None and self._queue(tier) is not None

    def spare_moves(self) -> None:
        """Take moves back, or find others, in the first open tier, if it counts nothing else and walks made room."""
        run, problem = self.run, self.run.evaluator.problem
        tier = next((t for t in range(self.tier + 1) if run.is_open(t) and not constant(problem.tiers[t])), None)
        if run.over or tier is None or not self.turns_for_room or not all(map(constant, problem.tiers[:tier])):
            return
        moves = replace(problem, tiers=(problem.tiers[tier],))
        if problem.tiers[tier].counts(Move) and suits(moves, 0, self.parameters.largest_table):
            self._walk(Evaluator(moves), self.parameters.sparing_share, tier)

    def _queue(self, tier: int) -> Queue | None:
        """Return the pods that a tier counts as unscheduled, if there are any and a walk can take them all."""
        run = self.run
        if run.over or not run.is_open(tier) or not self.options.kernels:
            return None
        queue = Queue.of(run.evaluator.problem, run.best, tier)
        return queue if 0 < queue.counted <= self.parameters.longest_queue else None

    @cached_property
    def _room_maker(self) -> Evaluator | None:
        """What values walks that make room, by the number of moves; none if rules are not known.

        What the later tiers count would only say which way the walk goes: spread out, for one, or together.
        """
        problem = self.run.evaluator.problem
        few = replace(problem, tiers=(moves_tier(len(problem.classes)),))
        return Evaluator(few) if suits(few, 0, self.parameters.largest_table) else None

    def begin_limited(self) -> None:
        """Walk for a while under a limit on moves, so that changes of nodes begin with what they cannot find."""
        limited = self.run.evaluator.problem.move_limit is not None
        if limited and self._ready and not self.turns:
            self._improve(self.parameters.first_share)

    def begin(self) -> bool:
        """Walk for a short time, so that there is an answer to bound; return whether that is this engine's task.

        Where expensive bounds would not be worth it, the long walk follows at once; in very large problems, there is no
        other one.
        """
        if self._ready and not self.turns:
            chosen = self.parameters
            if self._large:
                self.gone_far = True
                self._improve(chosen.only_share)
                return True
            self._improve(chosen.first_hinged_share if self._hinged else chosen.first_share)
            if self._hinged and self._far:
                self.gone_far = True
                if not self._moves_are_left:
                    self._improve(chosen.far_share, from_today=True)
        return self._ready

    @property
    def _moves_are_left(self) -> bool:
        """Whether most of what the tier costs are moves: sub-problems save more of them than another walk does."""
        problem, best = self.run.evaluator.problem, self.run.best
        terms = [one for one in problem.tiers[self.tier].terms if isinstance(one.term, Move | MovePeak)]
        moves = sum(one.weight * cost(one.term, problem, best, 0) for one in terms)
        return 2 * moves > self.run.values[self.tier]

    def go_on(self, tier: int) -> bool:
        """Walk for a long time if it is the turn of the last tier, and no long walk was made.

        Returns
        -------
        bool
            Whether the tier was so far from its bound before that a proof by CP-SAT is out of reach.
        """
        if tier != self.tier:
            return False
        if self._ready and not self.gone_far:
            self.gone_far = self._far
            self._improve(self.parameters.far_share if self.gone_far else self.parameters.near_share)
        return self.gone_far

    def _improve(self, share: float, *, from_today: bool = False) -> None:
        run = self.run
        if run.over or not run.is_open(self.tier):
            return
        self.turns += 1
        self._walk(run.evaluator, share, self.tier, from_today=from_today)

    def _walk(
        self, evaluator: Evaluator, share: float, tier: int, queue: Queue | None = None, *, from_today: bool = False
    ) -> None:
        """Walk by what an evaluator says of its last tier, in time that counts for a tier of the run."""
        run = self.run
        with run.stage(NAME, share, tier) as deadline:
            walk(
                evaluator,
                run.best,
                len(evaluator.problem.tiers) - 1,
                deadline,
                self.options.seed + self.turns + 31 * self.turns_for_room,
                threads=self.threads,
                floor=run.enough[tier],
                queue=queue,
                found=lambda placement: run.offer(placement, NAME),
                from_today=from_today,
                parameters=self.parameters,
            )
