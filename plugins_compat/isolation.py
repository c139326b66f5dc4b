"""CPUs that the kernel keeps for pods which ask for whole cores of their own (``isolcpus``).

A pod that an annotation marks takes whole cores of its node's isolated pool in place of ordinary CPU: what its
containers request of CPU, with init containers at their highest and overhead, rounded up to cores. It is charged to
neither counter of ordinary CPU; its memory and the pod itself count as ever. What a pod is charged follows from its
signature, which is kept with the pod on its node, so what is given back is what was charged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.kubernetes.meta import always_kept

POOL = "isolated-cpu.stowplan.dev/cores"
"""The pool as a resource, in rules and reports; one unit is a core."""

MILLI = 1000
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class Isolation:
    """How pods and nodes say what is isolated.

    Parameters
    ----------
    pod_annotation
        Marks a pod, with any value but an empty one, ``false`` or ``0``.
    node_annotation
        States a node's pool: a list of CPUs such as ``4-11,14``, or ``count:8``.
    allocatable_contains_pool
        Whether a node's allocatable CPU counts the cores of the pool too; they are then taken off.
    """

    pod_annotation: str = "isolcpus.stowplan.dev/use"
    node_annotation: str = "isolcpus.stowplan.dev/cpus"
    allocatable_contains_pool: bool = False

    def check(self, read: frozenset[str]) -> None:
        """Check that a snapshot holds the annotations, if its objects have them.

        Parameters
        ----------
        read
            Keys that were asked for when it was read, besides those that are always kept.

        Raises
        ------
        InputError
            If one was left out, so that it is not known which pods or nodes have it.
        """
        for key in (self.pod_annotation, self.node_annotation):
            if not always_kept(key) and key not in read:
                problem = (
                    f"the snapshot was read without annotations {key!r}; read it with load(..., annotations=[...])"
                )
                raise InputError(problem, field="IsolatedCPUs")

    def marks(self, pod: Pod) -> bool:
        """Whether a pod takes cores of the pool."""
        return pod.metadata.annotations.get(self.pod_annotation, "").lower() not in ("", "false", "0")

    def pool(self, node: Node) -> int:
        """Return the cores of a node's pool.

        Raises
        ------
        InputError
            If the annotation is no list of CPUs.
        """
        text = node.metadata.annotations.get(self.node_annotation, "").strip()
        try:
            return _cores(text)
        except ValueError:
            problem = f"{text!r} is no list of CPUs such as 4-11,14, nor a number such as count:8"
            field = f"metadata.annotations[{self.node_annotation}]"
            raise InputError(problem, obj=f"Node {node.name}", field=field) from None

    def taken(self, amounts: dict[str, int]) -> dict[str, int]:
        """Return a marked pod's requests, in scheduler units, with cores of the pool in place of CPU."""
        cores = -(-amounts.get("cpu", 0) // MILLI)
        rest = {name: amount for name, amount in amounts.items() if name != "cpu"}
        return {**rest, POOL: cores} if cores else rest


def _cores(text: str) -> int:
    if not text:
        return 0
    kind, colon, number = text.partition(":")
    if colon:
        if kind != "count" or not number.isdecimal():
            raise ValueError
        return int(number)
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError
        found.update(range(first, last + 1))
    return len(found)
