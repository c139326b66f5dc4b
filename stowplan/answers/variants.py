"""Several schedulers and objectives in one table: each placement is measured by every objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property

from stowplan.answers.compare import BEST, TODAY, Column, Comparison, compare, greedy_names
from stowplan.answers.figures import Value
from stowplan.answers.measures import Measures
from stowplan.models.options import Options
from stowplan.models.stop import Stop
from stowplan.optimizer.backend import cluster_of
from stowplan.optimizer.distributed.cluster import Group
from stowplan.plugins_compat.compiler.compile import Compiled

LISTENING = 0.2
"""Seconds between two looks at whether to stop."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A comparison for one scheduler and one objective.

    Parameters
    ----------
    scheduler, objective
        What the user calls them: a release or a file.
    """

    scheduler: str
    objective: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class VariantFigure:
    """One figure of all placements.

    Parameters
    ----------
    key
        Path of the figure, as that of `stowplan.answers.figures.Figure`; tiers of an objective go by its name.
    title, unit
        As in a comparison.
    values
        Of each placement, in the order of `SideBySide.titles`; ``None`` where it says nothing about the placement.
    """

    key: tuple[str, ...]
    title: str
    unit: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Placement:
    """A column, and the comparison that it is from.

    Parameters
    ----------
    group
        What it is, and for which objective if there are several.
    scheduler
        For which scheduler; empty if there is one.
    """

    group: str
    scheduler: str
    title: str
    variant: Variant
    column: Column


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Comparisons of one snapshot, in one table.

    Parameters
    ----------
    variants
        One for each pair of a scheduler and an objective, the schedulers in order, and the objectives of each.
    """

    variants: Sequence[Variant]

    @cached_property
    def titles(self) -> Sequence[str]:
        """What the placements are called: today, what each kube-scheduler does, the best of each variant."""
        return [placement.title for placement in self._placements]

    @property
    def groups(self) -> Sequence[tuple[str, str]]:
        """What each placement is, and for which scheduler; the latter is empty if there is one."""
        return [(placement.group, placement.scheduler) for placement in self._placements]

    @property
    def measures(self) -> Sequence[tuple[str, Measures]]:
        """Each placement's title and measures."""
        return [(placement.title, placement.column.measures) for placement in self._placements]

    @property
    def notes(self) -> Sequence[str]:
        """What is said of the answers, each with the schedulers that it holds for if it does not hold for all."""
        of: dict[str, dict[str, None]] = {}
        for variant in self.variants:
            comparison = variant.comparison
            compiled = comparison.compiled
            for note in (*compiled.snapshot.notes, *compiled.notes, *comparison.notes):
                of.setdefault(note, {})[variant.scheduler] = None
        number = len({variant.scheduler for variant in self.variants})
        return [note if len(of[note]) == number else f"{', '.join(of[note])}: {note}" for note in of]

    @cached_property
    def figures(self) -> Sequence[VariantFigure]:
        """Every figure: those of the placements, and the tiers of each objective."""
        found: list[VariantFigure] = []
        own = {name for variant in self.variants for name in _own_tiers(variant)}
        first = self.variants[0].comparison
        for one in first.figures:
            if one.detail or one.key[0] == "tierParts" or (one.key[0] == "tiers" and one.key[1] in own):
                continue
            values = tuple(_value(placement, one.key) for placement in self._placements)
            found.append(VariantFigure(one.key, one.title, one.unit, values))
        common = max(i for i, figure in enumerate(found, 1) if figure.key[0] in ("tiers", "refused"))
        return [*found[:common], self._choices(), *self._tiers(), *found[common:]]

    @cached_property
    def _placements(self) -> Sequence[_Placement]:
        first = self.variants[0]
        schedulers = list(dict.fromkeys(variant.scheduler for variant in self.variants))
        objectives = list(dict.fromkeys(variant.objective for variant in self.variants))
        several = len(schedulers) > 1
        placements = [_Placement(TODAY, "", TODAY, first, _column(first, TODAY))]
        for scheduler in schedulers:
            variant = next(one for one in self.variants if one.scheduler == scheduler)
            for name in greedy_names(variant.comparison.compiled):
                if any(column.name == name for column in variant.comparison.columns):
                    one, title = (scheduler, f"{name} {scheduler}") if several else ("", name)
                    placements.append(_Placement(name, one, title, variant, _column(variant, name)))
        for variant in self.variants:
            one = variant.scheduler if several else ""
            objective = variant.objective if len(objectives) > 1 else ""
            group = " ".join(part for part in (BEST, objective) if part)
            title = " ".join(part for part in (BEST, one, objective) if part)
            placements.append(_Placement(group, one, title, variant, _column(variant, BEST)))
        return placements

    def _choices(self) -> VariantFigure:
        """Return how many pods each placement has on another node than the first greedy one, or on none."""
        free = [pod.key for pod in self.variants[0].comparison.compiled.pods]
        greedy = {greedy_names(variant.comparison.compiled)[1] for variant in self.variants}
        first = next((one for one in self._placements if one.column.name in greedy), None)
        if first is None:
            return VariantFigure(("choices",), "choices that differ", "pods", (None,) * len(self._placements))
        nodes = first.column.assignment
        differ = tuple(
            sum(1 for key in free if one.column.assignment.get(key) != nodes.get(key)) for one in self._placements
        )
        return VariantFigure(("choices",), f"choices unlike {first.title}", "pods", differ)

    def _tiers(self) -> list[VariantFigure]:
        """Return the tiers of each objective, by which the placements of all others are measured too."""
        found = []
        objectives = list(dict.fromkeys(variant.objective for variant in self.variants))
        for objective in objectives:
            by = {one.scheduler: one for one in self.variants if one.objective == objective}
            some = next(iter(by.values()))
            for name in _own_tiers(some):
                values = tuple(
                    _in_tier(by[placement.variant.scheduler], placement, name) for placement in self._placements
                )
                unit = next(t.unit for t in some.comparison.compiled.problem.tiers if t.name == name)
                title = name if len(objectives) == 1 else f"{objective}: {name}"
                found.append(VariantFigure(("objectives", objective, name), title, unit, values))
        return found


def compare_variants(names: Sequence[tuple[str, str]], compare: Callable[[int], Comparison]) -> SideBySide:
    """Return comparisons for pairs of a scheduler and an objective.

    Parameters
    ----------
    names
        Scheduler and objective of each.
    compare
        Makes the comparison of a pair, by its position.
    """
    return SideBySide([Variant(*pair, compare(i)) for i, pair in enumerate(names)])


def compare_in_cluster(problems: Sequence[Compiled], options: Options, stop: Stop) -> list[Comparison | str]:
    """Return the comparison of each problem, made side by side in the Ray cluster that options name.

    Each is a job of one worker, which has one processor. One that fails costs no other: its place has the reason.

    Raises
    ------
    InputError
        If the cluster cannot be used.
    """
    with Group(cluster_of(options)) as group:
        jobs = [group.submit(_compared, problem, options.alone) for problem in problems]
        waiting, told = set(jobs), False
        while waiting:
            waiting = wait(waiting, LISTENING).not_done
            if stop.is_set() and not told:
                group.tell_to_stop()
                told = True
        return [_result(job) for job in jobs]


def _compared(stop: Stop, compiled: Compiled, options: Options) -> Comparison:
    """Compare, on another machine."""
    return compare(compiled, options, stop=stop)


def _result(job: Future[Comparison]) -> Comparison | str:
    if job.cancelled():
        return "was stopped before it began"
    error = job.exception()
    return job.result() if error is None else str(error) or type(error).__name__


def _own_tiers(variant: Variant) -> list[str]:
    """Return the names of the tiers that the objective itself has, behind those that every problem has."""
    return [tier.name for tier in variant.comparison.compiled.objective.tiers]


def _column(variant: Variant, name: str) -> Column:
    return next(column for column in variant.comparison.columns if column.name == name)


def _value(placement: _Placement, key: tuple[str, ...]) -> Value:
    """Return a figure of a placement, by the comparison that it is from."""
    comparison = placement.variant.comparison
    return next((one.value(placement.column.measures) for one in comparison.figures if one.key == key), None)


def _in_tier(by: Variant, placement: _Placement, name: str) -> Value:
    """Return the value of a placement in a tier of an objective, under the placement's own scheduler."""
    problem = by.comparison.compiled.problem
    position = next(t for t, tier in enumerate(problem.tiers) if tier.name == name)
    values = by.comparison.solution.assessor.values(placement.column.assignment)
    return problem.tiers[position].shown(values[position])
