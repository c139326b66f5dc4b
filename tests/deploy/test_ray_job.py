"""The RayJob: fields that KubeRay knows, pods that Kubernetes accepts, and a command that there is.

KubeRay publishes a definition of a megabyte with its operator, nearly all of it the pod templates of Kubernetes, and no
package of a registry holds it. ``ray_jobs.yaml`` has what it says of its own fields; pod templates are validated with
the schema of Kubernetes. Where `DEFINITION` names a file with the published ``CustomResourceDefinition``, the whole is
validated with that too.
"""

from __future__ import annotations

import copy
import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support.custom_resources import mistakes
from tests.support.pod_security import offences

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "ray"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
DEFINITION = "STOWPLAN_KUBERAY_DEFINITION"


def manifest() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "rayjob.yaml").read_text()))


@pytest.fixture
def spec() -> dict[str, Any]:
    job = manifest()
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    return dict(job["spec"])


def others() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "job.yaml").read_text()))


def templates(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    cluster = spec["rayClusterSpec"]
    found = {group["groupName"]: group["template"] for group in cluster["workerGroupSpecs"]}
    return {"submitter": spec["submitterPodTemplate"], "head": cluster["headGroupSpec"]["template"], **found}


def own_fields() -> dict[str, Any]:
    return dict(yaml.safe_load((Path(__file__).parent / "ray_jobs.yaml").read_text()))


def test_kuberay_knows_every_field() -> None:
    assert mistakes(own_fields(), manifest()) == []
    assert manifest()["spec"]["submissionMode"] in {"K8sJobMode", "HTTPMode", "InteractiveMode"}


@pytest.mark.parametrize(
    "path",
    [
        ("entrypoint",),
        ("rayClusterSpec", "headGroupSpec"),
        ("rayClusterSpec", "headGroupSpec", "rayStartParams"),
        ("rayClusterSpec", "workerGroupSpecs", 0, "groupName"),
        ("rayClusterSpec", "workerGroupSpecs", 0, "maxReplicas"),
    ],
)
def test_fields_that_kuberay_requires_are_missed(path: tuple[str | int, ...]) -> None:
    wrong = copy.deepcopy(manifest())
    place: Any = wrong["spec"]
    for step in path[:-1]:
        place = place[step]
    place[f"{path[-1]}s"] = place.pop(path[-1])
    assert len(mistakes(own_fields(), wrong)) == 2  # one is missing, and one is not known


def test_the_published_definition_accepts_it() -> None:
    if DEFINITION not in os.environ:
        pytest.skip(f"{DEFINITION} does not name KubeRay's ray.io_rayjobs.yaml, which no registry of packages has")
    definition = yaml.safe_load(Path(os.environ[DEFINITION]).read_text())
    assert mistakes(definition, manifest()) == []


def test_a_definition_refuses_what_it_does_not_know() -> None:
    quantity = {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+$"}
    spec = {
        "type": "object",
        "properties": {
            "image": {"type": "string"},
            "size": {**quantity, "x-kubernetes-int-or-string": True},
            "note": {"type": "string", "nullable": True},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "either": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "anyOf": [{"required": ["a"]}],
            },
            "none": {"type": "object"},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
        "required": ["image"],
    }
    schema = {"type": "object", "properties": {"apiVersion": {}, "kind": {}, "spec": spec}}
    versions = [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}]
    definition = {"spec": {"group": "example.com", "names": {"kind": "Box"}, "versions": versions}}

    def said(**spec: Any) -> list[str]:
        return mistakes(definition, {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"x": 1}, "spec": spec})

    assert said(image="a", size=3, note=None, labels={"b": "c"}, any={"d": 1}) == []
    assert said(image="a", size="4") == []
    assert said(image="a", size="four") != []
    assert said(size=3) != []
    assert said(image=None) != []
    for odd in ({}, [1], 1.5, None):
        assert said(image="a", size=odd) != []
    assert said(image="a", either={"a": 1, "b": 2}) == []
    assert said(image="a", either={"b": 2}) != []
    assert said(image="a", none={"b": 2}) != []
    assert said(image="a", imagee="b") != []
    assert said(image="a", labels={"b": 1}) != []
    other = {"apiVersion": "example.com/v2", "kind": "Box", "spec": {"image": "a"}}
    assert mistakes(definition, other) == ["apiVersion: the definition serves v1"]
    assert mistakes(definition, {**other, "kind": "Bag"}) != []


@pytest.mark.parametrize("release", ["1.29", "1.36"])
def test_kubernetes_accepts_the_rest(spec: dict[str, Any], release: str) -> None:
    for other in others():
        kubernetes_validate.validate(other, release, strict=True)
    for name, template in templates(spec).items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": template["spec"]}
        kubernetes_validate.validate(pod, release, strict=True)
        assert offences(template["spec"]) == []


def test_all_nodes_run_one_image_with_the_version_of_ray(spec: dict[str, Any]) -> None:
    images = {c["image"] for template in templates(spec).values() for c in template["spec"]["containers"]}
    assert images == {f"stowplan-ray:{VERSION}"}
    container = (FOLDER / "Containerfile").read_text()
    assert f"rayproject/ray:{spec['rayClusterSpec']['rayVersion']}-py311" in container
    assert f"-t stowplan-ray:{VERSION} " in container


def test_the_policy_covers_every_pod(spec: dict[str, Any]) -> None:
    (policy,) = [other for other in others() if other["kind"] == "NetworkPolicy"]
    wanted = policy["spec"]["podSelector"]["matchLabels"].items()
    assert all(wanted <= template["metadata"]["labels"].items() for template in templates(spec).values())


def test_the_script_calls_a_command_with_options_that_it_has(spec: dict[str, Any]) -> None:
    (script,) = [other["data"]["solve.sh"] for other in others() if other["kind"] == "ConfigMap"]
    assert spec["entrypoint"] == "bash /jobs/solve.sh"
    line = next(line for line in script.replace("\\\n", " ").splitlines() if line.startswith("stowplan "))
    words = shlex.split(line.partition(">")[0])
    page = (ROOT / "docs" / "command-line.md").read_text()
    for flag in [word for word in words if word.startswith("--")]:
        assert re.search(rf"^\| `{flag}`(?:, `-\w`)? \|", page, flags=re.M), flag


def test_the_volumes_are_there(spec: dict[str, Any]) -> None:
    named = {(other["kind"], other["metadata"]["name"]) for other in others()}
    volumes = templates(spec)["head"]["spec"]["volumes"]
    assert {
        ("PersistentVolumeClaim", v["persistentVolumeClaim"]["claimName"])
        for v in volumes
        if len(v) > 1 and "persistentVolumeClaim" in v
    } <= named
    assert {("ConfigMap", v["configMap"]["name"]) for v in volumes if "configMap" in v} <= named
