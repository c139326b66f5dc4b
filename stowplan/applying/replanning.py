"""The rest of a plan made anew from what a cluster shows, and carried out if that was accepted beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from stowplan.applying.apply import Applied, apply, run_lease
from stowplan.applying.journal import ApplyJournal, now, plan_hash
from stowplan.applying.lease import ClusterLease
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.options import ApplyOptions, Halt
from stowplan.applying.preconditions import PreconditionCheck
from stowplan.applying.records import ReplanRecord
from stowplan.cluster.kubectl import ClusterError, Kubectl
from stowplan.cluster.snapshot import save
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.plan import Plan
from stowplan.models.stop import Stop
from stowplan.models.validation import refusal
from stowplan.models.words import plural
from stowplan.planning.replan import MadeEviction, replan
from stowplan.plugins_compat.framework.profile import Profile

IN_VAIN = 3
"""Plans in a row without an eviction after which no other is made: the cluster changes faster than it is planned."""


@dataclass(frozen=True)
class Replanning:
    """How the rest of a plan is made anew.

    Parameters
    ----------
    accepted
        Whether new plans are carried out at once; otherwise the run stops when the new plan is written.
    options
        The search.
    config
        Path of the scheduler configuration that the plan was made with, if it was made with one.
    """

    accepted: bool
    options: Options
    config: str | None = None


def apply_and_replan(
    plan: Plan,
    kubectl: Kubectl,
    journal: Path,
    profile: Profile,
    options: ApplyOptions,
    replanning: Replanning,
    *,
    stop: Stop | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Applied:
    """Carry a plan out as `apply` does; where its rest does not fit the cluster any more, make it anew.

    The new plan is written beside the journal and shown. If that was accepted, it is carried out with a journal of its
    own, and the old journal says so: a run that is resumed after a kill goes on with the new plan. Other runs are kept
    away from the first plan to the last, while one is made anew too.

    Raises
    ------
    InputError, ClusterError
        As `apply` does.
    """
    stop = stop or Stop()
    options = replace(options, awaits_evicted=True)
    with run_lease(kubectl, journal, options, stop, tell) as lease:
        return _apply_and_replan(plan, kubectl, journal, profile, options, replanning, stop, tell, lease)


def _apply_and_replan(
    plan: Plan,
    kubectl: Kubectl,
    journal: Path,
    profile: Profile,
    options: ApplyOptions,
    replanning: Replanning,
    stop: Stop,
    tell: Callable[[str], None],
    lease: ClusterLease | None,
) -> Applied:
    refused: dict[str, str] = {}
    in_vain, seconds = 0, 0.0
    while True:
        result = apply(plan, kubectl, journal, profile, options, stop=stop, tell=tell, lease=lease)
        seconds += result.seconds
        result = replace(result, seconds=seconds)
        successor = result.ledger.successor
        if successor is None:
            if not result.obsolete:
                return result
            tell(result.stopped)
            refused |= _refused(result.ledger)
            in_vain = 0 if list(_evictions(result.ledger)) else in_vain + 1
            if in_vain >= IN_VAIN:
                return replace(result, stopped=f"{result.stopped}; made anew {in_vain} times without an eviction")
            try:
                new = _made_anew(result.ledger, kubectl, profile, options, replanning, refused, stop)
            except (Halt, ClusterError, InputError) as error:
                return replace(result, stopped=f"{result.stopped}; its rest cannot be made anew: {error}")
            file = _write(new, journal.parent)
            for line in _shown(new, file):
                tell(line)
            if not replanning.accepted:
                size = f"{plural(len(new.moves), 'move')} in {plural(len(new.waves), 'wave')}"
                return replace(result, stopped=f"{result.stopped}; its rest, made anew, is {file}: {size}")
            successor = _supersede(journal, new, file)
        plan = _successor(successor, journal.parent)
        journal = journal.parent / f"{plan.id}.journal"
        tell(f"going on with plan {plan.id}")


def _made_anew(
    ledger: ApplyLedger,
    kubectl: Kubectl,
    profile: Profile,
    options: ApplyOptions,
    replanning: Replanning,
    refused: dict[str, str],
    stop: Stop,
) -> Plan:
    """Return a plan of the rest that has moves.

    Raises
    ------
    Halt
        If it has none, or a stop is requested.
    ClusterError, InputError
        If the cluster cannot be seen, or has no more what the plan is about.
    """
    snapshot = PreconditionCheck(ledger.plan, ledger, kubectl, profile).snapshot()
    evictions = list(_evictions(ledger))
    new = replan(
        ledger.plan,
        snapshot,
        evictions,
        replanning.options,
        refused=refused,
        config=replanning.config,
        steered=options.serve is not None,
        stop=stop,
    )
    if stop.is_set():
        raise Halt("interrupted")
    if not new.waves:
        limit = new.settings.max_moves
        raise Halt(f"no better placement is found with {plural(limit or 0, 'more move')}")
    return new


def _evictions(ledger: ApplyLedger) -> Iterator[MadeEviction]:
    """Yield the evictions that were made, each with its replacement, if that is ready."""
    for move in ledger.plan.moves:
        if move.kind != "place" and ledger.progress[move.id].evicted:
            landed = ledger.progress[move.id].landed
            yield MadeEviction(move, f"{move.pod.namespace}/{landed.pod}" if landed is not None else "")


def _refused(ledger: ApplyLedger) -> dict[str, str]:
    return {
        f"{move.pod.namespace}/{ledger.name(move)}": "its eviction was refused for good"
        for move in ledger.plan.moves
        if ledger.stage(move) == "refused"
    }


def _write(plan: Plan, folder: Path) -> Path:
    file = folder / f"{plan.id}.json"
    save(plan.model_dump_json(by_alias=True, indent=2).encode() + b"\n", file)
    return file


def _shown(plan: Plan, file: Path) -> Iterator[str]:
    """Yield the lines that show a new plan: what it is worth, every move, every cordon."""
    size = f"{plural(len(plan.moves), 'move')} in {plural(len(plan.waves), 'wave')}"
    yield f"the rest, made anew, is plan {plan.id}: {size}, in {file}"
    yield from (f"{tier.name}: {tier.before:,.6g} → {tier.after:,.6g} {tier.unit}".rstrip() for tier in plan.tiers)
    yield from (f"cordon {node}, for good" for node in plan.cordon)
    for wave in plan.waves:
        yield from (f"wave {wave.number}: cordon {node} while it lasts" for node in wave.cordon)
        for move in wave.moves:
            yield f"wave {wave.number}: {move.pod.key}: {move.source or '(pending)'} → {move.target or '(none)'}"


def _supersede(journal: Path, plan: Plan, file: Path) -> ReplanRecord:
    """Write down that a plan takes the place of the journal's own."""
    record = ReplanRecord(at=now(), plan=plan.id, plan_hash=plan_hash(plan), file=file.name)
    with ApplyJournal(journal) as book:
        book.append(record)
    return record


def _successor(record: ReplanRecord, folder: Path) -> Plan:
    """Read the plan that took the place of another.

    Raises
    ------
    InputError
        If it cannot be read, or is not the plan that was accepted.
    """
    file = folder / record.file
    try:
        plan = Plan.model_validate_json(file.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(file)) from None
    except ValidationError as error:
        raise refusal(error, str(file)) from None
    if plan_hash(plan) != record.plan_hash:
        raise InputError(f"is not the plan {record.plan} that was accepted", str(file))
    return plan
