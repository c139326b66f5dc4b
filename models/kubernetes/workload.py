"""Namespaces, workloads, services, budgets and priority classes: what gives pods their context."""

from __future__ import annotations

from stowplan.models.kubernetes.base import EMPTY, Many, Name, StringMap, kube
from stowplan.models.kubernetes.meta import ObjectMeta
from stowplan.models.kubernetes.selectors import LabelSelector


@kube
class Namespace:
    """A namespace; affinity terms select namespaces by label."""

    metadata: ObjectMeta


@kube
class ServiceSpec:
    """Which pods a service selects; ``None`` selects none."""

    selector: StringMap | None = None


@kube
class Service:
    """A service; kube-scheduler spreads the pods of one service by default."""

    metadata: ObjectMeta
    spec: ServiceSpec | None = None


@kube
class TemplateSpec:
    """The part of a pod template that binds its pods before any scheduler sees them."""

    node_name: Name | None = None


@kube
class Template:
    """A pod template."""

    spec: TemplateSpec | None = None


@kube
class WorkloadSpec:
    """Replicas wanted, the pods that count, and what new pods look like."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Template | None = None


@kube
class WorkloadStatus:
    """How many pods a controller has."""

    replicas: int | None = None


@kube
class Workload:
    """A ReplicaSet, StatefulSet or Deployment."""

    metadata: ObjectMeta
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


@kube
class ReplicationControllerSpec:
    """Replicas wanted, the labels of the pods that count, and what new pods look like."""

    replicas: int | None = None
    selector: StringMap = EMPTY
    template: Template | None = None


@kube
class ReplicationController:
    """The ancestor of the ReplicaSet."""

    metadata: ObjectMeta
    spec: ReplicationControllerSpec | None = None


@kube
class ExitCodes:
    """Exit codes of which only the presence matters."""


@kube
class PodConditionPattern:
    """A condition of a failed pod."""

    type: Name = ""
    status: Name = "True"


@kube
class PodFailurePolicyRule:
    """What the Job controller does with a pod that failed in a certain way."""

    action: Name = "Count"
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: Many[PodConditionPattern] = ()


@kube
class PodFailurePolicy:
    """Rules of which the first that matches decides."""

    rules: Many[PodFailurePolicyRule] = ()


@kube
class JobSpec:
    """How many failures of pods a Job survives."""

    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None


@kube
class JobStatus:
    """How many pods of a Job have failed."""

    failed: int | None = None


@kube
class Job:
    """Work that ends."""

    metadata: ObjectMeta
    spec: JobSpec | None = None
    status: JobStatus | None = None


@kube
class PodDisruptionBudgetSpec:
    """How many pods may be missing at once, as a number or a percentage."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


@kube
class PodDisruptionBudgetStatus:
    """The disruption controller's own view; ``disrupted_pods`` says since when a pod's eviction is under way."""

    observed_generation: int | None = None
    disruptions_allowed: int = 0
    disrupted_pods: StringMap = EMPTY
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


@kube
class PodDisruptionBudget:
    """A limit on voluntary disruption."""

    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec | None = None
    status: PodDisruptionBudgetStatus | None = None


@kube
class PriorityClass:
    """A named priority."""

    metadata: ObjectMeta
    value: int
    global_default: bool | None = None
    preemption_policy: str | None = None
