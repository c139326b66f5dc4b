"""Speaks to one extender, in the v1 API of ``k8s.io/kube-scheduler/extender``."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from stowplan.models.kubernetes import Container, Node, Pod
from stowplan.models.manifest import manifest
from stowplan.models.network import NETWORK, TooMuch, bounded
from stowplan.plugins_compat.extenders.answers import ExtenderError, Filtered
from stowplan.plugins_compat.extenders.config import ExtenderConfig, TLSConfig


class HTTPExtender:
    """A client of one extender."""

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config

    @cached_property
    def _client(self) -> httpx.Client:
        tls = self.config.tls_config
        secure = self.config.url_prefix.startswith("https:")
        verify: ssl.SSLContext | bool = _context(tls) if secure and tls else True
        return httpx.Client(timeout=self.config.http_timeout, verify=verify, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    def is_interested(self, pod: Pod) -> bool:
        """Whether the extender wants to be asked about a pod."""
        managed = {resource.name for resource in self.config.managed_resources}
        containers: Sequence[Container] = (*pod.spec.containers, *pod.spec.init_containers)
        return not managed or any(managed & {*c.requests, *c.limits} for c in containers)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Ask which nodes suit a pod.

        Raises
        ------
        ExtenderError
            If there is no sensible answer.
        """
        answer = self._post(self.config.filter_verb, self._arguments(pod, nodes))
        if not isinstance(answer, dict):
            raise ExtenderError(f"{self._url(self.config.filter_verb)}: the answer is not an object")
        if answer.get("error"):
            raise ExtenderError(f"{self._url(self.config.filter_verb)}: {answer['error']}")
        known = {node.name for node in nodes}
        if self.config.node_cache_capable and answer.get("nodenames") is not None:
            passed = list(answer["nodenames"])
        elif isinstance(answer.get("nodes"), dict):
            passed = [item["metadata"]["name"] for item in answer["nodes"].get("items") or ()]
        else:
            passed = []
        strangers = [name for name in passed if name not in known]
        if strangers:
            raise ExtenderError(f"{self._url(self.config.filter_verb)}: node {strangers[0]!r} was not in the question")
        return Filtered(passed, answer.get("failednodes") or {}, answer.get("failedandunresolvablenodes") or {})

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """Ask for scores by node name, not yet weighted.

        Raises
        ------
        ExtenderError
            If there is no sensible answer.
        """
        answer = self._post(self.config.prioritize_verb, self._arguments(pod, nodes))
        try:
            return {str(entry["host"]): int(entry["score"]) for entry in map(_folded, answer or ())}
        except (AttributeError, TypeError, KeyError, ValueError):
            raise ExtenderError(
                f"{self._url(self.config.prioritize_verb)}: the answer is not a list of hosts and scores"
            ) from None

    def bind(self, pod: Pod, node: str) -> None:
        """Have the extender bind a pod.

        Raises
        ------
        ExtenderError
            If it does not.
        """
        names = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.metadata.uid, "Node": node}
        answer = self._post(self.config.bind_verb, names)
        if isinstance(answer, dict) and answer.get("error"):
            raise ExtenderError(f"{self._url(self.config.bind_verb)}: {answer['error']}")

    def preempt(self, pod: Pod, victims: Mapping[str, tuple[Sequence[Pod], int]]) -> dict[str, tuple[list[str], int]]:
        """Ask which preemption candidates the extender agrees to.

        Parameters
        ----------
        victims
            By node name: the pods that would be evicted, and how many of them against a disruption budget.

        Returns
        -------
        dict
            By node name: uids of the pods to evict, and how many of them against a budget.

        Raises
        ------
        ExtenderError
            If there is no sensible answer.
        """
        meta = {
            name: {"Pods": [{"UID": victim.metadata.uid} for victim in pods], "NumPDBViolations": violations}
            for name, (pods, violations) in victims.items()
        }
        full = {
            name: {"Pods": [manifest(victim) for victim in pods], "NumPDBViolations": violations}
            for name, (pods, violations) in victims.items()
        }
        key, value = ("NodeNameToMetaVictims", meta) if self.config.node_cache_capable else ("NodeNameToVictims", full)
        answer = self._post(self.config.preempt_verb, {"Pod": manifest(pod), key: value})
        try:
            chosen = {name: _folded(entry) for name, entry in (answer.get("nodenametometavictims") or {}).items()}
            return {
                name: (
                    [_folded(victim)["uid"] for victim in entry.get("pods") or ()],
                    int(entry.get("numpdbviolations") or 0),
                )
                for name, entry in chosen.items()
            }
        except (AttributeError, TypeError, KeyError, ValueError):
            raise ExtenderError(f"{self._url(self.config.preempt_verb)}: the answer names no victims by node") from None

    def _arguments(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, Any]:
        if self.config.node_cache_capable:
            return {"Pod": manifest(pod), "NodeNames": [node.name for node in nodes]}
        items = [{"apiVersion": "v1", "kind": "Node", **manifest(node)} for node in nodes]
        return {"Pod": manifest(pod), "Nodes": {"apiVersion": "v1", "kind": "NodeList", "items": items}}

    def _url(self, verb: str) -> str:
        return f"{self.config.url_prefix.rstrip('/')}/{verb}"

    def _post(self, verb: str, content: dict[str, Any]) -> Any:
        url = self._url(verb)
        NETWORK.get().named_by_configuration(url, "extender, told of pods and nodes")
        server_name = self.config.tls_config.server_name if self.config.tls_config else ""
        try:
            extensions = {"sni_hostname": server_name} if server_name else {}
            with self._client.stream("POST", url, json=content, extensions=extensions) as answer:
                body = bounded(answer.iter_bytes())
        except (httpx.HTTPError, TooMuch) as error:
            raise ExtenderError(f"{url}: {error or type(error).__name__}") from None
        if answer.status_code != httpx.codes.OK:
            raise ExtenderError(f"{url}: HTTP status {answer.status_code}")
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise ExtenderError(f"{url}: the answer is not JSON") from None
        return _folded(content) if isinstance(content, dict) else content


def _folded(content: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its keys in lower case: the API's types name none, so Go reads them in any."""
    return {key.lower(): value for key, value in content.items()}


def _context(tls: TLSConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(
        cafile=tls.ca_file or None, cadata=base64.b64decode(tls.ca_data).decode() if tls.ca_data else None
    )
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file or tls.cert_data:
        with tempfile.TemporaryDirectory() as folder:
            certificate = _file(tls.cert_file, tls.cert_data, Path(folder) / "cert.pem")
            key = _file(tls.key_file, tls.key_data, Path(folder) / "key.pem") if tls.key_file or tls.key_data else None
            context.load_cert_chain(certificate, key)
    return context


def _file(path: str, data: str, scratch: Path) -> str:
    """Return a file with the content; the library takes certificates by file only."""
    if path:
        return path
    scratch.touch(mode=0o600)
    scratch.write_bytes(base64.b64decode(data))
    return str(scratch)
