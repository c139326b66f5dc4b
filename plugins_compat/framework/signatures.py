"""Pods that no plugin can tell apart share one signature, and with it all the work of matching.

Pods of one signature are equal in everything that a plugin may read: namespace, labels, the scheduling part of the
spec, the controller, whether the pod is terminating, what it holds while it is resized in place, and the annotations
that ask for devices or isolated CPUs. Name, uid, node, the rest of the status and all other annotations are not part
of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.models.kubernetes import LabelSelector, Pod
from stowplan.models.kubernetes.devices import GPU_COUNT, GPU_MILLI, GPU_MODEL
from stowplan.models.kubernetes.meta import ISOLATION, always_kept
from stowplan.models.kubernetes.pod import Volume
from stowplan.plugins_compat.resize import not_resized, resize


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """An equivalence class of pods, represented by one of them.

    Parameters
    ----------
    index
        Position in the list of signatures; signatures are compared by identity.
    pod
        Any pod of the signature. Its name, uid, node and status must not be read, but for what a resized pod holds.
    claims
        Key of the claim behind each volume that has one, in the order of the volumes.
    ephemeral
        Those of them that are made for the pod alone, from an ephemeral volume.
    resized
        The pod is resized in place: it holds something else on its node than its spec requests.
    """

    index: int
    pod: Pod
    claims: tuple[str, ...]
    ephemeral: frozenset[str] = frozenset()
    resized: bool = False


class Signatures:
    """Finds the signature of a pod; grows as pods are met.

    Parameters
    ----------
    apart
        Says something more that pods of one signature must have in common; no plugin may read it.
    """

    def __init__(self, pods: Iterable[Pod] = (), *, apart: Callable[[Pod], Hashable] | None = None) -> None:
        self._apart = apart
        self.all: list[Signature] = []
        self._by_label: defaultdict[tuple[str, str], list[Signature]] = defaultdict(list)
        self._by_key: dict[Hashable, Signature] = {}
        self._tokens = _Tokens()
        self._of_pod: dict[int, tuple[Pod, Signature]] = {}
        self._replacements: dict[int, Signature] = {}
        for pod in pods:
            self.of(pod)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what tells pods apart that plugins do not: a copy gives such pods signatures in common."""
        return {**self.__dict__, "_apart": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find pods by the identity that they have in the copy."""
        self.__dict__.update(state)
        self._of_pod = {id(pod): (pod, signature) for pod, signature in self._of_pod.values()}

    def of(self, pod: Pod) -> Signature:
        """Return the signature of ``pod``."""
        known = self._of_pod.get(id(pod))
        if known is None:
            # The pod is kept: an id is only good while its object lives.
            known = self._of_pod[id(pod)] = pod, self._find(pod)
        return known[1]

    def replacement(self, pod: Pod) -> Signature:
        """Return the signature of ``pod`` where it is created anew: what it held while it was resized is gone."""
        signature = self.of(pod)
        if not signature.resized:
            return signature
        found = self._replacements.get(signature.index)
        if found is None:
            found = self._replacements[signature.index] = self._find(not_resized(pod))
        return found

    def _find(self, pod: Pod) -> Signature:
        spec, meta, token = pod.spec, pod.metadata, self._tokens
        volumes = token.volumes(spec.volumes)
        claims = tuple(claim for volume in volumes if (claim := _claim(pod, volume)))
        ephemeral = frozenset(_claim(pod, volume) for volume in volumes if volume.persistent_volume_claim is None) - {
            ""
        }
        controller = meta.controller
        held = resize(pod)
        key = (
            pod.namespace,
            token(meta.labels),
            controller and (controller.api_version, controller.kind, controller.name),
            pod.terminating,
            token(spec.containers),
            token(spec.init_containers),
            token(spec.node_selector),
            token(spec.affinity),
            token(spec.tolerations),
            token(spec.topology_spread_constraints),
            token(spec.overhead),
            token(spec.resources),
            token(spec.resource_claims),
            tuple(volume for volume in volumes if not _claim(pod, volume)),
            claims,
            ephemeral,
            spec.scheduler_name,
            pod.priority,
            pod.gated,
            token.devices(meta.annotations),
            token.isolation(meta.annotations),
            spec.host_network is True and spec.host_users is False,
            held,
            self._apart and self._apart(pod),
        )
        signature = self._by_key.get(key)
        if signature is None:
            signature = self._by_key[key] = Signature(len(self.all), pod, claims, ephemeral, held is not None)
            self.all.append(signature)
            for label in meta.labels.items():
                self._by_label[label].append(signature)
        return signature

    def selected(self, selector: LabelSelector | None, namespace: str | None = None) -> list[Signature]:
        """Return the signatures that a selector selects, in one namespace or in all; a missing one selects none."""
        if selector is None:
            return []
        return [
            signature
            for signature in self._candidates(selector)
            if namespace in (None, signature.pod.namespace) and selector.matches(signature.pod.metadata.labels)
        ]

    def _candidates(self, selector: LabelSelector) -> list[Signature]:
        """Return a short list that holds every signature the selector selects."""
        demanded = [[item] for item in selector.match_labels.items()]
        demanded += [[(r.key, v) for v in r.values] for r in selector.match_expressions if r.operator == "In"]
        if not demanded:
            return self.all
        lists = [list(dict.fromkeys(s for label in any_of for s in self._labeled(label))) for any_of in demanded]
        return min(lists, key=len)

    def _labeled(self, label: tuple[str, str]) -> list[Signature]:
        return self._by_label.get(label, [])


def _claim(pod: Pod, volume: Volume) -> str:
    """Return the key of the claim behind a volume, or an empty string."""
    if volume.persistent_volume_claim is not None:
        return f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
    if volume.ephemeral is not None:
        return f"{pod.namespace}/{pod.name}-{volume.name}"
    return ""


class _Tokens:
    """Small integers for equal values; an identity seen before costs no comparison."""

    def __init__(self) -> None:
        self._by_id: dict[int, int] = {}
        self._by_value: dict[Any, int] = {}
        self._kept: list[Any] = []
        self._volumes: dict[int, tuple[Volume, ...]] = {}

    def __call__(self, value: Any) -> int:
        token = self._by_id.get(id(value))
        if token is None:
            token = self._by_value.setdefault(value, len(self._by_value))
            self._by_id[id(value)] = token
            self._kept.append(value)  # an id is only good while its object lives
        return token

    def devices(self, annotations: Mapping[str, str]) -> tuple[str | None, ...]:
        """Return the annotations that ask for devices."""
        if not annotations:
            return ()
        asked = tuple(annotations.get(key) for key in (GPU_COUNT, GPU_MILLI, GPU_MODEL))
        return asked if any(asked) else ()

    def isolation(self, annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the annotations that may ask for isolated CPUs: those with it in their key, and those asked for."""
        return tuple(
            sorted(item for item in annotations.items() if ISOLATION in item[0].lower() or not always_kept(item[0]))
        )

    def volumes(self, volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
        """Return the volumes that a scheduler plugin reads."""
        found = self._volumes.get(id(volumes))
        if found is None:
            found = tuple(v for v in volumes if _matters(v))
            self._volumes[id(volumes)] = found
            self._kept.append(volumes)
        return found


def _matters(volume: Volume) -> bool:
    return any(
        (
            volume.persistent_volume_claim,
            volume.ephemeral,
            volume.gce_persistent_disk,
            volume.aws_elastic_block_store,
            volume.azure_disk,
            volume.cinder,
            volume.iscsi,
            volume.rbd,
            volume.image,
        )
    )
