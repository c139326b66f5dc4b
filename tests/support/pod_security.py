"""The Pod Security Standard *restricted*, *baseline* included, as a table: what each rule finds in the spec of a pod.

Source: kubernetes.io/docs/concepts/security/pod-security-standards, of release 1.36, for pods on Linux.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Spec = dict[str, Any]
Finding = Iterator[str]

VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
}


def containers(spec: Spec) -> list[Spec]:
    """Return all containers of a pod, those that run first included."""
    return [c for kind in ("initContainers", "containers", "ephemeralContainers") for c in spec.get(kind) or ()]


def _contexts(spec: Spec) -> list[tuple[str, Spec]]:
    """Return the security contexts of a pod and of its containers, with the name of whose each is."""
    found = [("pod", spec.get("securityContext") or {})]
    return found + [(c["name"], c.get("securityContext") or {}) for c in containers(spec)]


def _inherited(spec: Spec, key: str) -> list[tuple[str, Any]]:
    """Return what holds for each container: its own word, or else the pod's."""
    (_, above), *own = _contexts(spec)
    return [(name, context.get(key, above.get(key))) for name, context in own]


def _host_namespaces(spec: Spec) -> Finding:
    return (key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key))


def _privileged(spec: Spec) -> Finding:
    return (name for name, context in _contexts(spec) if context.get("privileged"))


def _host_process(spec: Spec) -> Finding:
    return (name for name, context in _contexts(spec) if (context.get("windowsOptions") or {}).get("hostProcess"))


def _capabilities(spec: Spec) -> Finding:
    for container in containers(spec):
        wanted = (container.get("securityContext") or {}).get("capabilities") or {}
        if "ALL" not in (wanted.get("drop") or ()):
            yield f"{container['name']} keeps some"
        if set(wanted.get("add") or ()) - {"NET_BIND_SERVICE"}:
            yield f"{container['name']} adds some"


def _host_ports(spec: Spec) -> Finding:
    return (c["name"] for c in containers(spec) for port in c.get("ports") or () if port.get("hostPort"))


def _host_probes(spec: Spec) -> Finding:
    for container in containers(spec):
        hooks = container.get("lifecycle") or {}
        probes = [container.get(f"{kind}Probe") or {} for kind in ("liveness", "readiness", "startup")]
        for handler in [*probes, *(hooks.get(key) or {} for key in ("postStart", "preStop"))]:
            if any((handler.get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
                yield container["name"]


def _app_armor(spec: Spec) -> Finding:
    for name, context in _contexts(spec):
        if (context.get("appArmorProfile") or {}).get("type", "RuntimeDefault") == "Unconfined":
            yield name


def _selinux(spec: Spec) -> Finding:
    for name, context in _contexts(spec):
        options = context.get("seLinuxOptions") or {}
        if options.get("type", "") not in SELINUX_TYPES or options.get("user") or options.get("role"):
            yield name


def _proc_mount(spec: Spec) -> Finding:
    return (name for name, context in _contexts(spec) if context.get("procMount", "Default") != "Default")


def _sysctls(spec: Spec) -> Finding:
    wanted = (spec.get("securityContext") or {}).get("sysctls") or ()
    return (sysctl["name"] for sysctl in wanted if sysctl["name"] not in SYSCTLS)


def _volumes(spec: Spec) -> Finding:
    return (v["name"] for v in spec.get("volumes") or () if not v.keys() - {"name"} <= VOLUMES or len(v) < 2)


def _escalation(spec: Spec) -> Finding:
    for container in containers(spec):
        if (container.get("securityContext") or {}).get("allowPrivilegeEscalation") is not False:
            yield container["name"]


def _non_root(spec: Spec) -> Finding:
    return (name for name, value in _inherited(spec, "runAsNonRoot") if value is not True)


def _root_user(spec: Spec) -> Finding:
    return (name for name, context in _contexts(spec) if context.get("runAsUser") == 0)


def _seccomp(spec: Spec) -> Finding:
    for name, profile in _inherited(spec, "seccompProfile"):
        if (profile or {}).get("type") not in {"RuntimeDefault", "Localhost"}:
            yield name


RESTRICTED: dict[str, Callable[[Spec], Finding]] = {
    "host namespaces": _host_namespaces,
    "privileged containers": _privileged,
    "host process": _host_process,
    "capabilities": _capabilities,
    "host ports": _host_ports,
    "host probes and hooks": _host_probes,
    "AppArmor": _app_armor,
    "SELinux": _selinux,
    "/proc mount type": _proc_mount,
    "sysctls": _sysctls,
    "volume types": _volumes,
    "privilege escalation": _escalation,
    "running as non-root": _non_root,
    "running as non-root user": _root_user,
    "seccomp": _seccomp,
}
"""The controls of the standard, by their names there; a host path is one of the volume types."""


def offences(spec: Spec) -> list[str]:
    """Return what the standard refuses in a pod, one line each."""
    return [f"{rule}: {found}" for rule, check in RESTRICTED.items() for found in check(spec)]
