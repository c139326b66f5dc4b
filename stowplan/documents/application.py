"""The document of a plan that is being carried out."""

from __future__ import annotations

from typing import Literal

from stowplan.applying.apply import Applied
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.preview import Preview
from stowplan.models.document import API_VERSION, Document


class ProgressDocument(Document):
    """A move and its progress.

    Parameters
    ----------
    stage
        ``waiting``: not begun. ``asked``: the eviction was requested, without a final answer. ``leaving``: the pod
        leaves or has left. ``landed``: the replacement is ready on the target. ``elsewhere``: it is ready on another
        node. ``refused``: the eviction was refused for good. ``dropped``: left out, since the workload was
        scaled down, rolled out, or deleted.
    replacement, node
        The replacement and its node; empty as long as it is not ready.
    message
        Last message of the cluster; in a dry run, its answer to the dry-run request.
    """

    wave: int
    move: str
    kind: str
    namespace: str
    name: str
    source: str | None
    target: str | None
    stage: str
    replacement: str = ""
    node: str = ""
    message: str = ""


class ApplicationDocument(Document):
    """Progress of a plan that is being carried out.

    Parameters
    ----------
    cordons
        Nodes that the plan has cordoned, such as ``n1, while wave 2 lasts``.
    dry_run
        Whether the run was a dry run, which changes nothing.
    complete
        Whether all waves are over.
    stopped
        Why the run ended before that; in a dry run, all reasons that would stop it.
    obsolete
        Whether it ended since the rest of the plan does not fit the cluster any more.
    resumable
        Whether the same command can go on with the plan: it has not expired, and no other has taken its place.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Application"] = "Application"
    plan: str
    journal: str
    dry_run: bool
    complete: bool
    stopped: tuple[str, ...]
    interrupted: bool
    obsolete: bool = False
    resumable: bool = True
    seconds: float
    waves: int
    waves_over: int
    cordons: tuple[str, ...]
    moves: tuple[ProgressDocument, ...]


def application_document(result: Applied | Preview) -> ApplicationDocument:
    """Describe how a run ended, or what one would do."""
    ledger, dry = result.ledger, isinstance(result, Preview)
    stopped = result.problems if isinstance(result, Preview) else (result.stopped,) if result.stopped else ()
    return ApplicationDocument(
        plan=ledger.plan.id,
        journal=str(result.journal),
        dry_run=dry,
        complete=len(ledger.ended) == len(ledger.plan.waves),
        stopped=stopped,
        interrupted=isinstance(result, Applied) and result.interrupted,
        obsolete=isinstance(result, Applied) and result.obsolete,
        resumable=not isinstance(result, Applied) or result.resumable,
        seconds=result.seconds if isinstance(result, Applied) else 0.0,
        waves=len(ledger.plan.waves),
        waves_over=len(ledger.ended),
        cordons=(
            *(f"{node}, for good" for node in ledger.plan.cordon),
            *(f"{node}, while wave {wave.number} lasts" for wave in ledger.plan.waves for node in wave.cordon),
        ),
        moves=tuple(_progress(ledger, result.refusals if isinstance(result, Preview) else {})),
    )


def _progress(ledger: ApplyLedger, refusals: dict[str, str]) -> list[ProgressDocument]:
    found: list[ProgressDocument] = []
    for wave in ledger.plan.waves:
        for move in wave.moves:
            progress = ledger.progress[move.id]
            landed, answer, dropped = progress.landed, progress.answer, progress.dropped
            said = dropped.why if dropped is not None else answer.message if answer is not None else ""
            found.append(
                ProgressDocument(
                    wave=wave.number,
                    move=move.id,
                    kind=move.kind,
                    namespace=move.pod.namespace,
                    name=ledger.name(move),
                    source=move.source,
                    target=move.target,
                    stage=progress.stage,
                    replacement=landed.pod if landed is not None else "",
                    node=landed.node if landed is not None else "",
                    message=refusals.get(move.id, said),
                )
            )
    return found
