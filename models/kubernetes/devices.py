"""GPU devices of a node, and the shares of them that pods ask for, in the words of GPU-sharing schedulers.

A node says with a resource how many devices it has. A pod says with annotations how many it takes, and how much of
each: whole devices, or a share of one in thousandths.
"""

from __future__ import annotations

from stowplan.models.errors import InputError
from stowplan.models.kubernetes.node import Node
from stowplan.models.kubernetes.pod import Pod
from stowplan.models.quantity import whole

GPU_COUNT = "alibabacloud.com/gpu-count"
"""Resource of a node: its devices. Annotation or resource of a pod: how many it takes."""

GPU_MILLI = "alibabacloud.com/gpu-milli"
"""Annotation of a pod: thousandths of each device that it takes. Resource of a pod: thousandths in all."""

GPU_MODEL = "alibabacloud.com/gpu-card-model"
"""Label of a node: the model of its devices. Annotation of a pod: the models that will do, separated by ``|``."""

DEVICE = 1000
"""Thousandths in a device."""

MOST_DEVICES = 1024
"""Devices that a pod may ask for."""


def device_count(node: Node) -> int:
    """Return how many devices a node has."""
    return whole(node.allocatable.get(GPU_COUNT, node.capacity.get(GPU_COUNT, 0)))


def annotated_devices(pod: Pod) -> tuple[int, int] | None:
    """Return how many devices the annotations of a pod ask for, and how many thousandths of each.

    A pod that names only one of the two asks for one device, or for whole ones.

    Raises
    ------
    InputError
        If an annotation is no number, or one that no device can give.
    """
    annotations = pod.metadata.annotations
    if GPU_COUNT not in annotations and GPU_MILLI not in annotations:
        return None
    return (
        _number(pod, GPU_COUNT, annotations.get(GPU_COUNT, "1"), MOST_DEVICES),
        _number(pod, GPU_MILLI, annotations.get(GPU_MILLI, str(DEVICE)), DEVICE),
    )


def device_models(pod: Pod) -> frozenset[str]:
    """Return the models of device that will do for a pod; none named means all."""
    return frozenset(filter(None, pod.metadata.annotations.get(GPU_MODEL, "").split("|")))


def _number(pod: Pod, key: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most):
        raise InputError(
            f"is {text!r}; must be an integer from 0 to {most}",
            obj=f"Pod {pod.key}",
            field=f"metadata.annotations[{key}]",
        )
    return int(text)
