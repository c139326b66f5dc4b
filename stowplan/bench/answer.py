"""Solve one instance, write its solution, and check the written file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stowplan.bench.row import Row, units
from stowplan.instances.suites.priority_matters import ClusterProblem, cluster_snapshot, scheduled
from stowplan.instances.suites.suite import Instance, Reference, Stated, Verdict
from stowplan.models.errors import InputError, StowplanError
from stowplan.models.problem import Placement
from stowplan.models.stop import Stop
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from stowplan.plugins_compat.simulate import simulate


def answer(instance: Instance, options: Options, folder: Path, stop: Stop) -> Row:
    """Solve an instance; whatever goes wrong becomes a row that says so, since others may have taken hours.

    Parameters
    ----------
    folder
        Where the solution is written, as ``<name of the instance><suffix>``.
    """
    try:
        return _answer(instance, options, folder, stop)
    except StowplanError as error:
        return failed(instance, str(error))
    except MemoryError:
        return failed(instance, "out of memory")
    except Exception as error:
        return failed(instance, f"internal error: {type(error).__name__}: {error}")


def failed(instance: Instance, why: str) -> Row:
    """Return the row of an instance without an answer."""
    return Row(instance.name, instance.group, instance.reference, complaints=(why,))


def _answer(instance: Instance, options: Options, folder: Path, stop: Stop) -> Row:
    stated = instance.state()
    evaluator = Evaluator(stated.problem)
    greedy = _greedy(stated)
    outcome = solve(stated.problem, options, candidates=greedy, stop=stop)
    bounds = tuple(tier.bound for tier in outcome.tiers)
    scheduled_values = evaluator.evaluate(greedy[0]).values if greedy else None
    complaints = (
        *_complaints(instance, folder, stated.write(outcome.placement), outcome.values),
        *refuted(outcome.values, bounds, instance.reference, scheduled_values),
    )
    return Row(
        instance.name,
        instance.group,
        instance.reference,
        status=outcome.status,
        values=outcome.values,
        bounds=bounds,
        start=evaluator.evaluate(stated.problem.start).values,
        units=units(stated.problem.tiers),
        measures=instance.measures(outcome.values),
        bound_measures=instance.measures(bounds),
        greedy=scheduled_values,
        seconds=outcome.seconds,
        accepted=not complaints,
        interrupted=outcome.interrupted,
        complaints=complaints,
        notes=tuple(outcome.notes),
    )


def write(file: Path, text: str) -> None:
    """Write a solution.

    Raises
    ------
    InputError
        If that is not possible.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(file)) from None


def _complaints(instance: Instance, folder: Path, text: str, claimed: tuple[int, ...]) -> tuple[str, ...]:
    """Write a solution, and ask the checker of the format about the file."""
    file = folder / (instance.name + instance.suffix)
    try:
        write(file, text)
        verdict: Verdict = instance.check(str(file), file.read_bytes())
    except InputError as error:
        return (str(error),)
    if verdict.values != claimed:
        return (*verdict.violations, f"is worth {verdict.values}, not {claimed} as claimed")
    return verdict.violations


def refuted(
    values: tuple[int, ...],
    bounds: tuple[int, ...],
    reference: Reference,
    scheduled_values: tuple[int, ...] | None,
) -> Iterator[str]:
    """Hold bounds against what others reached: nothing that can be reached is below them.

    The bound of a tier speaks of placements that have our values of those before it.
    """
    if reference.best is not None and bounds[0] > reference.best:
        yield f"the bound {bounds[0]} is above {reference.best}, which others reached ({reference.best_by})"
    for tier, reached in enumerate(scheduled_values or ()):
        if bounds[tier] > reached:
            yield f"the bound {bounds[tier]} is above {reached}, which kube-scheduler reached"
        if values[tier] != reached:
            return


def _greedy(stated: Stated) -> Sequence[Placement]:
    """Play kube-scheduler through, where that is what the benchmark compares with."""
    if not isinstance(stated, ClusterProblem):
        return ()
    snapshot = cluster_snapshot(stated.cluster)
    played = simulate(snapshot, default_profile(K36), snapshot.pods, {})
    return (scheduled(stated, played.assignment),)
