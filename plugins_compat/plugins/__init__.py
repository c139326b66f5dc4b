"""One file for each upstream plugin, named as upstream, and what shared GPUs need; the list of what is built in."""

from stowplan.plugins_compat.framework.plugin import Plugin
from stowplan.plugins_compat.plugins.azure_disk_limits import AzureDiskLimits
from stowplan.plugins_compat.plugins.cinder_limits import CinderLimits
from stowplan.plugins_compat.plugins.default_binder import DefaultBinder
from stowplan.plugins_compat.plugins.default_preemption import DefaultPreemption
from stowplan.plugins_compat.plugins.dynamic_resources import DynamicResources
from stowplan.plugins_compat.plugins.ebs_limits import EBSLimits
from stowplan.plugins_compat.plugins.gce_pd_limits import GCEPDLimits
from stowplan.plugins_compat.plugins.gpu_share import GpuShare
from stowplan.plugins_compat.plugins.image_locality import ImageLocality
from stowplan.plugins_compat.plugins.inter_pod_affinity import InterPodAffinity
from stowplan.plugins_compat.plugins.isolated_cpus import IsolatedCPUs
from stowplan.plugins_compat.plugins.node_affinity import NodeAffinity
from stowplan.plugins_compat.plugins.node_declared_features import NodeDeclaredFeatures
from stowplan.plugins_compat.plugins.node_name import NodeName
from stowplan.plugins_compat.plugins.node_ports import NodePorts
from stowplan.plugins_compat.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from stowplan.plugins_compat.plugins.node_resources_fit import NodeResourcesFit
from stowplan.plugins_compat.plugins.node_unschedulable import NodeUnschedulable
from stowplan.plugins_compat.plugins.node_volume_limits import NodeVolumeLimits
from stowplan.plugins_compat.plugins.pod_topology_spread import PodTopologySpread
from stowplan.plugins_compat.plugins.priority_sort import PrioritySort
from stowplan.plugins_compat.plugins.scheduling_gates import SchedulingGates
from stowplan.plugins_compat.plugins.taint_toleration import TaintToleration
from stowplan.plugins_compat.plugins.volume_binding import VolumeBinding
from stowplan.plugins_compat.plugins.volume_restrictions import VolumeRestrictions
from stowplan.plugins_compat.plugins.volume_zone import VolumeZone

IN_TREE: tuple[type[Plugin], ...] = (
    PrioritySort,
    SchedulingGates,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    GpuShare,
    VolumeRestrictions,
    EBSLimits,
    GCEPDLimits,
    NodeVolumeLimits,
    AzureDiskLimits,
    CinderLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    IsolatedCPUs,
)
