"""The stock descheduler, played as far as the policies go that we emit."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from stowplan.emitters.descheduler import POLICY
from stowplan.emitters.descheduler_policy import DeschedulerPolicy
from stowplan.emitters.emission import PLAN_LABEL
from stowplan.plans.movability.annotations import EVICT
from tests.support.api_server import ApiServer
from tests.support.api_server.errors import Object
from tests.support.api_server.resources import BY_KIND, JOBS, PODS


def deschedule(server: ApiServer, policy: Object) -> list[int]:
    """Do what PodLifeTime and DefaultEvictor do with such a policy; return the codes of the evictions."""
    DeschedulerPolicy.model_validate(policy)
    (profile,) = policy["profiles"]
    evictor, life = (config["args"] for config in profile["pluginConfig"])
    codes: list[int] = []
    for pod in server.store.all(PODS):
        meta = pod["metadata"]
        labels = {*meta.get("labels", {}).items()}
        protected = any("emptyDir" in v for v in pod["spec"].get("volumes", ()))
        if (
            labels >= {*life["labelSelector"]["matchLabels"].items()}
            and meta["namespace"] in life["namespaces"]["include"]
            and pod["status"]["phase"] in life["states"]
            and len(codes) < policy["maxNoOfPodsToEvictTotal"]
            and (
                EVICT in meta.get("annotations", {})
                or (labels >= {*evictor["labelSelector"]["matchLabels"].items()} and not protected)
            )
        ):
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": meta["name"]}}
            request = urllib.request.Request(server.address + path, json.dumps(body).encode())
            try:
                with urllib.request.urlopen(request) as answer:
                    codes.append(answer.status)
            except urllib.error.HTTPError as error:
                codes.append(error.code)
                error.close()
    return codes


@contextmanager
def descheduling(server: ApiServer) -> Iterator[list[int]]:
    """Carry out every Job of our recipe that is created; yield the codes of all evictions.

    A Job's pod that has come to a node and runs does what the policy says, and ends. It ends well, whatever was
    refused, as the descheduler does.
    """
    codes: list[int] = []
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.05):
            for pod in server.store.all(PODS, "kube-system"):
                (owner,) = pod["metadata"].get("ownerReferences") or [{}]
                if owner.get("kind") == "Job" and pod["status"]["phase"] == "Running":
                    codes.extend(_run(server, pod, owner["name"]))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield codes
    finally:
        over.set()
        thread.join()


def _run(server: ApiServer, pod: Object, job: str) -> list[int]:
    """Do what the pod of a Job is to do, and let both end."""
    found = server.store.get(JOBS, "kube-system", job)
    assert PLAN_LABEL in found["metadata"]["labels"]
    (volume,) = pod["spec"]["volumes"]
    config = server.store.get(BY_KIND["ConfigMap"], "kube-system", volume["configMap"]["name"])
    codes = deschedule(server, yaml.safe_load(config["data"][POLICY]))
    ended = {"status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}}
    name = pod["metadata"]["name"]
    server.store.update(JOBS, "kube-system", job, lambda found: found.update(ended))
    server.store.update(PODS, "kube-system", name, lambda found: found["status"].update(phase="Succeeded"))
    return codes
