"""Which kinds the server serves, and what it says of them when it is asked (discovery)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API serves it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``plural.group``, or ``plural`` of the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_version(self) -> str:
        """``group/version``, or ``version`` of the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


NODES = Resource("", "v1", "nodes", "Node", False, ("no",))
PODS = Resource("", "v1", "pods", "Pod", True, ("po",))
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, ("ns",))
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", True, ("rs",))
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", True, ("sts",))
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True, ("ds",))
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True, ("deploy",))
JOBS = Resource("batch", "v1", "jobs", "Job", True)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",))
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", True, ("ev",))
POLICIES = Resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", False)

RESOURCES: tuple[Resource, ...] = (
    NODES,
    PODS,
    NAMESPACES,
    Resource("", "v1", "services", "Service", True, ("svc",)),
    Resource("", "v1", "configmaps", "ConfigMap", True, ("cm",)),
    Resource("", "v1", "replicationcontrollers", "ReplicationController", True, ("rc",)),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", False, ("pv",)),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",)),
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, ("sc",)),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", True),
    Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False),
    BUDGETS,
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",)),
    JOBS,
    LEASES,
    EVENTS,
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",)),
    Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False),
    Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    POLICIES,
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        False,
    ),
)
BY_KIND = {resource.kind: resource for resource in RESOURCES}

Document = dict[str, Any]


class Discovery:
    """What is served, and the documents that say so.

    Parameters
    ----------
    without
        Plural names of kinds that this server does not know.
    minor
        The release the server claims to be: 1.``minor``.
    """

    def __init__(self, without: Iterable[str] = (), minor: int = 32) -> None:
        unknown = set(without)
        self.resources = tuple(resource for resource in RESOURCES if resource.plural not in unknown)
        self.minor = minor

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return what is served under a path, if anything."""
        wanted = (group, version, plural)
        return next((r for r in self.resources if (r.group, r.version, r.plural) == wanted), None)

    def document(self, path: str) -> Document | None:
        """Return the discovery document at a path, or ``None`` if there is none."""
        parts = path.strip("/").split("/")
        match parts:
            case ["version"]:
                return self._version()
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
            case ["apis"]:
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(g) for g in self._groups()]}
            case ["api", "v1"]:
                return self._list("", "v1")
            case ["apis", group] if group in self._groups():
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case ["apis", group, version] if (group, version) in self._versions():
                return self._list(group, version)
        return None

    def _version(self) -> Document:
        release = f"v1.{self.minor}.0"
        about = {"gitCommit": "0" * 40, "gitTreeState": "clean", "buildDate": "2025-01-01T00:00:00Z"}
        rest = {"goVersion": "go1.23", "compiler": "gc", "platform": "linux/amd64"}
        return {"major": "1", "minor": str(self.minor), "gitVersion": release, **about, **rest}

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(resource.group for resource in self.resources if resource.group))

    def _versions(self) -> set[tuple[str, str]]:
        return {(resource.group, resource.version) for resource in self.resources}

    def _group(self, group: str) -> Document:
        version = next(resource.version for resource in self.resources if resource.group == group)
        preferred = {"groupVersion": f"{group}/{version}", "version": version}
        return {"name": group, "versions": [preferred], "preferredVersion": preferred}

    def _list(self, group: str, version: str) -> Document:
        served = [r for r in self.resources if (r.group, r.version) == (group, version)]
        entries: list[Document] = []
        for resource in served:
            entry: Document = {
                "name": resource.plural,
                "singularName": resource.kind.lower(),
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": VERBS,
            }
            if resource.short:
                entry["shortNames"] = list(resource.short)
            entries.append(entry)
            if resource.plural == "pods":
                entries.append(self._eviction())
        name = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": entries}

    def _eviction(self) -> Document:
        """Return the entry of the eviction subresource: which version of ``Eviction`` it takes; 1.22 brought v1."""
        version = "v1" if self.minor >= 22 else "v1beta1"
        about = {"name": "pods/eviction", "singularName": "", "namespaced": True, "kind": "Eviction"}
        return {**about, "group": "policy", "version": version, "verbs": ["create"]}
