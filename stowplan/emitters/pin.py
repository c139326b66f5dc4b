"""Pinning: replacements are created with a scheduling gate, and get their node before the gate is removed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from stowplan.emitters.emission import PREFIX, Emission, EmitOptions, File
from stowplan.emitters.manifests import Manifest, stream
from stowplan.emitters.script import NONE, script
from stowplan.emitters.words import require_plain
from stowplan.instances.own_pins import PINNED_BY, TOKEN
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.plugins_compat.profiles import choose_release

GATE = f"{PREFIX}pin"
GROUP = "admissionregistration.k8s.io"


def emit_pin(plan: Plan, choices: EmitOptions) -> Emission:
    """Return a script that pins gated pods, and an admission policy that puts the gate on the plan's replacements.

    The node affinity of a gated pod can only be narrowed, so the pin is a requirement on ``metadata.name`` in every
    node selector term that the pod has, or a term of its own if it has none. The policy is stateless and cannot count;
    the script counts, by a label on the pods that it has pinned.

    Raises
    ------
    InputError
        If the release has no scheduling gates, or a name is none.
    """
    require_plain(plan)
    release = choose_release(plan.settings.release)
    if "SchedulingGates" not in dict(release.plugins):
        raise InputError(f"release {release.name} has no scheduling gates", field="settings.release")
    lines = ["tokens() {", *_tokens(plan), "    :", "}", "", "finish", ""]
    files = [script(plan, ("pods", "removal", "gates", "pin"), lines, **_variables(plan))]
    notes = []
    owners = sorted({token.owner_uid for token in plan.tokens if token.owner_uid})
    if owners:
        files.append(File("gate.yaml", stream(_policy(plan, owners))))
        notes.append(
            f"gate.yaml is of {GROUP}/v1, which clusters have from 1.36; before that, put the gate {GATE} into the pod "
            "templates"
        )
    return Emission(files, notes)


def remove_pin(plan: Plan, choices: EmitOptions) -> Emission:
    """Return a script that takes off what `emit_pin` has put into a cluster, by hand or by its script.

    Raises
    ------
    InputError
        If a name is none.
    """
    require_plain(plan)
    return Emission([script(plan, ("pods", "removal", "gates", "remove-pin"), (), **_variables(plan))])


def _variables(plan: Plan) -> dict[str, str]:
    spaces = sorted({token.namespace for token in plan.tokens})
    return {"GATE": GATE, "GROUP": GROUP, "TOKEN": TOKEN, "PINNED_BY": PINNED_BY, "SPACES": " ".join(spaces)}


def _tokens(plan: Plan) -> Iterator[str]:
    for i, token in enumerate(plan.tokens):
        words = [
            str(i),
            str(token.wave),
            token.namespace,
            token.owner_uid or NONE,
            token.template_hash,
            token.pod or NONE,
            token.target,
            str(token.count),
        ]
        yield "    " + " ".join(["token", *map(shlex.quote, words)])


def _policy(plan: Plan, owners: list[str]) -> list[Manifest]:
    """Return the policy and its binding. It fails open: a pod that is not steered is better than none."""
    uids = ", ".join(f"'{uid}'" for uid in owners)
    owned = f"has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, o.uid in [{uids}])"
    gate = f"Object{{spec: Object.spec{{schedulingGates: [Object.spec.schedulingGates{{name: '{GATE}'}}]}}}}"
    spaces = sorted({token.namespace for token in plan.tokens if token.owner_uid})
    name = f"{plan.id}-pin"
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": spaces}]}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"namespaceSelector": selector, "resourceRules": [pods]},
        "matchConditions": [{"name": "replacement", "expression": owned}],
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": gate}}],
    }
    version = f"{GROUP}/v1"
    return [
        {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": version,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name},
        },
    ]
