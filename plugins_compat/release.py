"""What differs between releases of kube-scheduler, as plain switches.

A plugin never asks for the release; it asks for one behavior. A release is a set of such behaviors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from stowplan.models.settings import PLATFORM_RELEASE
from stowplan.plugins_compat.isolation import Isolation

TieBreak = Literal["uniform", "heap", "first", "rotating"]


@dataclass(frozen=True, slots=True)
class Release:
    """Behavior of one release.

    Parameters
    ----------
    points
        Highest score of a score plugin.
    real_scores
        Scores are real numbers; sums over pods count them to `score_unit`.
    policy
        The release is configured by a ``Policy`` file: it has predicates and priorities, not plugins.
    retired
        Names of the plugins that the release has and that newer ones have not.
    unscored
        Names of the plugins that do not score in this release.
    multi_point
        A configuration may enable plugins at all extension points at once.
    pre_filter_narrows
        PreFilter plugins may leave only some nodes.
    isolation
        Pods may take cores of an isolated pool; ``None`` in every release, unless a profile says how.
    all_reasons
        A node is reported with the reasons of every filter that rejects it, not only of the first.
    init_containers_on_nodes
        Init containers count toward the requests of the pods on a node, and in scores.
    pod_overhead, ephemeral_storage
        The pod's overhead, and ephemeral storage, are accounted for.
    quantity_sum
        Container requests are added as quantities and rounded once; otherwise each is rounded first.
    sidecars, pod_level_resources
        Restartable init containers, and requests of the pod as a whole, count toward its requests.
    in_place_resize
        A pod on a node counts for what it holds there while it is resized, and not for what its spec requests.
    cpu_overhead_in_cores
        In scores, CPU overhead counts as whole cores rounded up, read as millicores (an upstream bug).
    fit_skips_zero, fit_unresolvable
        Fit ignores resources the pod requests none of; a request above allocatable is unresolvable.
    balanced
        ``difference``: by the difference of two fractions after placement; ``std``: by their standard deviation;
        ``delta``: the improvement of the latter over the node without the pod.
    skips_idle_scores
        Plugins with nothing to say drop out of scoring instead of giving every node a constant.
    images_of_init_containers
        ImageLocality counts init containers.
    images_of_volumes
        ImageLocality counts image volumes.
    node_affinity_first_conflict
        A first required term with contradictory names makes the pod unschedulable at once.
    balances_volumes
        NodeResourcesBalancedAllocation counts the volumes that a pod attaches (``difference`` only).
    spread_rounds
        Raw scores of spread constraints are rounded; otherwise they are cut off.
    spread_per_constraint
        Spread constraints that share a topology key keep separate counts.
    spread_policies, spread_min_domains, spread_label_keys
        The constraint fields ``nodeAffinityPolicy``/``nodeTaintsPolicy``, ``minDomains``, ``matchLabelKeys`` work.
    spread_empty_selector_counts
        An explicit empty selector counts every pod of the namespace.
    affinity_label_keys
        ``matchLabelKeys`` and ``mismatchLabelKeys`` of pod affinity work.
    affinity_keeps_namespace_selector
        The namespace selector of an incoming term is evaluated a second time, against no labels.
    ports_of_sidecars
        NodePorts counts restartable init containers.
    generic_taint_reason
        The reason of TaintToleration does not name the taint.
    volume_reason
        Reason for a bound volume that a node cannot reach.
    csi_limit_from_allocatable
        A node's allocatable resources may state the attach limit of a CSI driver.
    csi_limit_counts_inline
        Inline in-tree volumes that a CSI driver has taken over count toward its limit.
    counts_left_attached
        Volumes of CSI drivers that are attached to a node though no pod there uses them count toward its limit.
    always_migrated
        In-tree volume plugins that count as taken over by CSI drivers wherever there is a CSINode object.
    missing_claim_is_unresolvable
        A claim that does not exist makes attach limits unresolvable; otherwise it is an error.
    read_write_once_pod
        The access mode of that name is enforced.
    read_write_once_pod_is_final
        A claim of that mode that is in use makes the pod unresolvable in PreFilter; otherwise preemption may help.
    volume_capacity_priority
        VolumeBinding scores by how well volumes fit the claims that take them.
    volume_attributes_classes
        A claim takes only volumes of its own VolumeAttributesClass.
    zone_label_translation
        A volume's beta zone label may match a node's label of the new name.
    zone_checked_in_pre_filter
        VolumeZone looks at the claims before it looks at nodes.
    pinned_nodes_fail
        Nodes outside a PreFilter node set are recorded as unresolvable; else they count for preemption.
    rotates_over_all_nodes
        With sampling, the place in the node list advances modulo all nodes, not modulo those that PreFilter left in.
    takes_first_if_unscored
        With sampling and nothing that scores, the search ends at the first feasible node.
    ignorable_binders
        When an ignorable extender fails to bind, the bind plugins take over.
    percentage_per_profile
        A profile may set its own percentageOfNodesToScore.
    pre_filter_continues
        A PreFilter rejection that preemption may resolve does not end PreFilter, and is said once, not for each node.
    preemption_waits_for_any
        A pod waits for any terminating pod of lower priority on its nominated node, not only for its own victims.
    preemption_clears_nomination
        A pod that preemption finds no node for loses the nomination that it had.
    preemption_sorts_in_two_passes
        The release was built with a Go library that sorts short lists of victims in two passes.
    preemption_sorts_victims
        Victims are ordered by importance, also where a disruption budget split them.
    tie_break
        How one of several best nodes is picked.
    config_versions
        Versions of ``kubescheduler.config.k8s.io`` that the release reads.
    """

    name: str
    points: int
    real_scores: bool
    policy: bool
    retired: frozenset[str]
    unscored: frozenset[str]
    multi_point: bool
    pre_filter_narrows: bool
    isolation: Isolation | None
    all_reasons: bool
    init_containers_on_nodes: bool
    pod_overhead: bool
    ephemeral_storage: bool
    quantity_sum: bool
    sidecars: bool
    pod_level_resources: bool
    in_place_resize: bool
    cpu_overhead_in_cores: bool
    fit_skips_zero: bool
    fit_unresolvable: bool
    balanced: Literal["difference", "std", "delta"]
    balances_volumes: bool
    skips_idle_scores: bool
    images_of_init_containers: bool
    images_of_volumes: bool
    node_affinity_first_conflict: bool
    spread_rounds: bool
    spread_per_constraint: bool
    spread_policies: bool
    spread_min_domains: bool
    spread_label_keys: bool
    spread_empty_selector_counts: bool
    affinity_label_keys: bool
    affinity_keeps_namespace_selector: bool
    ports_of_sidecars: bool
    generic_taint_reason: bool
    volume_reason: str
    csi_limit_from_allocatable: bool
    csi_limit_counts_inline: bool
    counts_left_attached: bool
    always_migrated: frozenset[str]
    missing_claim_is_unresolvable: bool
    read_write_once_pod: bool
    read_write_once_pod_is_final: bool
    volume_capacity_priority: bool
    volume_attributes_classes: bool
    zone_label_translation: bool
    zone_checked_in_pre_filter: bool
    pinned_nodes_fail: bool
    rotates_over_all_nodes: bool
    takes_first_if_unscored: bool
    ignorable_binders: bool
    percentage_per_profile: bool
    pre_filter_continues: bool
    preemption_waits_for_any: bool
    preemption_clears_nomination: bool
    preemption_sorts_in_two_passes: bool
    preemption_sorts_victims: bool
    tie_break: TieBreak
    config_versions: tuple[str, ...]
    plugins: tuple[tuple[str, int], ...]
    """Default plugins in order, with their score weights (0 where the plugin does not score)."""

    @property
    def ties_by_chance(self) -> bool:
        """Whether any of several nodes with the highest score may be taken.

        Upstream draws among them, or takes the one at the root of a heap; in what order nodes enter that heap is left
        to the threads that filter in parallel. Only releases that take turns, or the first, leave nothing to chance.
        """
        return self.tie_break in ("uniform", "heap")

    @property
    def scheduler(self) -> str:
        """What the scheduler is called whose decisions are these: kube-scheduler, or an operations platform's."""
        return "greedy" if self.real_scores else "kube-scheduler"

    @property
    def who(self) -> str:
        """Who decides, in a sentence."""
        return "the greedy method" if self.real_scores else self.scheduler

    @property
    def score_unit(self) -> int:
        """Parts of a point in which scores are added up over pods: 1, or millionths where scores are real numbers."""
        return 1_000_000 if self.real_scores else 1


K24 = Release(
    name="1.24",
    points=100,
    real_scores=False,
    policy=False,
    retired=frozenset({"SelectorSpread"}),
    unscored=frozenset(),
    multi_point=True,
    pre_filter_narrows=True,
    isolation=None,
    all_reasons=False,
    init_containers_on_nodes=True,
    pod_overhead=True,
    ephemeral_storage=True,
    quantity_sum=False,
    sidecars=False,
    pod_level_resources=False,
    in_place_resize=False,
    cpu_overhead_in_cores=True,
    fit_skips_zero=False,
    fit_unresolvable=False,
    balanced="std",
    balances_volumes=False,
    skips_idle_scores=False,
    images_of_init_containers=False,
    images_of_volumes=False,
    node_affinity_first_conflict=True,
    spread_rounds=True,
    spread_per_constraint=False,
    spread_policies=False,
    spread_min_domains=False,
    spread_label_keys=False,
    spread_empty_selector_counts=True,
    affinity_label_keys=False,
    affinity_keeps_namespace_selector=False,
    ports_of_sidecars=False,
    generic_taint_reason=False,
    volume_reason="node(s) had volume node affinity conflict",
    csi_limit_from_allocatable=True,
    csi_limit_counts_inline=False,
    counts_left_attached=False,
    always_migrated=frozenset({"kubernetes.io/cinder"}),
    missing_claim_is_unresolvable=False,
    read_write_once_pod=False,
    read_write_once_pod_is_final=True,
    volume_capacity_priority=False,
    volume_attributes_classes=False,
    zone_label_translation=False,
    zone_checked_in_pre_filter=False,
    pinned_nodes_fail=False,
    rotates_over_all_nodes=False,
    takes_first_if_unscored=False,
    ignorable_binders=False,
    percentage_per_profile=False,
    pre_filter_continues=False,
    preemption_waits_for_any=True,
    preemption_clears_nomination=True,
    preemption_sorts_in_two_passes=True,
    preemption_sorts_victims=False,
    tie_break="uniform",
    config_versions=("v1beta2", "v1beta3"),
    plugins=(
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeName", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("EBSLimits", 0),
        ("GCEPDLimits", 0),
        ("NodeVolumeLimits", 0),
        ("AzureDiskLimits", 0),
        ("VolumeBinding", 1),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
    ),
)

K36 = replace(
    K24,
    name="1.36",
    retired=frozenset(),
    quantity_sum=True,
    sidecars=True,
    pod_level_resources=True,
    in_place_resize=True,
    cpu_overhead_in_cores=False,
    fit_skips_zero=True,
    fit_unresolvable=True,
    balanced="delta",
    skips_idle_scores=True,
    images_of_init_containers=True,
    images_of_volumes=True,
    node_affinity_first_conflict=False,
    spread_per_constraint=True,
    spread_policies=True,
    spread_min_domains=True,
    spread_label_keys=True,
    spread_empty_selector_counts=False,
    affinity_label_keys=True,
    affinity_keeps_namespace_selector=True,
    ports_of_sidecars=True,
    generic_taint_reason=True,
    volume_reason="node(s) didn't match PersistentVolume's node affinity",
    csi_limit_from_allocatable=False,
    csi_limit_counts_inline=True,
    counts_left_attached=True,
    always_migrated=frozenset(
        {"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk", "kubernetes.io/cinder"}
    ),
    missing_claim_is_unresolvable=True,
    read_write_once_pod=True,
    read_write_once_pod_is_final=False,
    volume_attributes_classes=True,
    zone_label_translation=True,
    zone_checked_in_pre_filter=True,
    pinned_nodes_fail=True,
    rotates_over_all_nodes=True,
    takes_first_if_unscored=True,
    ignorable_binders=True,
    percentage_per_profile=True,
    pre_filter_continues=True,
    preemption_waits_for_any=False,
    preemption_clears_nomination=False,
    preemption_sorts_in_two_passes=False,
    preemption_sorts_victims=True,
    tie_break="heap",
    config_versions=("v1",),
    plugins=(
        ("SchedulingGates", 0),
        *(use for use in K24.plugins[:-4] if use[0] not in ("EBSLimits", "GCEPDLimits", "AzureDiskLimits")),
        ("DynamicResources", 2),
        *K24.plugins[-4:],
        ("NodeDeclaredFeatures", 0),
    ),
)

K5 = replace(
    K24,
    name="1.5",
    points=10,
    policy=True,
    all_reasons=True,
    init_containers_on_nodes=False,
    pod_overhead=False,
    ephemeral_storage=False,
    always_migrated=frozenset(),
    tie_break="rotating",
    config_versions=(),
    plugins=(
        ("ArrivalOrder", 0),
        ("ListedNodes", 0),
        ("NoVolumeZoneConflict", 0),
        ("MaxEBSVolumeCount", 0),
        ("MaxGCEPDVolumeCount", 0),
        ("NoDiskConflict", 0),
        ("PodFitsResources", 0),
        ("HostName", 0),
        ("PodFitsHostPorts", 0),
        ("MatchNodeSelector", 0),
        ("SelectorSpreadPriority", 1),
        ("LeastRequestedPriority", 1),
        ("BalancedResourceAllocation", 1),
        ("NodeAffinityPriority", 1),
        ("ImageLocalityPriority", 1),
        ("DefaultBinder", 0),
    ),
)

K20 = replace(
    K24,
    name="1.20",
    retired=frozenset(
        {"NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "NodePreferAvoidPods", "SelectorSpread"}
    ),
    unscored=frozenset({"NodeResourcesFit", "VolumeBinding"}),
    multi_point=False,
    pre_filter_narrows=False,
    balanced="difference",
    spread_rounds=False,
    always_migrated=frozenset(),
    config_versions=("v1beta1",),
    plugins=(
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeResourcesFit", 0),
        ("NodeName", 0),
        ("NodePorts", 0),
        ("NodeAffinity", 1),
        ("VolumeRestrictions", 0),
        ("TaintToleration", 1),
        ("EBSLimits", 0),
        ("GCEPDLimits", 0),
        ("NodeVolumeLimits", 0),
        ("AzureDiskLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 1),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("NodeResourcesLeastAllocated", 1),
        ("NodePreferAvoidPods", 10000),
        ("DefaultBinder", 0),
    ),
)

PLATFORM = replace(
    K36,
    name=PLATFORM_RELEASE,
    real_scores=True,
    tie_break="first",
    config_versions=(),
    plugins=(
        ("PrioritySort", 0),
        ("Thresholds", 0),
        ("NodePorts", 0),
        ("MastersApart", 0),
        ("GlobalVariance", 1000),
        ("TargetUtilization", 1),
        ("LoadRisk", 1),
        ("DefaultBinder", 0),
    ),
)
"""Not a release of kube-scheduler: an operations platform, whose plugins are its own."""

RELEASES = {release.name: release for release in (PLATFORM, K5, K20, K24, K36)}
