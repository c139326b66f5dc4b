"""Koordinator: a Reservation on the target and a PodMigrationJob that waits for it; a file for each wave."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from stowplan.emitters.emission import PLAN_LABEL, WAVE_LABEL, Emission, EmitOptions, File
from stowplan.emitters.koordinator_objects import (
    API,
    ClusterMeta,
    ControllerReference,
    DeleteOptions,
    MigrationSpec,
    ObjectReference,
    PodMigrationJob,
    PodTemplate,
    Preconditions,
    Reservation,
    ReservationOptions,
    ReservationOwner,
    ReservationSpec,
    check_pair,
)
from stowplan.emitters.manifests import stream
from stowplan.emitters.words import one_line, require_plain, require_uids
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.manifest import manifest
from stowplan.models.plan import MoveDocument, OwnerDocument, Plan, WaveDocument
from stowplan.models.validation import refusal

KOORD_SCHEDULER = "koord-scheduler"
TRIGGER, REASON = "koordinator.sh/evict-trigger", "koordinator.sh/evict-reason"

NOT_OF_A_TEMPLATE = ("nodeName", "schedulingGates", "priority", "priorityClassName", "preemptionPolicy")
"""Priority of reservations: Koordinator's own, the highest."""


def emit_koordinator(plan: Plan, choices: EmitOptions) -> Emission:
    """Return a file of manifests for each wave.

    Time to live counts from creation, so a wave's file is to be applied when the wave before is over.

    Raises
    ------
    InputError
        If a pod has no uid, a name is none, or a move follows another: the replacement that it would move has no name
        until the first move is done, and a manifest needs one. And if a pod excludes its own replacement: Koordinator
        reserves first and evicts then.
    """
    require_plain(plan)
    require_uids(plan)
    for move in plan.moves:
        if move.follows is not None:
            raise InputError(
                f"moves the pod that {move.follows} parks, and a manifest cannot name a pod that does not exist yet; "
                "use --to kubectl or --to descheduler, or plan again after the earlier wave",
                obj=f"move {move.id}",
                field="follows",
            )
        if move.waits and move.kind == "evict":
            raise InputError(
                "excludes its own replacement (a volume, a port, anti-affinity), so nothing can be reserved "
                "for it while the pod is there; use --to kubectl",
                obj=f"move {move.id}",
                field="waits",
            )
    pods = {pod.key: pod for pod in choices.snapshot.pods} if choices.snapshot else {}
    try:
        files = [File(f"wave-{wave.number}.yaml", _wave(plan, wave, pods)) for wave in plan.waves]
    except ValidationError as error:
        raise refusal(error) from None
    return Emission(files, [*_notes(plan, choices, pods)])


def _notes(plan: Plan, choices: EmitOptions, pods: dict[str, Pod]) -> list[str]:
    notes = []
    if choices.snapshot is None:
        notes.append(
            "without --snapshot the reservations hold requests only: no ports, volumes, tolerations and affinities"
        )
    else:
        lost = [move.pod.key for move in plan.moves if move.pod.key not in pods]
        notes += [f"pod {key} is not in the snapshot; its reservation holds requests only" for key in lost]
    if plan.settings.scheduler != KOORD_SCHEDULER:
        notes.append(
            f"the pods are scheduled by {plan.settings.scheduler}; if that is not Koordinator's scheduler, they are "
            "evicted and never take what is reserved"
        )
    cordoned = sorted({*plan.cordon, *(node for wave in plan.waves for node in wave.cordon)})
    if cordoned:
        notes.append(f"the plan has nodes cordoned, which manifests cannot do: {', '.join(cordoned)}")
    if plan.executor != "koordinator":
        notes.append(f"the plan was made for {plan.executor}, which can move other pods than Koordinator")
    return notes


def _wave(plan: Plan, wave: WaveDocument, pods: dict[str, Pod]) -> str:
    made: list[BaseModel] = []
    for move in wave.moves:
        reservation = None
        if move.target is not None:
            reservation = _reservation(plan, wave, move, move.target, pods.get(move.pod.key))
            made.append(reservation)
        if move.kind != "place":
            job = _job(plan, wave, move, reservation)
            if reservation is not None:
                check_pair(reservation, job)
            made.append(job)
    return stream(model.model_dump(by_alias=True, exclude_none=True, mode="json") for model in made)


def _meta(plan: Plan, wave: WaveDocument, move: MoveDocument, **annotations: str) -> ClusterMeta:
    labels = {PLAN_LABEL: plan.id, WAVE_LABEL: str(wave.number)}
    name = f"{plan.id}-{move.id}"
    return ClusterMeta(name=name, labels=labels, annotations=annotations or None)


def _reservation(plan: Plan, wave: WaveDocument, move: MoveDocument, target: str, pod: Pod | None) -> Reservation:
    return Reservation(
        metadata=_meta(plan, wave, move),
        spec=ReservationSpec(
            template=_template(plan, move, target, pod),
            owners=[_owner(move)],
            # Half as long again as the job: it must be there until the job is over.
            ttl=f"{wave.barrier.timeout_seconds * 3 // 2 + 1}s",
        ),
    )


def _owner(move: MoveDocument) -> ReservationOwner:
    """Return the owner that may use the reservation; for a pending pod without a controller, the pod itself."""
    pod, owner = move.pod, move.owner
    if owner is None or not owner.uid:
        reference = ObjectReference(
            api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid or None
        )
        return ReservationOwner(object=reference)
    version = owner.api_version or _version(owner)
    return ReservationOwner(
        controller=ControllerReference(
            api_version=version, kind=owner.kind, name=owner.name, uid=owner.uid, namespace=pod.namespace
        )
    )


def _version(owner: OwnerDocument) -> str:
    return {"ReplicationController": "v1", "Job": "batch/v1"}.get(owner.kind, "apps/v1")


def _template(plan: Plan, move: MoveDocument, target: str, pod: Pod | None) -> PodTemplate:
    """Return a pod template that the scheduler may put on one node only.

    ``nodeName`` pins here, since the Reservation is an object of its own; in a job's own template it is dropped.
    """
    metadata: dict[str, Any] = {"namespace": move.pod.namespace}
    if pod is None:
        resources = {"requests": dict(move.requests)}
        spec: dict[str, Any] = {"containers": [{"name": "main", "image": "reserved", "resources": resources}]}
    else:
        whole = manifest(pod)
        spec = {key: value for key, value in whole["spec"].items() if key not in NOT_OF_A_TEMPLATE}
        # Volumes that placement does not read have lost their source.
        spec["volumes"] = [volume for volume in spec.get("volumes", ()) if set(volume) - {"name"}]
        if pod.metadata.labels:
            metadata["labels"] = dict(pod.metadata.labels)
    return PodTemplate(metadata=metadata, spec={**spec, "schedulerName": plan.settings.scheduler, "nodeName": target})


def _job(plan: Plan, wave: WaveDocument, move: MoveDocument, reservation: Reservation | None) -> PodMigrationJob:
    options = None
    if reservation is not None:
        reference = ObjectReference(api_version=API, kind="Reservation", name=reservation.metadata.name)
        options = ReservationOptions(reservation_ref=reference)
    why = one_line(f"plan {plan.id} wave {wave.number}: {move.why}")
    return PodMigrationJob(
        metadata=_meta(plan, wave, move, **{TRIGGER: "stowplan", REASON: why}),
        spec=MigrationSpec(
            ttl=f"{wave.barrier.timeout_seconds}s",
            mode="EvictDirectly" if reservation is None else "ReservationFirst",
            pod_ref=ObjectReference(api_version="v1", kind="Pod", namespace=move.pod.namespace, name=move.pod.name),
            reservation_options=options,
            delete_options=DeleteOptions(preconditions=Preconditions(uid=move.pod.uid)),
        ),
    )
