"""Clusters that are too small for their pods, where higher priorities come first.

The clusters of "Priority Matters" (Christensen, Giallorenzo, Mauro, arXiv 2511.08373): alike nodes, ReplicaSets that
differ in CPU, memory and priority, nothing placed yet. As many pods as possible shall get a node, of the highest
priority first.
"""

from stowplan.instances.suites.priority_matters.clusters import Cluster, ReplicaSet, generate_clusters, read_clusters
from stowplan.instances.suites.priority_matters.manifests import cluster_snapshot, scheduled
from stowplan.instances.suites.priority_matters.placing import ClusterProblem, check_cluster, cluster_problem

__all__ = [
    "Cluster",
    "ClusterProblem",
    "ReplicaSet",
    "check_cluster",
    "cluster_problem",
    "cluster_snapshot",
    "generate_clusters",
    "read_clusters",
    "scheduled",
]
