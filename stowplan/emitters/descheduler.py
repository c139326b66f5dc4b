"""The descheduler: labels on the pods of a wave, and for each wave a policy and a Job that evict exactly these."""

from __future__ import annotations

import yaml

from stowplan.emitters.descheduler_policy import exact_list, written
from stowplan.emitters.emission import PLAN_LABEL, WAVE_LABEL, Emission, EmitOptions, File
from stowplan.emitters.manifests import Manifest, stream
from stowplan.emitters.script import plan_lines, script
from stowplan.emitters.words import require_plain, require_uids
from stowplan.models.plan import Plan, WaveDocument
from stowplan.plans.movability.annotations import EVICT
from stowplan.plans.movability.causes import Cause
from stowplan.plans.movability.movable import Movability

PROTECTED = (Cause.LOCAL_STORAGE, Cause.CRITICAL)
POLICY = "policy.yaml"
ACCOUNT = "stowplan-descheduler"


def emit_descheduler(plan: Plan, choices: EmitOptions) -> Emission:
    """Return a script that labels and checks, the descheduler's rights, and a policy with its Job for each wave.

    Parked pods are found when they are labeled. A pod that the descheduler protects by default, for its local storage
    or its priority, is annotated; which ones these are is seen in the snapshot.

    Raises
    ------
    InputError
        If a pod has no uid, or a name is none.
    """
    require_plain(plan)
    require_uids(plan)
    variables = {
        "WAVES": str(len(plan.waves)),
        **_variables(choices),
        "PROTECTED": " ".join(_protected(plan, choices)),
    }
    files = [
        script(plan, ("pods", "waves", "labels", "descheduler"), plan_lines(plan), **variables),
        File("rbac.yaml", stream(_rights(choices.namespace))),
        *(
            File(f"wave-{wave.number}.yaml", stream(_wave(plan, wave, choices)))
            for wave in plan.waves
            if _evicted(wave)
        ),
    ]
    notes = []
    if plan.steered:
        notes.append(
            "the descheduler picks no nodes: run stowplan serve beside it, or pin replacements (emit --to pin)"
        )
    if choices.snapshot is None:
        notes.append("without --snapshot no pod is annotated that the descheduler protects (local storage, priority)")
    if plan.executor != "descheduler":
        passed = "it evicts running pods only, and protects some"
        notes.append(f"the plan was made for {plan.executor}, which can move other pods than the descheduler: {passed}")
    if waiting := _not_running(plan, choices):
        notes.append(f"the descheduler passes over pods that do not run: {', '.join(waiting)}")
    return Emission(files, notes)


def remove_descheduler(plan: Plan, choices: EmitOptions) -> Emission:
    """Return a script that takes off what `emit_descheduler` has put into a cluster, by hand or by its script.

    Raises
    ------
    InputError
        If a name is none.
    """
    require_plain(plan)
    libraries = ("pods", "removal", "labels", "remove-descheduler")
    return Emission([script(plan, libraries, (), **_variables(choices), ACCOUNT=ACCOUNT)])


def _variables(choices: EmitOptions) -> dict[str, str]:
    """Return the variables by which the scripts find what is the plan's."""
    labels = {"PLAN_LABEL": PLAN_LABEL, "WAVE_LABEL": WAVE_LABEL, "EVICT_ANNOTATION": EVICT}
    return {"NAMESPACE": choices.namespace, **labels}


def _evicted(wave: WaveDocument) -> int:
    return sum(move.kind != "place" for move in wave.moves)


def _protected(plan: Plan, choices: EmitOptions) -> list[str]:
    """Return the moves of pods that the DefaultEvictor does not evict, unless their annotation says so."""
    if choices.snapshot is None:
        return []
    pods = {pod.key: pod for pod in choices.snapshot.pods}
    movability = Movability(choices.snapshot, "descheduler", waived=frozenset(Cause) - set(PROTECTED))
    bonds = {
        move.id: movability.blocker(pods[move.pod.key])
        for move in plan.moves
        if move.kind != "place" and move.pod.key in pods
    }
    return [ident for ident, blocker in bonds.items() if blocker is not None and blocker.cause in PROTECTED]


def _not_running(plan: Plan, choices: EmitOptions) -> list[str]:
    """Return the pods that move and do not run, though they have a node."""
    phases = {pod.key: pod.phase for pod in choices.snapshot.pods} if choices.snapshot is not None else {}
    moved = dict.fromkeys(move.pod.key for move in plan.moves if move.kind != "place")
    return [key for key in moved if phases.get(key, "Running") not in ("", "Running")]


def _wave(plan: Plan, wave: WaveDocument, choices: EmitOptions) -> list[Manifest]:
    name = f"{plan.id}-wave-{wave.number}"
    labels = {PLAN_LABEL: plan.id, WAVE_LABEL: str(wave.number)}
    namespaces = sorted({move.pod.namespace for move in wave.moves if move.kind != "place"})
    policy = exact_list(name, labels, {PLAN_LABEL: plan.id}, namespaces, _evicted(wave))
    meta = {"name": name, "namespace": choices.namespace, "labels": labels}
    text = yaml.safe_dump(written(policy), sort_keys=False)
    container = {
        "name": "descheduler",
        "image": choices.image,
        "command": ["/bin/descheduler"],
        "args": [f"--policy-config-file=/policy/{POLICY}", "--v=3"],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "policy", "mountPath": "/policy", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": ACCOUNT,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "policy", "configMap": {"name": name}}],
    }
    job = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": wave.barrier.timeout_seconds,
        # The labels of the plan are on the Job and not on its pod, which would be evicted with the others.
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": "descheduler"}}, "spec": pod},
    }
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {POLICY: text}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job},
    ]


def _rights(namespace: str) -> list[Manifest]:
    """Return the rights that the descheduler needs: to read what it looks at, and to evict."""
    reads = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "namespaces", "pods", "persistentvolumeclaims"], "verbs": reads},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "update", "patch"]},
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": reads},
        {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": reads},
    ]
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": ACCOUNT}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": reference,
            "subjects": [subject],
        },
    ]
