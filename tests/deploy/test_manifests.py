"""The manifests: rendered by kubectl, valid, hardened, of this version, and about what is really there."""

from __future__ import annotations

import copy
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from stowplan.cli.app import app
from tests.support.kubectl import needs_kubectl
from tests.support.kustomized import DEPLOY, FOLDERS, Manifest, all_rendered, pod_of, pods, rendered
from tests.support.pod_security import RESTRICTED, containers, offences
from tests.support.rights import granted, rights_of

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
RELEASES = ("1.25", "1.29", "1.33", "1.36", "1.37")
LABELS = {"app.kubernetes.io/name": "stowplan", "app.kubernetes.io/managed-by": "kustomize"}
ENTRY = {f"stowplan:{VERSION}": [], f"stowplan-serve:{VERSION}": ["serve"]}
"""Images, and the arguments that their entry points begin with."""

pytestmark = needs_kubectl


@pytest.fixture(scope="module")
def manifests() -> list[Manifest]:
    return all_rendered()


@pytest.fixture(scope="module")
def specs(manifests: list[Manifest]) -> dict[str, Manifest]:
    found = dict(pods(manifests))
    assert found.keys() == {"stowplan-plan", "stowplan-apply", "stowplan-serve"}
    return found


def in_order(manifests: list[Manifest]) -> list[str]:
    return sorted(json.dumps(manifest, sort_keys=True) for manifest in manifests)


@pytest.mark.parametrize("folder", FOLDERS)
def test_kubectl_renders_every_file(folder: str) -> None:
    files = {file.name for file in (DEPLOY / folder).iterdir()} - {"kustomization.yaml"}
    named = yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text())["resources"]
    assert set(named) == files
    written = [m for name in named for m in yaml.safe_load_all((DEPLOY / folder / name).read_text())]
    assert in_order(rendered(DEPLOY / folder)) == in_order(written)


@pytest.mark.parametrize("release", RELEASES)
def test_they_are_what_the_api_takes(manifests: list[Manifest], release: str) -> None:
    for manifest in manifests:
        kubernetes_validate.validate(manifest, release, strict=True)


def test_the_schema_check_would_notice(manifests: list[Manifest]) -> None:
    (job,) = (copy.deepcopy(m) for m in manifests if m["kind"] == "Job")
    job["spec"]["backOffLimit"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.36", strict=True)


# -- Pod Security -----------------------------------------------------------------------------------------------------


def test_pods_keep_to_the_restricted_standard(specs: dict[str, Manifest]) -> None:
    assert {name: offences(spec) for name, spec in specs.items()} == {name: [] for name in specs}


def broken(rule: str, spec: Manifest) -> Manifest:
    """Return a pod that one rule refuses, and no other."""
    spec = copy.deepcopy(spec)
    container = spec["containers"][0]
    own, above = container["securityContext"], spec["securityContext"]
    match rule:
        case "host namespaces":
            spec["hostPID"] = True
        case "privileged containers":
            own["privileged"] = True
        case "host process":
            above["windowsOptions"] = {"hostProcess": True}
        case "capabilities":
            own["capabilities"] = {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
        case "host ports":
            container["ports"] = [{"containerPort": 1, "hostPort": 1}]
        case "host probes and hooks":
            container["livenessProbe"] = {"httpGet": {"port": 1, "host": "10.0.0.1"}}
        case "AppArmor":
            own["appArmorProfile"] = {"type": "Unconfined"}
        case "SELinux":
            above["seLinuxOptions"] = {"type": "spc_t"}
        case "/proc mount type":
            own["procMount"] = "Unmasked"
        case "sysctls":
            above["sysctls"] = [{"name": "kernel.msgmax", "value": "1"}]
        case "volume types":
            spec["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
        case "privilege escalation":
            del own["allowPrivilegeEscalation"]
        case "running as non-root":
            own["runAsNonRoot"] = False
        case "running as non-root user":
            own["runAsUser"] = 0
        case "seccomp":
            del above["seccompProfile"]
    return spec


@pytest.mark.parametrize("rule", RESTRICTED)
def test_each_rule_would_notice(rule: str, specs: dict[str, Manifest]) -> None:
    assert {line.partition(":")[0] for line in offences(broken(rule, specs["stowplan-serve"]))} == {rule}


def test_capabilities_that_are_not_dropped_are_noticed(specs: dict[str, Manifest]) -> None:
    spec = copy.deepcopy(specs["stowplan-plan"])
    del spec["initContainers"][0]["securityContext"]["capabilities"]
    assert offences(spec) == ["capabilities: make keeps some"]


def test_containers_cannot_write_their_root_and_are_bounded(specs: dict[str, Manifest]) -> None:
    for spec in specs.values():
        assert spec["securityContext"]["runAsUser"] == 65532
        for container in containers(spec):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["resources"]["limits"].keys() == {"memory"}
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}


# -- accounts ---------------------------------------------------------------------------------------------------------


def test_no_rule_has_a_wildcard(manifests: list[Manifest]) -> None:
    rules = [rule for m in manifests if m["kind"] in {"Role", "ClusterRole"} for rule in m["rules"]]
    assert len(rules) >= 12
    assert "*" not in json.dumps(rules)


def test_only_what_asks_the_cluster_has_a_token(manifests: list[Manifest], specs: dict[str, Manifest]) -> None:
    with_token = {spec["serviceAccountName"] for spec in specs.values() if spec["automountServiceAccountToken"]}
    assert with_token == {"stowplan-plan", "stowplan-apply"}
    accounts = [m for m in manifests if m["kind"] == "ServiceAccount"]
    assert {account["metadata"]["name"] for account in accounts} == with_token
    assert not any(account["automountServiceAccountToken"] for account in accounts)
    assert "serviceAccountName" not in specs["stowplan-serve"]


def test_who_plans_can_change_nothing(manifests: list[Manifest]) -> None:
    assert {right.verb for right in granted(manifests, "stowplan-plan")} == {"list"}


def test_the_page_of_apply_has_the_same_rights(manifests: list[Manifest]) -> None:
    page = (ROOT / "docs" / "apply.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(apiVersion: rbac.*?)^```$", page, flags=re.M | re.S)
    assert len(blocks) == 2
    for written in map(yaml.safe_load, blocks):
        space = written["metadata"].get("namespace", "")
        same = [m for m in manifests if (m["kind"], m["metadata"]["name"]) == (written["kind"], "stowplan-apply")]
        there = {right for rule in same[0]["rules"] for right in rights_of(rule, space)}
        assert {right for rule in written["rules"] for right in rights_of(rule, space)} == there


# -- what they name ---------------------------------------------------------------------------------------------------


def test_arguments_are_those_of_the_command_line(specs: dict[str, Manifest]) -> None:
    root: Any = typer.main.get_command(app)
    seen = []
    for spec in specs.values():
        for container in containers(spec):
            for name, *arguments in commands_of(container):
                root.commands[name].make_context(name, list(arguments)).close()
                seen.append(name)
    assert seen == ["snapshot", "plan", "show", "apply", "serve"]


def commands_of(container: Manifest) -> Iterator[list[str]]:
    """Yield the commands of stowplan that a container runs, each with its arguments."""
    command = container.get("command")
    if command is None:
        yield [*ENTRY[container["image"]], *container["args"]]
    elif command[0] == "/bin/sh":
        assert command[-1] == "make"
        for line in command[2].splitlines():
            program, *words = shlex.split(line.partition(" >")[0])
            if program == "stowplan":
                yield [a for word in words for a in (container["args"] if word == "$@" else [word])]


def test_runs_leave_metrics_on_a_volume_and_lines_for_machines(
    manifests: list[Manifest], specs: dict[str, Manifest]
) -> None:
    """Both count over runs, so neither file is in a folder of one run, or in what ends with the pod."""
    (plan, _, *texts), (apply,) = (containers(specs[name]) for name in ("stowplan-plan", "stowplan-apply"))
    for container, command in ((plan, "plan"), (apply, "apply")):
        ran = [words for words in commands_of(container) if words[0] != "show"]
        assert all("--log-format json" in " ".join(words).replace("=", " ") for words in ran)
        (file,) = (word.partition("=")[2] for word in ran[-1] if word.startswith("--metrics-file="))
        place, _, name = file.rpartition("/")
        assert name == f"{command}.prom"
        (volume,) = (m["name"] for m in container["volumeMounts"] if m["mountPath"] == place and not m.get("readOnly"))
        (source,) = (v for v in specs[f"stowplan-{command}"]["volumes"] if v["name"] == volume)
        assert "persistentVolumeClaim" in source
        page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
        assert f"`{file}`" in page
    assert ["/plans/plan.prom"] in [container["args"] for container in texts]


def test_what_is_mounted_and_referred_to_is_there(manifests: list[Manifest], specs: dict[str, Manifest]) -> None:
    claims = {m["metadata"]["name"] for m in manifests if m["kind"] == "PersistentVolumeClaim"}
    used = set()
    for spec in specs.values():
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        used |= {v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v}
        mounted = {mount["name"] for container in containers(spec) for mount in container["volumeMounts"]}
        assert mounted == volumes.keys()
        for container in containers(spec):
            paths = {mount["mountPath"] for mount in container["volumeMounts"]}
            named = re.findall(r"(?:^|=)/(\w+)/", "\n".join(container.get("args", ())), flags=re.M)
            assert {f"/{name}" for name in named} <= paths
            variables = {variable["name"] for variable in container.get("env", ())}
            assert set(re.findall(r"\$\((\w+)\)", json.dumps(container["args"]))) <= variables
    assert used == claims


def test_the_service_and_the_policy_reach_the_server(manifests: list[Manifest], specs: dict[str, Manifest]) -> None:
    ports = {port["name"]: port["containerPort"] for port in specs["stowplan-serve"]["containers"][0]["ports"]}
    arguments = specs["stowplan-serve"]["containers"][0]["args"]
    assert {f"--bind=0.0.0.0:{ports['extender']}", f"--health-bind=0.0.0.0:{ports['health']}"} <= set(arguments)
    (service,) = (m for m in manifests if m["kind"] == "Service")
    assert {port["targetPort"]: port["port"] for port in service["spec"]["ports"]} == ports
    name, space = service["metadata"]["name"], service["metadata"]["namespace"]
    asked = f"--serve=https://{name}.{space}.svc:{ports['extender']}/v1"
    assert asked in specs["stowplan-apply"]["containers"][0]["args"]
    labels = {m["metadata"]["name"]: template["metadata"]["labels"] for m in manifests if (template := pod_of(m))}
    (policy,) = (
        m["spec"] for m in manifests if m["metadata"]["name"] == "stowplan-serve" and "podSelector" in m["spec"]
    )
    assert policy["podSelector"]["matchLabels"].items() <= labels["stowplan-serve"].items()
    assert service["spec"]["selector"].items() <= labels["stowplan-serve"].items()
    callers = [
        source["podSelector"]["matchLabels"] for source in policy["ingress"][0]["from"] if "podSelector" in source
    ]
    assert [who for who, held in labels.items() for caller in callers if caller.items() <= held.items()] == [
        "stowplan-apply"
    ]
    assert "egress" not in policy
    assert "Egress" in policy["policyTypes"]


def test_objects_say_whose_they_are(manifests: list[Manifest]) -> None:
    for manifest in manifests:
        assert LABELS.items() <= manifest["metadata"]["labels"].items()


def test_the_workloads_are_run_as_the_page_says(manifests: list[Manifest]) -> None:
    found = {m["metadata"]["name"]: m["spec"] for m in manifests if pod_of(m)}
    nightly, job, server = (found[f"stowplan-{name}"] for name in ("plan", "apply", "serve"))
    assert (nightly["concurrencyPolicy"], nightly["jobTemplate"]["spec"]["backoffLimit"]) == ("Forbid", 0)
    assert nightly["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 86400
    assert (job["suspend"], job["backoffLimit"]) == (True, 0)
    assert (server["replicas"], server["strategy"]) == (1, {"type": "Recreate"})


# -- a kustomization of one's own -------------------------------------------------------------------------------------


def test_a_plan_gets_a_name_of_its_own(tmp_path: Path) -> None:
    """With a generated ConfigMap, another plan is another name: the server is restarted, the Job is another one."""
    (tmp_path / "deploy").symlink_to(DEPLOY)
    names = set()
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "plan.json").write_text(f'{{"number": {number}}}')
        (folder / "reviewed.env").write_text(f"PLAN_SHA256={number:064}\n")
        own = yaml.safe_load(own_kustomization())
        own["resources"] = [f"../deploy/{word.partition('deploy/')[2]}" for word in own["resources"]]
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(own))
        made = rendered(folder)
        (plan,) = (m["metadata"]["name"] for m in made if m["kind"] == "ConfigMap")
        specs = dict(pods(made))
        for spec in specs.values():
            (volume,) = (v for v in spec["volumes"] if v["name"] == "plan")
            assert volume["configMap"]["name"] == plan
            assert spec["containers"][0]["env"][0]["valueFrom"]["configMapKeyRef"]["name"] == plan
            assert spec["containers"][0]["image"].startswith("registry.example/")
        assert specs.keys() == {"stowplan-apply", "stowplan-serve"}
        names.add(plan)
    assert len(names) == 2


def own_kustomization() -> str:
    """Return the one that the page shows."""
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(apiVersion: kustomize.*?)^```$", page, flags=re.M | re.S)
    return block
