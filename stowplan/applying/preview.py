"""What a run would do: progress of the plan, changes of the cluster, and the server's answers to dry runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stowplan.applying.apply import check_plan, cluster_uid, run_lease
from stowplan.applying.eviction import eviction, eviction_path, eviction_version
from stowplan.applying.journal import check_header, read_journal
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.options import ApplyOptions, Guard, Halt
from stowplan.applying.preconditions import PreconditionCheck
from stowplan.applying.tolerance import LandingTolerance
from stowplan.cluster.kubectl import ClusterError, Kubectl, Refusal
from stowplan.models.plan import Plan, WaveDocument
from stowplan.models.stop import Stop
from stowplan.plugins_compat.framework.profile import Profile


@dataclass(frozen=True)
class Preview:
    """What was found without changing anything.

    Parameters
    ----------
    problems
        What would stop a run at once.
    refusals
        By move of the next wave: what the server would not let happen, if it was asked.
    asked
        Whether it was asked.
    """

    ledger: ApplyLedger
    journal: Path
    problems: tuple[str, ...]
    refusals: dict[str, str]
    asked: bool


def preview(
    plan: Plan,
    kubectl: Kubectl,
    journal: Path,
    profile: Profile,
    options: ApplyOptions,
    *,
    ask_server: bool,
    stop: Stop,
) -> Preview:
    """Check a plan against the live cluster; with ``ask_server``, also send the next wave's evictions as dry runs.

    A dry run checks one eviction at a time and reserves nothing, so that pods which pass one by one may still have to
    wait for each other. While another run holds the Lease none is sent, since its moves change every answer.

    Raises
    ------
    InputError
        If the plan cannot be carried out, or the journal is not its own.
    ClusterError
        If the cluster cannot be reached.
    """
    check_plan(plan)
    records = read_journal(journal)
    check_header(records, plan, cluster_uid(kubectl), journal)
    ledger = ApplyLedger(plan)
    ledger.fold(records)
    if ledger.superseded:
        return Preview(ledger, journal, (ledger.superseded,), {}, False)
    following = next((wave for wave in plan.waves if wave.number not in ledger.ended), None)
    if following is None:
        return Preview(ledger, journal, (), {}, False)
    other = _other_run(kubectl, journal, options, stop, ask_server)
    ask_server = ask_server and not other
    check = PreconditionCheck(plan, ledger, kubectl, profile)
    view, problems = check.look(following)
    if problems and check.leave_out(view, following):
        view, problems = check.look(following)
    if not problems:
        tolerance = LandingTolerance(check, ledger, steered=options.serve is not None)
        problems = tolerance.admit_placed(view, following.number, options.elsewhere, lambda line: None)
    try:
        Guard(plan, stop).may_begin()
    except Halt as error:
        problems.insert(0, str(error))
    refusals = _ask(following, ledger, kubectl) if ask_server else {}
    return Preview(ledger, journal, (*other, *problems), refusals, ask_server)


def _other_run(kubectl: Kubectl, journal: Path, options: ApplyOptions, stop: Stop, ask_server: bool) -> tuple[str, ...]:
    """Say whose Lease a run would have to wait for, or why that cannot be seen; nothing if it is free, or ours."""
    with run_lease(kubectl, journal, options, stop, tell=lambda line: None) as lease:
        try:
            other = lease.other_run() if lease is not None else ""
        except ClusterError as error:
            return (str(error),)
    if lease is None or not other:
        return ()
    unasked = "; no evictions are sent as dry runs" if ask_server else ""
    return (f"another run is under way, or was killed: {other}, holds the lease {lease.where}{unasked}",)


def _ask(wave: WaveDocument, ledger: ApplyLedger, kubectl: Kubectl) -> dict[str, str]:
    version = eviction_version(kubectl)
    refusals: dict[str, str] = {}
    for move in wave.moves:
        uid, name, namespace = ledger.uid(move), ledger.name(move), move.pod.namespace
        if move.kind == "place" or ledger.stage(move) not in {"waiting", "asked"} or not uid:
            continue
        body = eviction(version, namespace, name, uid, plan=ledger.plan.id, move=move.id, dry_run=True)
        try:
            kubectl.post(eviction_path(namespace, name), body, "")
        except Refusal as error:
            refusals[move.id] = error.message
        except ClusterError as error:
            raise ClusterError(error.message, f"dry run of the eviction of pod {namespace}/{name}") from None
    return refusals
